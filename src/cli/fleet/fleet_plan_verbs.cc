// heddle fleet plan, compare, verify and import.

#include <algorithm>

#include "fleet_verbs.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/fleet/estimated_rates.h"
#include "heddle/fleet/fleet_check.h"
#include "heddle/fleet/fleet_compare.h"
#include "heddle/fleet/ppipe_data.h"
#include "heddle/report/fleet_plan_text.h"

namespace heddle::cli {
namespace {

struct PlanFlags {
  std::string fleet, planner = "auto", output, lp;
  FleetGoalFlags goal;
  FleetTrafficFlags traffic;
};

Result<int> run_fleet_plan(const PlanFlags& o, const Invocation& invocation) {
  HEDDLE_RETURN_IF_ERROR(check_output(o.output));
  HEDDLE_RETURN_IF_ERROR(check_output(o.lp));
  if (!o.lp.empty() && o.planner != "ppipe-milp")
    return invalid_input("--write-lp writes the MILP of ppipe-milp; add --planner ppipe-milp");
  HEDDLE_ASSIGN_OR_RETURN(const auto fleet, read_fleet(o.fleet));
  HEDDLE_ASSIGN_OR_RETURN(const auto options, o.goal.options(invocation));
  if (!o.lp.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(const auto lp, ppipe_milp_as_lp(fleet, options));
    HEDDLE_RETURN_IF_ERROR(write_file_atomic(o.lp, lp));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto found, o.traffic.plan(fleet, o.planner, options));
  const FleetPlan& plan = found.plan;
  if (!o.output.empty()) HEDDLE_RETURN_IF_ERROR(write_fleet_plan(o.output, plan, fleet));
  const auto words = o.traffic.goodput();
  auto row = plan_row(fleet, plan);
  if (!o.output.empty()) row["output"] = o.output;
  row["models"] = to_json(plan, fleet)["models"];
  if (!words.arrivals.empty()) row["in_time"] = goodput_json(found, words);
  show_result(invocation, row,
              fleet_plan_text(fleet, plan) + goodput_text(fleet, found, words) + times_line(fleet));
  return kExitDone;
}

struct CompareFlags {
  std::string fleet, planners = "auto,np,dart-r";
  FleetGoalFlags goal;
};

Result<int> run_fleet_compare(const CompareFlags& o, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto fleet, read_fleet(o.fleet));
  HEDDLE_ASSIGN_OR_RETURN(const auto plans, compare_fleet_planners(fleet, split_list(o.planners), [&] {
                            return o.goal.options(invocation);
                          }));
  show_result(invocation, fleet_comparison_shown(fleet, plans));
  return std::ranges::any_of(plans, [](const auto& p) { return p.plan.ok(); }) ? kExitDone : kExitNo;
}

Result<int> run_fleet_verify(const std::string& fleet_path, const std::string& plan_path,
                             const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto fleet, read_fleet(fleet_path));
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, read_fleet_plan(plan_path, fleet));
  const auto problems = fleet_plan_problems(fleet, plan);
  if (invocation.json) {
    show_json(invocation, {{"verified", problems.empty()}, {"problems", problems}});
  } else if (problems.empty()) {
    print("{}: valid; rates, deadlines, memory and devices were recomputed from the times\n", plan_path);
  } else {
    for (const auto& p : problems) print("{}\n", p);
  }
  return problems.empty() ? kExitDone : kExitNo;
}

struct ImportFlags {
  std::string input, cluster, models, weights, reference, output;
};

// Where the rates at which batches fill come from, for people; sets them.
Result<std::string> estimate_rates(const ImportFlags& o, const PpipeData& data, Fleet& fleet,
                                   const Invocation& invocation) {
  if (!o.reference.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(const auto references, read_ppipe_references(data, o.input, o.reference));
    auto rates = published_rates(fleet, o.cluster, references);
    if (!rates.ok()) return std::move(rates).error().with_context(o.reference);
    HEDDLE_RETURN_IF_ERROR(set_estimated_rates(fleet, *rates));
    return o.reference;
  }
  FleetPlanOptions options;
  options.deadline = Deadline::never(invocation.cancel);
  const auto rates = np_rates(fleet, options);
  if (rates.ok()) {
    HEDDLE_RETURN_IF_ERROR(set_estimated_rates(fleet, *rates));
    return std::string("an np plan made for it");
  }
  if (rates.error().code() != Code::kInfeasible) return rates.error();
  return std::string();  // no model is to be left out because no device alone serves it in time
}

