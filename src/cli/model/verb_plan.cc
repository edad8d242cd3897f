// heddle plan and heddle compare.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "heddle/base/errors.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/terminal.h"
#include "heddle/base/units.h"
#include "heddle/plan/stage_list.h"
#include "heddle/report/plan_text.h"
#include "heddle/session/compare.h"
#include "model_flags.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct PlanOptions : PlanningFlags {
  std::string planner = "auto";
  std::string output, schedule;
  bool strict = false, as_scheduled = false;
  RobustFlag robust;
};

// Warns if a device that the user named gets no segment; with --strict this is an error.
Status check_requested(const Problem& problem, const PlanResult& result, bool strict) {
  std::vector<std::string> idle;
  const Cluster& cluster = *problem.cluster;
  for (const auto device : problem.devices) {
    // Hardware that the user named is in use if one of its variants is.
    bool used = cluster.is_variant(device) && problem.may_use(cluster.physical(device));
    for (const auto& s : result.plan.segments)
      used |= s.device == device || (cluster.physical(s.device) == device);
    if (!used) idle.push_back(problem.cluster->device(device).name);
  }
  if (idle.empty()) return {};
  const std::string message =
      fmt::format("requested but not used: {} (`heddle explain` says why)", fmt::join(idle, ", "));
  if (strict) return infeasible(message);
  print(stderr, "heddle: {} {}\n", painted_error(Ink::kYellow, "warning:"), message);
  return {};
}

Result<PlanResult> scheduled_plan(Session& session, const std::string& path) {
  if (!session.loaded.ios)
    return invalid_input(path + ": --as-scheduled needs a schedule in the form of IOS's files");
  if (session.problem.graph->num_ops() != session.loaded.graph->num_ops())
    return invalid_input(
        path + ": --as-scheduled schedules the file's ops as they are; leave --coarsen and --units out");
  return plan_as_scheduled(session, path);
}

// Writes the model's file with the plan's stages.
Status write_stages(const PlanOptions& o, const Session& session, const PlanResult& result) {
  HEDDLE_ASSIGN_OR_RETURN(const auto document, read_json_file(o.model.spec.path));
  const auto stages = ios_stages_of(session.problem, result.plan);
  return write_file_atomic(o.schedule, with_stages(document, stages).dump(1) + "\n");
}

Result<int> run_plan_verb(PlanOptions o, const Invocation& invocation) {
  HEDDLE_RETURN_IF_ERROR(check_output(o.output));
  if (o.output.ends_with(".html") || o.output.ends_with(".svg"))
    return invalid_input("-o " + o.output +
                         ": a plan is written as JSON; write it to plan.json and make the page with " +
                         "`heddle report plan.json -o " + o.output + "`");
  HEDDLE_RETURN_IF_ERROR(check_output(o.schedule));
  HEDDLE_RETURN_IF_ERROR(check_planner(o.planner));
  if (o.as_scheduled && o.planner != "auto")
    return invalid_input("--as-scheduled takes the file's schedule; leave --planner out");
  if (o.as_scheduled && o.robust.share > 0)
    return invalid_input("--as-scheduled takes the file's schedule; leave --robust out");
  HEDDLE_ASSIGN_OR_RETURN(auto session, o.open(invocation));
  if (!o.schedule.empty() &&
      (!session.loaded.ios || session.problem.graph->num_ops() != session.loaded.graph->num_ops()))
    return invalid_input(o.model.spec.path +
                         ": --schedule needs a graph in the form of IOS's files, planned op by op");
  HEDDLE_ASSIGN_OR_RETURN(auto result, o.as_scheduled
                                           ? scheduled_plan(session, o.model.spec.path)
                                           : o.robust.plan(session, o.planner, o.search, invocation));
  if (invocation.progress) invocation.progress->finish();
  HEDDLE_RETURN_IF_ERROR(check_requested(session.problem, result, o.strict));
  if (!o.schedule.empty()) HEDDLE_RETURN_IF_ERROR(write_stages(o, session, result));
  if (!o.output.empty()) {
    HEDDLE_RETURN_IF_ERROR(write_plan_file(o.output, plan_file(session.problem, result, o.search.seed)));
  }
  if (invocation.json) {
    Json row = plan_json(session, result, o.robust.planned);
    if (!o.output.empty()) row["output"] = o.output;
    show_json(invocation, row);
  } else {
    print("{}", plan_text(session, result, o.robust.planned));
    if (!o.output.empty()) print("\nwritten to {}\n", o.output);
  }
  return kExitDone;
}

struct ComparePlannersFlags : PlanningFlags {
  std::string planners;
};

Result<int> run_compare(const ComparePlannersFlags& o, const Invocation& invocation) {
  std::vector<const PlannerEntry*> entries;
  for (const auto& name : split_list(o.planners)) {
    HEDDLE_ASSIGN_OR_RETURN(const auto* entry, planner_named(name));
    entries.push_back(entry);
  }
  HEDDLE_ASSIGN_OR_RETURN(auto session, o.open(invocation));
  HEDDLE_ASSIGN_OR_RETURN(const auto results,
                          compare_planners(session.problem, entries, o.search, invocation));
  show_result(invocation, comparison_json(session.problem, results), comparison_text(session, results));
  const bool any = std::ranges::any_of(results, [](const ComparedPlan& r) { return r.result.ok(); });
  return any ? kExitDone : kExitNo;
}

}  // namespace

RunFn setup_plan(Command& command) {
  auto o = std::make_shared<PlanOptions>();
  o->declare(command);
  command.option("--planner", o->planner, "one of `heddle planners` (default auto)");
  o->robust.declare(command);
  command.option("-o,--output", o->output, "write the plan to this file (JSON)");
  command.group(kResearchFlags);
  command.flag("--as-scheduled", o->as_scheduled, "take the schedule in the file (IOS's files)");
  command.option("--schedule", o->schedule, "write the model's file with the plan's stages (IOS's files)");
  command.group("");
  command.flag("--strict", o->strict, "fail if a device named with --devices is not used");
  return [o](const Invocation& invocation) { return run_plan_verb(*o, invocation); };
}

RunFn setup_compare(Command& command) {
  auto o = std::make_shared<ComparePlannersFlags>();
  o->declare(command);
  command.option("--planners", o->planners,
                 "comma-separated names (default: all that support the objective)");
  return [o](const Invocation& invocation) { return run_compare(*o, invocation); };
}

}  // namespace heddle::cli
