// The flags of `heddle serve FLEET` on plans that follow what is measured.
#pragma once

#include <string>

#include "command.h"
#include "heddle/serve/fleet_control.h"

namespace heddle::cli {

struct ServeDriftFlags {
  // Below 0: not given.
  double share = -1, drift_time_s = -1, trial_s = -1, margin = -1;
  std::optional<int64_t> drift_runs;
  bool try_changes = false;
  std::string device_times;  // a fleet file

  void declare(Command& command);
  bool any() const;
  // Into the options. Errors: flags that do nothing without others, the fleet file's.
  Status set(FleetControlOptions& options) const;
};

}  // namespace heddle::cli
