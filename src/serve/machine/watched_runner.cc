#include "watched_runner.h"

#include <sched.h>
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
      const Now now = of.present();
      of.ended_.elapsed += now.elapsed;
      of.ended_.waited += now.waited;
      of.begun_ = 0;
    }
    WatchedRunner& of;
  } end{*this};
  return runner_->run(batch);
}

std::optional<WatchedRunner::Now> WatchedRunner::now() const {
  const std::lock_guard lock(mutex_);
  if (begun_ == 0) return std::nullopt;
  return present();
}

WatchedRunner::Now WatchedRunner::present() const {
  return {live_now() - begun_, waited_for_a_core(thread_) - waited_before_};
}

WatchedRunner::Now WatchedRunner::all() const {
  const std::lock_guard lock(mutex_);
  if (begun_ == 0) return ended_;
  const Now now = present();
  return {ended_.elapsed + now.elapsed, ended_.waited + now.waited};
}

std::vector<int> WatchedRunner::bound() const {
  const std::lock_guard lock(mutex_);
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (thread_ == 0 || ::sched_getaffinity(thread_, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

}  // namespace heddle
