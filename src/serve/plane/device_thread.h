// The thread of a device of this machine. A device is exclusive: it holds one task.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "heddle/base/sync.h"
#include "heddle/fleet/scheduler.h"
#include "heddle/serve/live_plane.h"

namespace heddle {

// A batch for a device's thread. Its requests stay in the plane until the run has ended.
struct DeviceTask {
  WorkId work = 0;
  std::vector<LiveRequest*> batch;
};

class DeviceThread {
 public:
  using Ended = std::function<void(const DeviceTask&, const Status&)>;  // on the device's thread

  // Throws std::system_error when no thread can be started.
  DeviceThread(std::shared_ptr<DeviceRunner> runner, Ended ended);
  ~DeviceThread() { stop(); }
  void give(DeviceTask task);
  // Waits for the run that is under way and for what its end brings. What is given afterwards never runs.
  void stop();

 private:
  void serve();

  const std::shared_ptr<DeviceRunner> runner_;
  const Ended ended_;
  Mutex mutex_;
  Condition changed_;
  std::vector<DeviceTask> inbox_;  // a second one only while the end of the first is being reported
  bool quit_ = false;
  Thread thread_;
};

}  // namespace heddle
