// Plans that follow the load over time, with the fewest device-hours for a wanted share of requests in time.
//
// Time is divided into windows. At each window's start the rates are forecast from earlier windows alone, and a plan
// with few devices is chosen that keeps most of the running pools (replan_for_load()). Every choice is tried in the
// simulator on the last window's arrivals at the forecast rate. More devices are added at once. They are given back
// once the lower need has held for some windows. If no plan serves the forecast, the plan of greatest rate on all
// devices runs. The whole course is then simulated with its changes of plan.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/base/progress.h"
#include "heddle/fleet/fleet_plan.h"
#include "heddle/fleet/simulator.h"

namespace heddle {

struct FollowOptions {
  double duration_s = 0;         // all arrivals lie before it
  double window_s = 10;          // time between decisions
  double load_s = .2;            // time in which a device loads other weights; less than a window
  int hold = 3;                  // windows for which a lower need must have held
  double day_s = 0;              // period of the load, from which the forecast knows the day before; 0: none
  double attainment = .99;       // wanted share in time, of each model
  SimulationOptions simulation;  // scheduler, dispatch, seed, cancel; the rest is set here
  ProgressSink* progress = nullptr;
};

enum class FollowReason { kStart, kUp, kDown, kFallback };
const char* follow_reason_name(FollowReason reason);  // "start", "up", "down", "fallback"

struct FollowChange {
  FollowReason reason = FollowReason::kStart;
  double at_s = 0;
  double forecast_per_s = 0;     // of all models; 0 at the start
  std::vector<int64_t> devices;  // [class] of the new plan
  double moved_devices = 0;      // that load other weights
};

// Plans over the whole time, and what they served.
struct FollowCourse {
  double device_hours = 0;  // of devices in the plan or loading
  // A plan's devices may still answer requests when it has ended, at most for the longest SLO: these hours, not in the
  // above.
  double overtime_hours = 0;
  RequestCounts total;
  double attainment = 1;              // of the worst model
  std::vector<FollowChange> changes;  // the first is the start
  size_t fallback_windows = 0;        // in which no plan served the forecast
};

struct FollowResult {
  size_t windows = 0;
  FollowCourse rolling;
  // One plan for the greatest rate of each model in any window. All arrivals are known: it is the one with the fewest
  // devices, in steps of the load, that reaches the attainment in the simulator.
  FollowCourse fixed;
  // Every window planned for itself with its arrivals known, without changes. An estimate, not a bound: its plans are
  // those of the planner, in steps of the load.
  FollowCourse hindsight;
  // No plans with the fleet's margins answer the wanted share of these requests with fewer device-hours, whatever
  // their changes: the price bound of the mean rates without limits of the classes.
  double bound_device_hours = 0;
};

// A course that serves what it does with fewer device-hours than the bound allows: kInternal, with the files in the
// working directory that now have fleet and arrivals.
Status check_courses(const Fleet& fleet, std::span<const Arrival> arrivals, const FollowOptions& options,
                     const FollowResult& result);

// Deterministic for its arguments. Errors: options out of range, a fleet that cannot serve every model, those of
// plan_fleet(), simulate() and check_courses().
Result<FollowResult> follow_load(const Fleet& fleet, std::span<const Arrival> arrivals,
                                 const FollowOptions& options);

}  // namespace heddle
