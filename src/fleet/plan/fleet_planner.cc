#include "heddle/fleet/fleet_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "heddle/base/log.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/fleet/fleet_check.h"
#include "planner_parts.h"
#include "ppipe_milp.h"

namespace heddle {
namespace {

constexpr FleetPlannerEntry kPlanners[] = {
    {"auto", "ppipe-dp where it fits, else ppipe-columns", ""},
    {"ppipe-dp", "exact dynamic program over devices; one or two classes, tables of up to 6000 cells",
     "PPipe's problem (ATC'25, A.2) without its limit of one configuration per sequence of classes"},
    {"ppipe-columns", "column linear program, rounded and completed; any number of classes and devices",
     "PPipe's problem (ATC'25, A.2) without its limit of one configuration per sequence of classes"},
    {"ppipe-milp", "the paper's MILP, literally", "PPipe, ATC'25, A.2"},
    {"np", "baseline: whole models on whole devices", "PPipe, ATC'25, section 7"},
    {"dart-r", "baseline: pairs of unequal devices", "PPipe, ATC'25, section 7; DART, RTSS'19"},
};
using PlanFn = Result<FleetAnswer> (*)(const FleetTask&);
constexpr PlanFn kFunctions[] = {plan_by_columns, plan_dp, plan_columns, plan_milp, plan_np, plan_dart_r};
static_assert(std::size(kPlanners) == std::size(kFunctions));

constexpr double kUsual_s = 60;  // default time limit of ppipe-milp and of proving

Result<size_t> index_named(const std::string& name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::size(kPlanners); ++i) {
    if (name == kPlanners[i].name) return i;
    names.emplace_back(kPlanners[i].name);
  }
  return invalid_input("no planner of fleets is named " + quote_text(name) + did_you_mean(name, names) +
                       "; there are " + join_names(names));
}

Result<FleetGoal> goal_of(const Fleet& fleet, const FleetPlanOptions& options) {
  FleetGoal goal;
  goal.objective = options.objective;
  const auto* name = fleet_objective_name(options.objective);
  double weights = 0;
  for (const auto& m : fleet.models) weights += m.weight;
  for (const auto& c : fleet.classes) {
    if ((options.objective == FleetObjective::kCost || options.objective == FleetObjective::kPower) &&
        c.count > 0 && device_cost(c, options.objective) <= 0)
      return invalid_input("class " + quote_text(c.name) + " has no " +
                           (options.objective == FleetObjective::kCost ? "cost_per_hour" : "watts") +
                           "; the objective " + name + " needs it of every class with devices");
  }
  if (options.objective != FleetObjective::kMaxMin && !(options.load_per_s > 0 && options.load_per_s <= 1e15))
    return invalid_input(std::string("the objective ") + name +
                         " needs a load above 0 (requests per second of all models)");
  for (const auto& m : fleet.models)
    goal.load.push_back(
        options.objective == FleetObjective::kMaxMin ? m.weight : options.load_per_s * m.weight / weights);
  return goal;
}

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

Result<FleetTask> make_task(const Fleet& fleet, const FleetPlanOptions& options) {
  HEDDLE_RETURN_IF_ERROR(check_fleet(fleet));
  HEDDLE_ASSIGN_OR_RETURN(auto goal, goal_of(fleet, options));
  HEDDLE_ASSIGN_OR_RETURN(auto columns, all_columns(fleet, rules_of(fleet), options.deadline));
  auto needs = device_needs(fleet, columns);
  auto bound = best_price_bound(fleet, needs, goal, options.deadline.sooner(10));
  return FleetTask{fleet, std::move(goal), std::move(columns), std::move(needs), std::move(bound), options};
}

FleetPlan evaluated(const FleetTask& task, const std::string& planner, FleetAnswer answer) {
  FleetPlan plan;
  plan.fleet = task.fleet.name;
  plan.planner = planner;
  plan.objective = task.options.objective;
  plan.load_per_s = task.options.objective == FleetObjective::kMaxMin ? 0 : task.options.load_per_s;
  plan.models = std::move(answer.models);
  evaluate_fleet_plan(task.fleet, plan);
  plan.bound = task.bound.value;
  plan.proof = task.bound.reason;
  if (answer.optimal) answer.bound = plan.value;
  // The bound that leaves less room is the worse value.
  if (answer.bound && is_better(plan.objective, plan.bound, *answer.bound)) {
    plan.bound = *answer.bound;
    plan.proof = answer.proof;
  }
  // Value and bound are sums in different orders: rounding must not put the plan beyond its bound.
  if (std::abs(plan.bound - plan.value) <= 1e-9 * std::abs(plan.value)) plan.bound = plan.value;
  return plan;
}

}  // namespace

