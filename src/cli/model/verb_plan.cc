// heddle plan and heddle compare.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "heddle/base/errors.h"
#include "heddle/base/file.h"
#include "heddle/base/gap.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/terminal.h"
#include "heddle/base/units.h"
#include "heddle/cluster/variants.h"
#include "heddle/plan/robustness.h"
#include "heddle/plan/stage_list.h"
#include "heddle/planners/planner.h"
#include "heddle/planners/shared_bound.h"
#include "heddle/planners/trajectory.h"
#include "heddle/report/explain.h"
#include "heddle/report/single_device.h"
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

// Number of stages with at least two members.
int count_stages(const Plan& plan) {
  std::map<int32_t, int> members;
  for (const Segment& s : plan.segments) {
    if (s.stage >= 0) ++members[s.stage];
  }
  return static_cast<int>(
      std::count_if(members.begin(), members.end(), [](auto& m) { return m.second > 1; }));
}

void print_stages(const Session& session, const Plan& plan) {
  const int width = session.problem.execution.stage_width;
  if (width < 2) return;
  print("  stages of up to {} segments at once: {}\n", width, count_stages(plan));
  for (const auto& [target, pairs, samples, fit] : session.stages) {
    print("  t(S) on {}: {:.2f} sum + {:.2f} max(busy, longest) + {}; off by {:.0f} %, at most {:.0f} %\n",
          target, fit.model.serial, fit.model.overlap, format_us(fit.model.launch_us), 100 * fit.median_error,
          100 * fit.largest_error);
  }
}

Json stages_json(const Session& session, const Plan& plan) {
  Json json;
  json["width"] = session.problem.execution.stage_width;
  json["count"] = count_stages(plan);
  for (const auto& [target, pairs, samples, fit] : session.stages) {
    Json measured = Json::array();
    for (size_t i = 0; i < pairs.size(); ++i) {
      const Graph& units = *session.problem.graph;
      const auto& items = samples[i].items;
      measured.push_back({{"units", {units.op(pairs[i].first).name, units.op(pairs[i].second).name}},
                          {"alone_us", {items[0].us, items[1].us}},
                          {"at_once_us", samples[i].us},
                          {"model_us", fit.model.us(items)}});
    }
    json["fits"].push_back({{"target", target},
                            {"serial", fit.model.serial},
                            {"overlap", fit.model.overlap},
                            {"launch_us", fit.model.launch_us},
                            {"samples", fit.samples},
                            {"median_error", fit.median_error},
                            {"largest_error", fit.largest_error},
                            {"pairs", std::move(measured)}});
  }
  return json;
}

Json result_row(const Problem& problem, const PlanResult& result) {
  Json row;
  row["planner"] = result.planner;
  row["objective"] = objective_name(problem.objective);
  put_value(row, problem, result.value_us, result.bound.us);
  row["bound_reason"] = result.bound.proof.reason;
  row["bound_claimed_by"] = result.bound.proof.claimed_by;
  row["gap"] = result.gap;
  row["planning_s"] = result.planning_s;
  row["verified"] = result.verified;
  row["stop"] = stop_reason_name(result.stop);
  row["detail"] = result.detail;
  Json trajectory = Json::array();
  for (const auto& i : result.trajectory) {
    trajectory.push_back({i.seconds, std::isfinite(i.value_us) ? Json(i.value_us) : Json(), i.bound_us});
  }
  row["trajectory"] = std::move(trajectory);
  Json after = Json::array();
  for (const auto& i : milestones(result.trajectory, result.planning_s))
    after.push_back({i.seconds, std::isfinite(i.value_us) ? Json(i.value_us) : Json(), i.bound_us});
  row["after"] = std::move(after);
  row["primal_integral_s"] = primal_integral(result.trajectory, result.value_us, result.planning_s);
  return row;
}

Json devices_json(const Problem& problem, const PlanResult& result) {
  Json devices = Json::array();
  const double whole = result.value_us;
  for (size_t d = 0; d < problem.cluster->num_devices(); ++d) {
    int segments = 0;
    for (const auto& s : result.plan.segments) segments += s.device == DeviceId(d);
    const double busy = result.timeline.device_busy_us[d];
    const Device& device = problem.cluster->device(DeviceId(d));
    devices.push_back({{"device", device.name},
                       {"engine", device.backend},
                       {"precision", precision_name(device.precision)},
                       {"segments", segments},
                       {"busy_us", busy},
                       {"busy_share", whole > 0 ? busy / whole : 0}});
  }
  return devices;
}

// Whether the devices differ in engine or precision from those that a plan has without being asked.
bool has_choice_of_engines(const Cluster& cluster) {
  return std::any_of(cluster.devices().begin(), cluster.devices().end(),
                     [](const Device& d) { return !d.variant_of.empty() || d.precision != Precision::kF32; });
}

void print_robust_plan(const Problem& p, const std::optional<RobustPlan>& robust) {
  if (!robust) return;
  const std::string lost = fmt::format("{:.3g} % of its speed", 100 * robust->share);
  print("  if any one device loses {}: at worst {} ({}); the plan that is best at full speed: {}\n", lost,
        value_text(p, robust->worst.value_us), p.cluster->device(robust->worst.device).name,
        value_text(p, robust->of_fastest.value_us));
  if (robust->bound.us > 0)
    print("    no plan's worst case is better than {} ({})\n", value_text(p, robust->bound.us),
          robust->bound.proof.text());
}

