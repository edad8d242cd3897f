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

  // Nothing, if the devices are another owner's by now.
  void run(uint64_t owner, uint32_t device, TimeNs expected, Ended ended);
  // Unless a later owner, by number, has them: all become idle, and runs of others report no end once this returns.
  void give_to(uint64_t owner);

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
  uint64_t owner_ = 0;
  bool reporting_ = false, quit_ = false;
  Thread thread_;
};

}  // namespace heddle
