#include "timed_devices.h"

#include <sys/prctl.h>

#include <algorithm>

#include "heddle/serve/live_plane.h"

namespace heddle {

TimedDevices::TimedDevices(double slowdown, Fails fails)
    : slowdown_(slowdown), fails_(std::move(fails)), thread_([this] { keep_time(); }) {}

TimedDevices::~TimedDevices() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void TimedDevices::run(uint64_t owner, uint32_t device, TimeNs expected, Ended ended) {
  {
    const std::lock_guard lock(mutex_);
    if (owner != owner_) return;
    TimeNs& busy = busy_until_[device];
    const TimeNs begin = std::max(busy, live_now());
    busy = begin + static_cast<TimeNs>(static_cast<double>(expected) * slowdown_);
    ends_.emplace(busy, Run{owner, device, begin, std::move(ended)});
  }
  changed_.notify_all();
}

void TimedDevices::give_to(uint64_t owner) {
  std::unique_lock lock(mutex_);
  if (owner < owner_) return;
  owner_ = owner;
  of_owner_ = 0;
  ends_.clear();
  busy_until_.clear();
  changed_.wait(lock, [this] { return !reporting_; });
}

TimedDevices::Counts TimedDevices::counts() const {
  const std::lock_guard lock(mutex_);
  const auto strays =
      std::ranges::count_if(ends_, [this](const auto& e) { return e.second.owner != owner_; });
  return {runs_, owner_, of_owner_, static_cast<uint64_t>(strays)};
}

void TimedDevices::keep_time() {
  ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);  // 1 us instead of 50
  std::unique_lock lock(mutex_);
  while (!quit_) {
    if (ends_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const TimeNs at = ends_.begin()->first;
    if (at > live_now()) {
      changed_.wait_until(lock, at);
      continue;
    }
    const Run run = std::move(ends_.begin()->second);
    ends_.erase(ends_.begin());
    reporting_ = true;
    const std::string error = fails_ ? fails_(run.device) : "";
    runs_ += error.empty();
    of_owner_ += error.empty() && run.owner == owner_;
    lock.unlock();
    run.ended(live_now() - run.begun, error);
    lock.lock();
    reporting_ = false;
    changed_.notify_all();
  }
}

}  // namespace heddle
