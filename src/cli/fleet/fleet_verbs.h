// The parts of `heddle fleet`, and what they share.
#pragma once

#include <string>
#include <vector>

#include "heddle/command/command.h"
#include "heddle/fleet/fleet_planner.h"
#include "heddle/fleet/goodput_plan.h"
#include "heddle/report/fleet_load_text.h"
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
  // With margins for the arrivals; if none are given, the planner's plan.
  Result<GoodputPlan> plan(const Fleet& fleet, const std::string& planner,
                           const FleetPlanOptions& planning) const;
  // What was found, for goodput_text() and goodput_json().
  GoodputWords goodput() const;

 private:
  std::string words() const;  // "poisson traffic"
};

}  // namespace heddle::cli
