// The parts of `heddle fleet`, and what they share.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/command/command.h"
#include "heddle/fleet/fleet_planner.h"
#include "heddle/fleet/goodput_plan.h"
#include "heddle/session/fleet_profile.h"
#include "serve/data_plane_flags.h"

namespace heddle::cli {

RunFn setup_fleet_compare(Command& command);
RunFn setup_fleet_explain(Command& command);
RunFn setup_fleet_follow(Command& command);
RunFn setup_fleet_import(Command& command);
RunFn setup_fleet_new(Command& command);
RunFn setup_fleet_plan(Command& command);
RunFn setup_fleet_planners(Command& command);
RunFn setup_fleet_profile(Command& command);
RunFn setup_fleet_replan(Command& command);
RunFn setup_fleet_simulate(Command& command);
RunFn setup_fleet_split(Command& command);
RunFn setup_fleet_verify(Command& command);
RunFn setup_fleet_whatif(Command& command);

// Objective, load and time of planning.
struct FleetGoalFlags {
  std::string objective = "max-min";
  double load_per_s = 0, time_limit_s = 0;
  bool prove = false;
  void declare(Command& command);
  Result<FleetPlanOptions> options(const Invocation& invocation) const;
};

// How models are cut for a fleet file, and where that is.
struct FleetCutFlags {
  std::string method = "balanced", output;
  std::vector<std::string> shapes;
  bool fp16_cuts = false;
  int64_t blocks = 10;
  void declare(Command& command);
  // The models of these paths with their shapes.
  Result<std::vector<ModelSpec>> sources(const std::vector<std::string>& paths) const;
  Result<BlockSettings> settings() const;
};

// --count CLASS=N, --weight MODEL=W.
struct FleetChangeFlags {
  std::vector<std::string> counts, weights;
  void declare(Command& command);
  bool any() const { return !counts.empty() || !weights.empty(); }
  // The fleet with all changes; unknown names and numbers out of range are errors.
  Result<Fleet> apply(Fleet fleet) const;
};

// --traffic and --trace: arrivals that a plan is made for.
struct FleetTrafficFlags {
  TrafficFlags traffic;
  std::vector<std::string> traces;  // paths
  double attainment = .99;
  int64_t seed = 1;
  void declare(Command& command);
  bool given() const { return !traffic.kind.empty() || !traces.empty(); }
  std::string words() const;  // "poisson traffic"
  // With margins for the arrivals; if none are given, the planner's plan.
  Result<GoodputPlan> plan(const Fleet& fleet, const std::string& planner,
                           const FleetPlanOptions& planning) const;
  // What was found: lines, or "" if no arrivals are given; an object.
  std::string text(const Fleet& fleet, const GoodputPlan& found) const;
  Json json(const GoodputPlan& found) const;
};

// `value_unit` of the objective: "/s", "per hour", "W", "/s".
const char* value_unit(FleetObjective objective);
std::string value_text(FleetObjective objective, double value);
// "times: estimated on L4 and P4, within a factor of 2\n", or "" if the fleet does not say.
std::string times_line(const Fleet& fleet);
// What bounds and gaps of the fleet's plans are for, without the sources of times_line().
inline constexpr const char* kFleetTimes = "the times of the fleet file";
// bound_note() with the sources: "Bound and gap are for the times of the fleet file (estimated on L4 ..).\n"
std::string fleet_bound_note(const Fleet& fleet);
// planner, objective, value, bound, bound_reason, bound_claimed_by, gap, planning_s, verified, devices, times.
Json plan_row(const Fleet& fleet, const FleetPlan& plan);
// The pipelines and pools of a plan, one pool a line.
std::string pools_text(const Fleet& fleet, const FleetPlan& plan);
// "auto: 2482 req/s, bound 2490 req/s for the times of the fleet file, gap 0.321 %, planned in 12 ms", and the proof on
// a line of its own.
std::string summary_text(const FleetPlan& plan);

}  // namespace heddle::cli
