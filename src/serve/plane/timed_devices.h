// Devices that take their planned time and compute nothing. Each is exclusive and serves what it is given in
// order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "heddle/fleet/data_plane_time.h"

namespace heddle {

class TimedDevices {
 public:
  using Ended = std::function<void(TimeNs measured)>;  // on the devices' own thread

  explicit TimedDevices(double slowdown);
  ~TimedDevices();  // what runs is forgotten
  TimedDevices(const TimedDevices&) = delete;
  TimedDevices& operator=(const TimedDevices&) = delete;

  void run(uint32_t device, TimeNs expected, Ended ended);
  void forget_all();  // all devices are idle; no end of before is told once this returns

 private:
  struct Run {
    TimeNs begun = 0;
    Ended ended;
  };
  void keep_time();

  const double slowdown_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<TimeNs, Run> ends_;
  std::map<uint32_t, TimeNs> busy_until_;
  bool telling_ = false, quit_ = false;
  std::thread thread_;
};

}  // namespace heddle
