#include "serve_drift.h"

namespace heddle::cli {

void ServeDriftFlags::declare(Command& command) {
  command.option("--replan-drift", share,
                 "fleet: when a pool's measured time over the plan's leaves 1/(1+SHARE) to 1+SHARE for long, "
                 "correct the times, plan anew and change to that (default: only when asked)",
                 .01, 100);
  command.option("--drift-time", drift_time_s,
                 "with --replan-drift: seconds that a pool must be off for (default 5)", .05, 86400);
  command.option("--drift-runs", drift_runs,
                 "with --replan-drift: runs that its ratio is of, and must be off for (default 50)", 1,
                 1000000);
  command.option(
      "--trial", trial_s,
      "seconds after which such a plan is held against the one before it, and rolled back if fewer "
      "requests are in time (default 10; 0: kept)",
      0, 86400);
  command.option("--trial-margin", margin, "fall of the part in time that is tolerated (default .05)", 0, 1);
  command.flag("--try-changes", try_changes,
               "fleet: plans that were asked for are on trial, too, where the old one could go on");
  command.option("--device-times", device_times,
                 "fleet: timed devices take this fleet file's times, while plans go by FLEET's");
}

bool ServeDriftFlags::any() const {
  return share >= 0 || drift_time_s >= 0 || trial_s >= 0 || margin >= 0 || drift_runs || try_changes ||
         !device_times.empty();
}

Status ServeDriftFlags::set(FleetControlOptions& options) const {
  if (share < 0 && (drift_time_s >= 0 || drift_runs))
    return Error(Code::kInvalidInput, "--drift-time and --drift-runs need --replan-drift SHARE");
  if (share < 0 && !try_changes && (trial_s >= 0 || margin >= 0))
    return Error(Code::kInvalidInput,
                 "--trial and --trial-margin need --replan-drift SHARE or --try-changes: no other plan is on "
                 "trial");
  if (try_changes && trial_s == 0)
    return Error(Code::kInvalidInput, "--try-changes and --trial 0 exclude each other: 0 keeps every plan");
  if (share >= 0) options.drift.share = share;
  if (drift_time_s >= 0) options.drift.hold_s = drift_time_s;
  if (drift_runs) options.drift.window_runs = static_cast<uint64_t>(*drift_runs);
  if (trial_s >= 0) options.trial.window_s = trial_s;
  if (margin >= 0) options.trial.margin = margin;
  options.try_changes = try_changes;
  if (!device_times.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(options.device_times, read_fleet(device_times));
  }
  return {};
}

}  // namespace heddle::cli
