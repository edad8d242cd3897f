// Devices that compute nothing: a run takes its planned time. Each device is exclusive and serves its runs in
// order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "heddle/base/sync.h"
#include "heddle/fleet/data_plane_time.h"

namespace heddle {

class TimedDevices {
 public:
  // On the devices' own thread. `error`: why the run failed; empty: it did not.
  using Ended = std::function<void(TimeNs measured, const std::string& error)>;
  // Asked at the end of each run on the device: why it fails; empty: it does not. Must not block.
  using Fails = std::function<std::string(uint32_t device)>;

  // Null: no run fails.
  explicit TimedDevices(double slowdown, Fails fails = nullptr);
  ~TimedDevices();  // drops the runs
  TimedDevices(const TimedDevices&) = delete;
  TimedDevices& operator=(const TimedDevices&) = delete;

  // Nothing, if the devices are another owner's by now.
  void run(uint64_t owner, uint32_t device, TimeNs expected, Ended ended);
  // Unless a later owner, by number, has them: all become idle, and runs of others report no end once this returns.
  void give_to(uint64_t owner);

  struct Counts {
    uint64_t runs = 0;      // of all owners, that have ended without an error
    uint64_t owner = 0;     // that has the devices
    uint64_t of_owner = 0;  // of `runs`
    uint64_t strays = 0;    // runs under way of other owners: none, or a device works for two
  };
  Counts counts() const;

 private:
  struct Run {
    uint64_t owner = 0;
    uint32_t device = 0;
    TimeNs begun = 0;
    Ended ended;
  };
  void keep_time();

  const double slowdown_;
  const Fails fails_;
  mutable Mutex mutex_;  // guards what follows
  Condition changed_;
  std::multimap<TimeNs, Run> ends_;
  std::map<uint32_t, TimeNs> busy_until_;
  uint64_t owner_ = 0, runs_ = 0, of_owner_ = 0;
  bool reporting_ = false, quit_ = false;
  Thread thread_;
};

}  // namespace heddle