std::span<const FleetPlannerEntry> fleet_planners() { return kPlanners; }

Result<FleetAnswer> plan_by_columns(const FleetTask& task) {
  if (!dp_fits(task.fleet)) return plan_columns(task);
  auto answer = plan_dp(task);
  const bool split = std::any_of(task.fleet.classes.begin(), task.fleet.classes.end(),
                                 [](const DeviceClass& c) { return c.count > 0 && c.share_levels > 1; });
  if (!task.options.prove || !split || !answer.ok()) return answer;
  HEDDLE_ASSIGN_OR_RETURN(auto proven, plan_columns(task));
  const auto value = [&task](const std::vector<ModelPlan>& models) {
    FleetPlan plan;
    plan.models = models;
    plan.objective = task.goal.objective;
    plan.load_per_s = task.options.load_per_s;
    evaluate_fleet_plan(task.fleet, plan);
    return plan.value;
  };
  if (!is_better(task.goal.objective, value(proven.models), value(answer->models)))
    proven.models = std::move(answer->models);
  return proven;
}

Result<FleetPlan> plan_fleet(const Fleet& fleet, const std::string& planner, const FleetPlanOptions& given) {
  const auto began = std::chrono::steady_clock::now();
  HEDDLE_ASSIGN_OR_RETURN(const auto index, index_named(planner));
  const PlanFn plan_function = kFunctions[index];
  auto options = given;
  // A deadline that the caller gives counts, even if it is later than the default.
  if ((plan_function == plan_milp || options.prove) && std::isinf(options.deadline.seconds_left()))
    options.deadline = options.deadline.sooner(kUsual_s);
  HEDDLE_ASSIGN_OR_RETURN(const auto task, make_task(fleet, options));
  log_debug([&] {
    size_t columns = 0;
    for (const auto& of_model : task.columns) columns += of_model.size();
    return fmt::format("planner {}: {} and a first bound of {:.6g} after {}", planner,
                       counted(columns, "column"), task.bound.value, format_us(1e6 * seconds_since(began)));
  });
  HEDDLE_ASSIGN_OR_RETURN(auto answer, plan_function(task));
  auto plan = evaluated(task, planner, std::move(answer));
  plan.planning_s = seconds_since(began);
  log_debug([&] {
    return fmt::format("planner {} took {}; value {:.6g}, bound {:.6g}", planner,
                       format_us(1e6 * plan.planning_s), plan.value, plan.bound);
  });
  if (plan.objective == FleetObjective::kMaxMin && plan.value <= 0) {
    if (options.deadline.should_stop())
      return cancelled_error(planner + " was stopped before it had a plan; give it more time");
    size_t none = 0;
    while (plan.models[none].rate_per_s > 0) ++none;
    return infeasible("no plan of " + planner + " serves every model: with " +
                      std::to_string(fleet.devices()) + " devices for " +
                      std::to_string(fleet.models.size()) + " models, model " +
                      quote_text(fleet.models[none].name) + " gets none; add devices or take a model away");
  }
  HEDDLE_RETURN_IF_ERROR(check_planned(fleet, plan));
  return plan;
}

Result<std::string> ppipe_milp_as_lp(const Fleet& fleet, const FleetPlanOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const auto task, make_task(fleet, options));
  return to_lp(PpipeMilp(task).milp());
}

}  // namespace heddle