Json robust_json(const Problem& p, const RobustPlan& robust) {
  return {{"share", robust.share},
          {"device", p.cluster->device(robust.worst.device).name},
          {"value_us", robust.worst.value_us},
          {"of_fastest_us", robust.of_fastest.value_us},
          {"bound_us", robust.bound.us}};
}

// What the plan's time becomes if it shares the machine.
void print_robustness(const Problem& p, const PlanResult& result) {
  const auto robust = robustness(p, result.plan);
  if (!robust.ok() || !(robust->value_us > 0)) return;
  const auto& half = robust->losses.back().worst;
  print("  on a busy machine: {} if {} runs at half its speed{}\n", value_text(p, half.value_us), half.what,
        robust->core ? fmt::format(", {} if another process takes {}", value_text(p, robust->core->value_us),
                                   robust->core->what)
                     : "");
}

std::string gain_text(const Problem& p, const PlanResult& result) {
  const auto single = best_single_device(p);
  if (!single) return "; no single device can run it";
  if (!(single->value_us > result.value_us * (1 + 1e-9)))
    return ", that of the best single device (" + single->device + ")";
  return fmt::format(", {:.2f} times as fast as the best single device ({}: {})",
                     single->value_us / result.value_us, single->device, value_text(p, single->value_us));
}

void print_precision(const Problem& p, const PlanResult& result) {
  if (!p.precision) return;
  const PrecisionChoice& c = *p.precision;
  size_t narrow = 0;
  for (const Segment& s : result.plan.segments)
    narrow += p.cluster->device(s.device).precision != Precision::kF32 ? s.ops.size() : 0;
  const auto lanes = result.plan.lane_shares.size();
  print(
      "  {} of {} in a narrower type: {:.4g} % of decisions as in f32, mean error {:.2g} of the range\n"
      "    (budget {:.4g} %, {:.2g}; {}); `heddle explain` says which units stay in f32\n",
      narrow / lanes, counted(p.graph->num_ops(), "unit"), 100 * c.agreement, c.mean, 100 * c.least_agreement,
      c.most_mean, counted(static_cast<uint64_t>(c.samples), "sample"));
}

void print_plan(const Session& session, const PlanResult& result, const std::optional<RobustPlan>& robust) {
  const auto& p = session.problem;
  print("{} on {}: {}\n", session.loaded.name, p.cluster->name(),
        painted(Ink::kBold, fmt::format("{} {}{}", objective_name(p.objective),
                                        value_text(p, result.value_us), gain_text(p, result))));
  print("  {} ({}), gap {:.1f} %; planner {}, {:.2f} s, {}; {}\n", bound_text(value_text(p, result.bound.us)),
        result.bound.proof.text(), 100 * result.gap, result.planner, result.planning_s,
        stop_reason_name(result.stop), painted(Ink::kGreen, "checked"));
  if (!result.detail.empty()) print("  {}\n", result.detail);
  for (const Incumbent& then : milestones(result.trajectory, result.planning_s)) {
    print("  after {}: {}, bound {}\n", format_us(then.seconds * 1e6),
          std::isfinite(then.value_us) ? value_text(p, then.value_us) : "no plan yet",
          then.bound_us > 0 ? value_text(p, then.bound_us) : "none yet");
  }
  const CostCounts counts = count_costs(p);
  std::string origins;
  for (const auto& [name, count] : counts.origins)
    origins += (origins.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  print("  {} in {}, {}; unit times: {}\n", counted(p.graph->num_ops(), "unit"),
        counted(result.plan.segments.size(), "segment"), counted(result.plan.lane_shares.size(), "lane"),
        origins);
  if (counts.disturbed > 0) {
    print("  {} measured while other work disturbed the machine; a later plan measures {} again\n",
          counts.disturbed == 1 ? "1 of them was" : fmt::format("{} of them were", counts.disturbed),
          counts.disturbed == 1 ? "it" : "them");
  }
  print_precision(p, result);
  print_robust_plan(p, robust);
  print_robustness(p, result);
  print_stages(session, result.plan);
  const auto in_place = std::count_if(result.plan.segments.begin(), result.plan.segments.end(),
                                      [](const Segment& s) { return s.host_access; });
  if (p.has_host_access()) print("  {} segments read their parameters in host memory\n", in_place);
  print("\n");
  std::vector<TextTable::Column> columns = {
      {"device"}, {"segments", kRight}, {"busy", kRight}, {"share", kRight}};
  const bool engines = has_choice_of_engines(*p.cluster);
  if (engines) columns.push_back({"engine"});
  TextTable table(columns);
  const auto devices = devices_json(p, result);
  for (size_t d = 0; d < devices.size(); ++d) {
    const Json& row = devices[d];
    std::vector<std::string> cells = {
        row["device"].get<std::string>(), std::to_string(row["segments"].get<int>()),
        format_us(row["busy_us"].get<double>()),
        std::to_string(static_cast<int>(100 * row["busy_share"].get<double>() + 0.5)) + " %"};
    if (engines) cells.push_back(variant_text(variant_of(p.cluster->devices()[d])));
    table.add_row(std::move(cells));
  }
  print("{}", table.to_string());
}

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

// A plan of the file's own stages, on devices that run as many segments at once as the stages need.
Result<PlanResult> scheduled_plan(Session& session, const std::string& path) {
  if (!session.loaded.ios)
    return invalid_input(path + ": --as-scheduled needs a schedule in the form of IOS's files");
  if (session.problem.graph->num_ops() != session.loaded.graph->num_ops())
    return invalid_input(
        path + ": --as-scheduled schedules the file's ops as they are; leave --coarsen and --units out");
  const int width = stage_width_of(session.loaded.stages);
  if (width > session.problem.execution.stage_width) simulate_stages(session.problem, width);
  PlannerOutput output;
  HEDDLE_ASSIGN_OR_RETURN(output.plan,
                          with_context(plan_of_ios_stages(session.problem, session.loaded.stages), path));
  output.detail = "as scheduled in the file";
  return verified_result("file", session.problem, std::move(output), 0);
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
    Json row = result_row(session.problem, result);
    row["model"] = session.loaded.name;
    row["cluster"] = session.cluster->name();
    row["units"] = session.problem.graph->num_ops();
    row["segments"] = result.plan.segments.size();
    row["devices"] = devices_json(session.problem, result);
    if (const auto single = best_single_device(session.problem))
      row["best_single_device"] = {{"device", single->device}, {"value_us", single->value_us}};
    if (const auto robust = robustness(session.problem, result.plan); robust.ok())
      row["robustness"] = robustness_json(*robust);
    if (o.robust.planned) row["robust"] = robust_json(session.problem, *o.robust.planned);
    if (session.problem.precision) row["precision"] = precision_choice_json(session.problem);
    if (session.problem.execution.stage_width > 1) row["stages"] = stages_json(session, result.plan);
    const CostCounts counts = count_costs(session.problem);
    row["origins"] = counts.origins;
    row["disturbed"] = counts.disturbed;
    row["counters"] = result.counters;
    if (!o.output.empty()) row["output"] = o.output;
    show_json(invocation, row);
  } else {
    print_plan(session, result, o.robust.planned);
    if (!o.output.empty()) print("\nwritten to {}\n", o.output);
  }
  return kExitDone;
}