Result<int> run_fleet_import(const ImportFlags& o, const Invocation& invocation) {
  if (o.output.empty()) return invalid_input("fleet import needs -o FILE.json or FILE.yaml");
  HEDDLE_RETURN_IF_ERROR(check_output(o.output));
  HEDDLE_ASSIGN_OR_RETURN(const auto data, read_ppipe_data(o.input));
  auto names = split_list(o.models);
  for (const auto& group : data.groups)
    if (o.models == group.name) names = group.models;
  if (names.empty()) return invalid_input("--models needs a group of models.json or names");
  std::vector<double> weights;
  for (const auto& text : split_list(o.weights)) {
    char* end = nullptr;
    weights.push_back(std::strtod(text.c_str(), &end));
    if (*end != '\0' || !(weights.back() > 0))
      return invalid_input("--weights " + o.weights + ": expected numbers above 0, such as 0.3,0.7");
  }
  HEDDLE_ASSIGN_OR_RETURN(auto fleet, ppipe_fleet(data, o.cluster, names, weights));
  HEDDLE_ASSIGN_OR_RETURN(const auto source, estimate_rates(o, data, fleet, invocation));
  HEDDLE_RETURN_IF_ERROR(write_fleet(o.output, fleet));
  if (invocation.json) {
    Json rates = Json::array();
    for (const auto& m : fleet.models) rates.push_back(m.estimated_rate_per_s);
    show_json(invocation, {{"output", o.output},
                           {"devices", fleet.devices()},
                           {"models", names},
                           {"estimated_rates_per_s", source.empty() ? Json() : rates},
                           {"estimated_rates_from", source.empty() ? Json() : Json(source)}});
  } else {
    print("{}: {} devices of {} classes, {} models\n", o.output, fleet.devices(), fleet.classes.size(),
          fleet.models.size());
    if (source.empty()) {
      print(
          "no estimated rates: a model is served in time by no device alone, so that np has no plan; batches "
          "are taken to fill at once unless estimated_rate_per_s is set\n");
      return kExitDone;
    }
    print("estimated rates (at which batches fill) from {}:", source);
    for (const auto& m : fleet.models)
      print("{} {} {:.1f} /s", &m == &fleet.models.front() ? "" : ",", m.name, m.estimated_rate_per_s);
    print("\n");
  }
  return kExitDone;
}

}  // namespace

RunFn setup_fleet_plan(Command& command) {
  auto o = std::make_shared<PlanFlags>();
  command.positional("FLEET", o->fleet, "fleet file (.json or .yaml)");
  command.option("--planner", o->planner, "one of `heddle fleet planners` (default auto)");
  o->goal.declare(command);
  command.option("-o,--output", o->output, "write the plan (.json or .yaml)");
  o->traffic.declare(command);
  command.option("--write-lp", o->lp, "write the MILP of ppipe-milp as an LP file");
  return [o](const Invocation& invocation) { return run_fleet_plan(*o, invocation); };
}

RunFn setup_fleet_compare(Command& command) {
  auto o = std::make_shared<CompareFlags>();
  command.positional("FLEET", o->fleet, "fleet file (.json or .yaml)");
  command.option("--planners", o->planners, "comma-separated (default auto,np,dart-r)");
  o->goal.declare(command);
  return [o](const Invocation& invocation) { return run_fleet_compare(*o, invocation); };
}

RunFn setup_fleet_verify(Command& command) {
  auto o = std::make_shared<std::pair<std::string, std::string>>();
  command.positional("FLEET", o->first, "fleet file (.json or .yaml)");
  command.positional("PLAN", o->second, "plan file of `heddle fleet plan -o`");
  return [o](const Invocation& invocation) { return run_fleet_verify(o->first, o->second, invocation); };
}

RunFn setup_fleet_import(Command& command) {
  auto o = std::make_shared<ImportFlags>();
  command.positional("DIR", o->input,
                     "folder with block_timing.csv, cuts.csv, clusters.json and models.json");
  command.option("--cluster", o->cluster, "a cluster of clusters.json");
  command.option("--models", o->models, "a group of models.json, or names, comma-separated");
  command.option("--weights", o->weights, "of the models, comma-separated (default all 1)");
  command.option(
      "--reference", o->reference,
      "a CSV of published plans: estimated rates from there (default: from an np plan made for it)");
  command.option("-o,--output", o->output, "the fleet file (.json or .yaml)");
  return [o](const Invocation& invocation) { return run_fleet_import(*o, invocation); };
}

}  // namespace heddle::cli
