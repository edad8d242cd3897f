// Planners: problem + options + deadline -> plan + bound.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/progress.h"
#include "heddle/base/status.h"
#include "heddle/plan/bounds.h"
#include "heddle/plan/evaluator.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/planners/trajectory.h"

namespace heddle {

enum class StopReason { kOptimal, kFinished, kTimeLimit, kCancelled };
const char* stop_reason_name(StopReason reason);

struct PlannerOptions {
  Deadline deadline;  // return the best so far when it stops
  uint64_t seed = 1;
  int threads = 1;
  ProgressSink* progress = nullptr;  // may be null
  const Plan* start = nullptr;       // a plan to improve, where the planner can; not kept
  // Of planners that cut a model into submodels (sortinghat and its like): subgraphs per device in one
  // submodel (q, even, at least 2), partition ops per submodel (nDom; 0: look for the best).
  int subgraph_slots = 6, dominators = 1;
  // Of the planner's own settings (PlannerInfo::settings) those that are not left at their defaults.
  std::map<std::string, std::string> settings;
  bool is_set(const std::string& setting, std::string_view value) const {
    const auto at = settings.find(setting);
    return at != settings.end() && at->second == value;
  }
};

// A planner's answer; run_planner() adds timeline, bound and verification.
struct PlannerOutput {
  Plan plan;
  std::optional<Bound> bound;  // only if the planner proves one of its own
  StopReason stop = StopReason::kFinished;
  std::string detail;  // one line for people: "best plan from heft"
  std::map<std::string, double> counters;
  std::vector<Incumbent> trajectory;  // of planners that improve step by step; may be empty
};

// A choice that one planner offers beside the options of all.
struct PlannerSetting {
  std::string name;                 // "solver"
  std::vector<std::string> values;  // the first is the default
  std::string what;                 // what it chooses
};

// Another name of a planner, with some of its settings chosen.
struct PlannerAlias {
  std::string name;  // "sortinghat-cp"
  std::map<std::string, std::string> settings;
  std::string description;                               // one line
  std::string source = {}, exploits = {}, ignores = {};  // empty: the planner's
};

// Capabilities are declared, never guessed.
struct PlannerInfo {
  std::string name;         // "heft"
  std::string description;  // one line
  std::string source;       // paper and section
  std::vector<Objective> objectives;
  std::string exploits, ignores;  // of the execution model
  bool ready = true;              // false: experimental
  bool stages = false;            // its bound holds where devices may run stages; else it is not used there
  bool cold_start = false;        // the same for direct host access, resident and dropped parameters
  std::vector<Transfers> transfers = {Transfers::kRoutes};  // the problems that it plans, by their transfers
  std::vector<PlannerSetting> settings;
  std::vector<PlannerAlias> aliases;
};

// Plans a validated problem. Deterministic for a seed and thread count (deadlines apart).
using PlanFunction = Result<PlannerOutput> (*)(const Problem& problem, const PlannerOptions& options);

// A planner's file ends with a function `NAME_planner()` that returns this; core/planners.inc lists it.
struct PlannerEntry {
  PlannerInfo info;
  PlanFunction run = nullptr;
  // Of an alias: the planner's name, and its settings.
  std::string alias_of;
  std::map<std::string, std::string> chosen;

  bool supports(const Problem& problem) const;
  // The planner alone, for planners that begin with other planners' plans. An alias's settings come before
  // those in `options`.
  Result<PlannerOutput> plan(const Problem& problem, PlannerOptions options) const;
};
// All planners, each followed by its aliases, in the order of `heddle planners`.
std::span<const PlannerEntry> planner_registry();
const PlannerEntry* find_planner(std::string_view name);  // nullptr when there is none

struct PlanResult {
  std::string planner;
  Plan plan;
  Timeline timeline;
  double value_us = 0;    // objective_us()
  Bound bound;            // the better of the planner's and the combinatorial one
  double gap = 0;         // (value - bound) / bound
  bool verified = false;  // always true when returned
  StopReason stop = StopReason::kFinished;
  std::string detail;
  std::map<std::string, double> counters;
  double planning_s = 0;
  std::vector<Incumbent> trajectory;  // at least the final plan and bound
};

// The single entry point: validates the problem, refuses objectives, transfers and settings that the planner
// does not support, runs it, evaluates and checks what it returns (a plan that fails the check is an
// internal error, and so is one below the bound: below_bound()) and adds the bound.
Result<PlanResult> run_planner(const PlannerEntry& entry, const Problem& problem,
                               const PlannerOptions& options);
// The second half of run_planner(), also for plans from elsewhere: adds to a planner's output timeline,
// value, bound and gap and checks them. The error names `planner`.
Result<PlanResult> verified_result(const std::string& planner, const Problem& problem, PlannerOutput output,
                                   double planning_s);

// docs/planners.md, made from the registry: a table of all planners and a section for each.
std::string planners_markdown();

}  // namespace heddle
