#include "device_thread.h"

#include <exception>
#include <span>
#include <string>

#include "fault.h"
#include "heddle/runtime/affinity.h"

namespace heddle {
namespace {

// A runner is a backend's code, and what it throws is its batch's alone.
Status run_batch(DeviceRunner& runner, std::span<LiveRequest* const> batch) {
  try {
    if (fault_at(FaultPoint::kHandOver) || fault_or_throw_at(FaultPoint::kRun)) return fault_error();
    auto status = runner.run(batch);
    if (fault_or_throw_at(FaultPoint::kRan)) return fault_error();
    return status;
  } catch (const std::exception& e) {
    return internal_error(std::string("the device failed: ") + e.what());
  }
}

}  // namespace

DeviceThread::DeviceThread(std::shared_ptr<DeviceRunner> runner, Ended ended)
    : runner_(std::move(runner)), ended_(std::move(ended)), thread_([this] { serve(); }) {}

void DeviceThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DeviceThread::give(DeviceTask task) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void DeviceThread::serve() {
  const AffinityGuard bound(runner_->cores());
  for (;;) {
    DeviceTask task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return quit_ || !inbox_.empty(); });
      if (quit_) return;
      task = std::move(inbox_.front());
      inbox_.erase(inbox_.begin());
    }
    const auto status = run_batch(*runner_, task.batch);
    fault_at(FaultPoint::kReport);
    ended_(task, status);
  }
}

}  // namespace heddle
