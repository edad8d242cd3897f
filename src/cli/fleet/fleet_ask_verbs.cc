// heddle fleet explain, whatif and replan.

#include "fleet_verbs.h"
#include "heddle/fleet/fleet_check.h"
#include "heddle/fleet/fleet_explain.h"
#include "heddle/fleet/fleet_replan.h"
#include "heddle/report/fleet_plan_text.h"

namespace heddle::cli {
namespace {

struct ExplainFlags {
  std::string fleet, plan, planner = "auto";
  FleetGoalFlags goal;
};

Result<int> run_fleet_explain(const ExplainFlags& o, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto fleet, read_fleet(o.fleet));
  HEDDLE_ASSIGN_OR_RETURN(auto options, o.goal.options(invocation));
  FleetPlan plan;
  if (o.plan.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(plan, plan_fleet(fleet, o.planner, options));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(plan, read_fleet_plan(o.plan, fleet));
    HEDDLE_RETURN_IF_ERROR(check_fleet_plan(fleet, plan));
    options.objective = plan.objective;
    options.load_per_s = plan.load_per_s;
  }
  // The plans of fleets with one more device have a time limit of their own.
  HEDDLE_ASSIGN_OR_RETURN(const auto again, o.goal.options(invocation));
  options.deadline = again.deadline;
  HEDDLE_ASSIGN_OR_RETURN(const auto why, explain_fleet_plan(fleet, plan, o.planner, options));
  show_result(invocation, fleet_explanation_json(fleet, plan, why), fleet_explanation_text(fleet, plan, why));
  return kExitDone;
}

struct WhatifFlags {
  std::string fleet, planner = "auto";
  FleetGoalFlags goal;
  FleetTrafficFlags traffic;
  FleetChangeFlags change;
};

Result<int> run_fleet_whatif(const WhatifFlags& o, const Invocation& invocation) {
  if (!o.change.any())
    return invalid_input("fleet whatif needs a change: --count CLASS=N or --weight MODEL=W");
  HEDDLE_ASSIGN_OR_RETURN(const auto fleet, read_fleet(o.fleet));
  HEDDLE_ASSIGN_OR_RETURN(const auto changed, o.change.apply(fleet));
  // Each plan has the whole time limit.
  const auto planned = [&](const Fleet& of) -> Result<GoodputPlan> {
    HEDDLE_ASSIGN_OR_RETURN(const auto options, o.goal.options(invocation));
    return o.traffic.plan(of, o.planner, options);
  };
  HEDDLE_ASSIGN_OR_RETURN(const auto found, planned(fleet));
  HEDDLE_ASSIGN_OR_RETURN(const auto found_after, planned(changed));
  const auto words = o.traffic.goodput();
  show_result(invocation, changed_fleet_json(fleet, found, changed, found_after, words),
              changed_fleet_text(fleet, found, found_after, words));
  return kExitDone;
}

struct ReplanFlags {
  std::string fleet, running, output;
  double time_limit_s = 10;
  FleetChangeFlags change;
};

Result<int> run_fleet_replan(const ReplanFlags& o, const Invocation& invocation) {
  if (o.running.empty()) return invalid_input("fleet replan needs --running PLAN");
  HEDDLE_RETURN_IF_ERROR(check_output(o.output));
  HEDDLE_ASSIGN_OR_RETURN(const auto fleet, read_fleet(o.fleet));
  HEDDLE_ASSIGN_OR_RETURN(const auto running, read_fleet_plan(o.running, fleet));
  HEDDLE_ASSIGN_OR_RETURN(const auto changed, o.change.apply(fleet));
  FleetPlanOptions options;
  options.objective = running.objective;
  options.load_per_s = running.load_per_s;
  options.deadline = Deadline::after_seconds(o.time_limit_s, invocation.cancel);
  HEDDLE_ASSIGN_OR_RETURN(const auto result, replan_fleet(changed, running, options));
  if (!o.output.empty()) HEDDLE_RETURN_IF_ERROR(write_fleet_plan(o.output, result.plan, changed));
  show_result(invocation, replanned_fleet_json(changed, result), replanned_fleet_text(changed, result));
  return kExitDone;
}

}  // namespace

RunFn setup_fleet_explain(Command& command) {
  auto o = std::make_shared<ExplainFlags>();
  command.positional("FLEET", o->fleet, "fleet file (.json or .yaml)");
  command.option("--plan", o->plan, "explain this plan instead of a new one");
  command.option("--planner", o->planner, "one of `heddle fleet planners` (default auto)");
  o->goal.declare(command);
  return [o](const Invocation& invocation) { return run_fleet_explain(*o, invocation); };
}

RunFn setup_fleet_whatif(Command& command) {
  auto o = std::make_shared<WhatifFlags>();
  command.positional("FLEET", o->fleet, "fleet file (.json or .yaml)");
  command.option("--planner", o->planner, "one of `heddle fleet planners` (default auto)");
  o->change.declare(command);
  o->goal.declare(command);
  o->traffic.declare(command);
  return [o](const Invocation& invocation) { return run_fleet_whatif(*o, invocation); };
}

RunFn setup_fleet_replan(Command& command) {
  auto o = std::make_shared<ReplanFlags>();
  command.positional("FLEET", o->fleet, "fleet file (.json or .yaml)");
  command.option("--running", o->running, "the plan that runs now");
  o->change.declare(command);
  command.seconds("--time-limit", o->time_limit_s, "time for planning (default 10s)", 0, 1e7);
  command.option("-o,--output", o->output, "write the new plan (.json or .yaml)");
  return [o](const Invocation& invocation) { return run_fleet_replan(*o, invocation); };
}

}  // namespace heddle::cli