struct ComparePlannersFlags : PlanningFlags {
  std::string planners;
};

std::vector<const PlannerEntry*> planners_for(const Problem& problem) {
  std::vector<const PlannerEntry*> entries;
  for (const auto& entry : planner_registry()) {
    if (entry.supports(problem)) entries.push_back(&entry);
  }
  return entries;
}

Result<int> run_compare(const ComparePlannersFlags& o, const Invocation& invocation) {
  std::vector<const PlannerEntry*> entries;
  for (const auto& name : split_list(o.planners)) {
    HEDDLE_ASSIGN_OR_RETURN(const auto* entry, planner_named(name));
    entries.push_back(entry);
  }
  HEDDLE_ASSIGN_OR_RETURN(auto session, o.open(invocation));
  if (entries.empty()) entries = planners_for(session.problem);
  Json rows = Json::array();
  TextTable table({{"planner"},
                   {objective_name(session.problem.objective), kRight},
                   {"bound", kRight},
                   {"gap", kRight},
                   {"planning", kRight},
                   {"stopped"},
                   {"detail"}});
  int failures = 0;
  std::vector<std::pair<const PlannerEntry*, Result<PlanResult>>> results;
  SharedBound bound(session.problem);
  for (const auto* entry : entries) {
    results.emplace_back(entry, run_planner(*entry, session.problem, planner_options(o.search, invocation)));
    const auto& result = results.back().second;
    if (result.ok()) HEDDLE_RETURN_IF_ERROR(bound.add(*result));
  }
  for (auto& [entry, result] : results) {
    if (!result.ok()) {
      // A planner that fails does not hide the others' results.
      ++failures;
      rows.push_back({{"planner", entry->info.name}, {"error", result.error().to_string()}});
      table.add_row(
          {entry->info.name, "-", "-", "-", "-", code_name(result.error().code()), result.error().message()});
      continue;
    }
    // All plans are for one problem, so the best bound holds for all.
    result->bound = bound.best();
    result->gap = relative_gap(result->value_us, result->bound.us);
    rows.push_back(result_row(session.problem, *result));
    table.add_row({entry->info.name, value_text(session.problem, result->value_us),
                   value_text(session.problem, result->bound.us), percent(result->gap),
                   format_us(result->planning_s * 1e6), stop_reason_name(result->stop), result->detail});
  }
  show_result(invocation, rows,
              fmt::format("{} on {}, {} units, one evaluator and one checker for all\n\n{}\n{}",
                          session.loaded.name, session.cluster->name(), session.problem.graph->num_ops(),
                          table.to_string(), bound_note()));
  return failures == static_cast<int>(entries.size()) ? kExitNo : kExitDone;
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
