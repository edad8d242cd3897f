// Devices that compute nothing: a run takes its planned time. Each device is exclusive and serves its runs in
// order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "heddle/base/sync.h"
#include "heddle/fleet/data_plane_time.h"

namespace heddle {

class TimedDevices {
 public:
  using Ended = std::function<void(TimeNs measured)>;  // on the devices' own thread

  explicit TimedDevices(double slowdown);
  ~TimedDevices();  // drops the runs
  TimedDevices(const TimedDevices&) = delete;
  TimedDevices& operator=(const TimedDevices&) = delete;

  void run(uint32_t device, TimeNs expected, Ended ended);
  void forget_all();  // all devices become idle; earlier runs report no end once this returns

 private:
  struct Run {
    TimeNs begun = 0;
    Ended ended;
  };
  void keep_time();

  const double slowdown_;
  Mutex mutex_;
  Condition changed_;
  std::multimap<TimeNs, Run> ends_;
  std::map<uint32_t, TimeNs> busy_until_;
  bool reporting_ = false, quit_ = false;
  Thread thread_;
};

}  // namespace heddle
