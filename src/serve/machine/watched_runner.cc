#include "watched_runner.h"

#include <unistd.h>

#include "heddle/runtime/core_wait.h"

namespace heddle {

Status WatchedRunner::run(std::span<LiveRequest* const> batch) {
  {
    const std::lock_guard lock(mutex_);
    thread_ = ::gettid();
    waited_before_ = waited_for_a_core(thread_);
    begun_ = live_now();
  }
  // What the runner throws is its caller's.
  struct End {
    ~End() {
      const std::lock_guard lock(of.mutex_);
      of.begun_ = 0;
    }
    WatchedRunner& of;
  } end{*this};
  return runner_->run(batch);
}

std::optional<WatchedRunner::Now> WatchedRunner::now() const {
  const std::lock_guard lock(mutex_);
  if (begun_ == 0) return std::nullopt;
  return Now{live_now() - begun_, waited_for_a_core(thread_) - waited_before_};
}

}  // namespace heddle
