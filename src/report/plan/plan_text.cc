#include "heddle/report/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "heddle/base/gap.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/terminal.h"
#include "heddle/base/units.h"
#include "heddle/cluster/variants.h"
#include "heddle/plan/robustness.h"
#include "heddle/planners/trajectory.h"
#include "heddle/report/explain.h"
#include "heddle/report/single_device.h"
#include "heddle/report/text_table.h"

namespace heddle {

std::string value_text(const Problem& problem, double us) {
  return objective_text(problem.objective, problem.batch, us);
}

void put_value(Json& row, const Problem& problem, double value_us, double bound_us) {
  if (problem.objective == Objective::kThroughput) {
    row["value_per_s"] = value_us > 0 ? kUsPerSecond * problem.batch / value_us : 0;
    row["bound"] = bound_us > 0 ? Json(kUsPerSecond * problem.batch / bound_us) : Json();
  } else {
    row["value_us"] = value_us;
    row["bound"] = bound_us;
  }
}

namespace {

// The cost table's entries on usable devices.
struct CostCounts {
  std::map<std::string, int> origins;  // how many are of each
  int disturbed = 0;                   // Cost::disturbed()
};
CostCounts count_costs(const Problem& problem) {
  CostCounts counts;
  for (const auto device : problem.usable_devices()) {
    for (size_t i = 0; i < problem.graph->num_ops(); ++i) {
      const auto cost = problem.costs->at(OpId(i), device);
      if (cost.us >= kImpossible) continue;
      ++counts.origins[origin_name(cost.origin)];
      if (cost.disturbed()) ++counts.disturbed;
    }
  }
  return counts;
}

// Number of stages with at least two members.
int count_stages(const Plan& plan) {
  std::map<int32_t, int> members;
  for (const Segment& s : plan.segments) {
    if (s.stage >= 0) ++members[s.stage];
  }
  return static_cast<int>(
      std::count_if(members.begin(), members.end(), [](auto& m) { return m.second > 1; }));
}

std::string stages_text(const Session& session, const Plan& plan) {
  const int width = session.problem.execution.stage_width;
  if (width < 2) return "";
  std::string text = fmt::format("  stages of up to {} segments at once: {}\n", width, count_stages(plan));
  for (const auto& [target, pairs, samples, fit] : session.stages) {
    text += fmt::format(
        "  t(S) on {}: {:.2f} sum + {:.2f} max(busy, longest) + {}; off by {:.0f} %, at most {:.0f} %\n",
        target, fit.model.serial, fit.model.overlap, format_us(fit.model.launch_us), 100 * fit.median_error,
        100 * fit.largest_error);
  }
  return text;
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

Json robust_json(const Problem& p, const RobustPlan& robust) {
  return {{"share", robust.share},
          {"device", p.cluster->device(robust.worst.device).name},
          {"value_us", robust.worst.value_us},
          {"of_fastest_us", robust.of_fastest.value_us},
          {"bound_us", robust.bound.us}};
}

std::string gain_text(const Problem& p, const PlanResult& result) {
  const auto single = best_single_device(p);
  if (!single) return "; no single device can run it";
  if (!(single->value_us > result.value_us * (1 + 1e-9)))
    return ", that of the best single device (" + single->device + ")";
  return fmt::format(", {:.2f} times as fast as the best single device ({}: {})",
                     single->value_us / result.value_us, single->device, value_text(p, single->value_us));
}

std::string robust_text(const Problem& p, const std::optional<RobustPlan>& robust) {
  if (!robust) return "";
  const std::string lost = fmt::format("{:.3g} % of its speed", 100 * robust->share);
  std::string text =
      fmt::format("  if any one device loses {}: at worst {} ({}); the plan that is best at full speed: {}\n",
                  lost, value_text(p, robust->worst.value_us), p.cluster->device(robust->worst.device).name,
                  value_text(p, robust->of_fastest.value_us));
  if (robust->bound.us > 0)
    text += fmt::format("    no plan's worst case is better than {} ({})\n", value_text(p, robust->bound.us),
                        robust->bound.proof.text());
  return text;
}

std::string busy_text(const Problem& p, const PlanResult& result) {
  const auto robust = robustness(p, result.plan);
  if (!robust.ok() || !(robust->value_us > 0)) return "";
  const auto& half = robust->losses.back().worst;
  return fmt::format("  on a busy machine: {} if {} runs at half its speed{}\n", value_text(p, half.value_us),
                     half.what,
                     robust->core ? fmt::format(", {} if another process takes {}",
                                                value_text(p, robust->core->value_us), robust->core->what)
                                  : "");
}

// What the plan's time becomes if it shares the machine.
std::string types_text(const Problem& p, const PlanResult& result) {
  if (!p.precision) return "";
  const PrecisionChoice& c = *p.precision;
  size_t narrow = 0;
  for (const Segment& s : result.plan.segments)
    narrow += p.cluster->device(s.device).precision != Precision::kF32 ? s.ops.size() : 0;
  const auto lanes = result.plan.lane_shares.size();
  return fmt::format(
      "  {} of {} in a narrower type: {:.4g} % of decisions as in f32, mean error {:.2g} of the range\n"
      "    (budget {:.4g} %, {:.2g}; {}); `heddle explain` says which units stay in f32\n",
      narrow / lanes, counted(p.graph->num_ops(), "unit"), 100 * c.agreement, c.mean, 100 * c.least_agreement,
      c.most_mean, counted(static_cast<uint64_t>(c.samples), "sample"));
}

}  // namespace

Json result_json(const Problem& problem, const PlanResult& result) {
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

std::string plan_text(const Session& session, const PlanResult& result,
                      const std::optional<RobustPlan>& robust) {
  const auto& p = session.problem;
  std::string text =
      fmt::format("{} on {}: {}\n", session.loaded.name, p.cluster->name(),
                  painted(Ink::kBold, fmt::format("{} {}{}", objective_name(p.objective),
                                                  value_text(p, result.value_us), gain_text(p, result))));
  text += fmt::format("  {} ({}), gap {:.1f} %; planner {}, {:.2f} s, {}; {}\n",
                      bound_text(value_text(p, result.bound.us)), result.bound.proof.text(), 100 * result.gap,
                      result.planner, result.planning_s, stop_reason_name(result.stop),
                      painted(Ink::kGreen, "checked"));
  if (!result.detail.empty()) text += fmt::format("  {}\n", result.detail);
  for (const Incumbent& then : milestones(result.trajectory, result.planning_s)) {
    text += fmt::format("  after {}: {}, bound {}\n", format_us(then.seconds * 1e6),
                        std::isfinite(then.value_us) ? value_text(p, then.value_us) : "no plan yet",
                        then.bound_us > 0 ? value_text(p, then.bound_us) : "none yet");
  }
  const CostCounts counts = count_costs(p);
  std::string origins;
  for (const auto& [name, count] : counts.origins)
    origins += (origins.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  text += fmt::format("  {} in {}, {}; unit times: {}\n", counted(p.graph->num_ops(), "unit"),
                      counted(result.plan.segments.size(), "segment"),
                      counted(result.plan.lane_shares.size(), "lane"), origins);
  if (counts.disturbed > 0) {
    text += fmt::format(
        "  {} measured while other work disturbed the machine; a later plan measures {} again\n",
        counts.disturbed == 1 ? "1 of them was" : fmt::format("{} of them were", counts.disturbed),
        counts.disturbed == 1 ? "it" : "them");
  }
  text += types_text(p, result) + robust_text(p, robust) + busy_text(p, result) +
          stages_text(session, result.plan);
  const auto in_place = std::count_if(result.plan.segments.begin(), result.plan.segments.end(),
                                      [](const Segment& s) { return s.host_access; });
  if (p.has_host_access())
    text += fmt::format("  {} segments read their parameters in host memory\n", in_place);
  text += '\n';
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
        std::to_string(std::lround(100 * row["busy_share"].get<double>())) + " %"};
    if (engines) cells.push_back(variant_text(variant_of(p.cluster->devices()[d])));
    table.add_row(std::move(cells));
  }
  return text + table.to_string();
}

Json plan_json(const Session& session, const PlanResult& result, const std::optional<RobustPlan>& robust) {
  Json row = result_json(session.problem, result);
  row["model"] = session.loaded.name;
  row["cluster"] = session.cluster->name();
  row["units"] = session.problem.graph->num_ops();
  row["segments"] = result.plan.segments.size();
  row["devices"] = devices_json(session.problem, result);
  if (const auto single = best_single_device(session.problem))
    row["best_single_device"] = {{"device", single->device}, {"value_us", single->value_us}};
  if (const auto losses = robustness(session.problem, result.plan); losses.ok())
    row["robustness"] = robustness_json(*losses);
  if (robust) row["robust"] = robust_json(session.problem, *robust);
  if (session.problem.precision) row["precision"] = precision_choice_json(session.problem);
  if (session.problem.execution.stage_width > 1) row["stages"] = stages_json(session, result.plan);
  const CostCounts counts = count_costs(session.problem);
  row["origins"] = counts.origins;
  row["disturbed"] = counts.disturbed;
  row["counters"] = result.counters;
  return row;
}

Json comparison_json(const Problem& problem, const std::vector<ComparedPlan>& plans) {
  Json rows = Json::array();
  for (const auto& [planner, result] : plans)
    rows.push_back(result.ok() ? result_json(problem, *result)
                               : Json{{"planner", planner}, {"error", result.error().to_string()}});
  return rows;
}

std::string comparison_text(const Session& session, const std::vector<ComparedPlan>& plans) {
  const Problem& problem = session.problem;
  TextTable table({{"planner"},
                   {objective_name(problem.objective), kRight},
                   {"bound", kRight},
                   {"gap", kRight},
                   {"planning", kRight},
                   {"stopped"},
                   {"detail"}});
  for (const auto& [planner, result] : plans) {
    if (!result.ok())
      table.add_row(
          {planner, "-", "-", "-", "-", code_name(result.error().code()), result.error().message()});
    else
      table.add_row({planner, value_text(problem, result->value_us), value_text(problem, result->bound.us),
                     percent(result->gap), format_us(result->planning_s * 1e6),
                     stop_reason_name(result->stop), result->detail});
  }
  return fmt::format("{} on {}, {} units, one evaluator and one checker for all\n\n{}\n{}",
                     session.loaded.name, session.cluster->name(), problem.graph->num_ops(),
                     table.to_string(), bound_note());
}

Json replanned_json(const std::vector<Replanned>& rows) {
  Json json = Json::array();
  const double now = rows[0].result.value_us;
  for (const Replanned& row : rows) {
    const PlanResult& r = row.result;
    Json j = {{"change", row.what}, {"speedup", now / r.value_us}, {"gap", r.gap}, {"planner", r.planner}};
    if (r.bound.us > 0) j["speedup_at_most"] = now / r.bound.us;
    put_value(j, row.problem, r.value_us, r.bound.us);
    json.push_back(std::move(j));
  }
  return json;
}

std::string replanned_text(const std::vector<Replanned>& rows) {
  const auto times = [](double factor) { return fmt::format("{:.3f}x", factor); };
  TextTable table({{"change"},
                   {objective_name(rows[0].problem.objective), kRight},
                   {"bound", kRight},
                   {"gap", kRight},
                   {"faster by", kRight},
                   {"at most", kRight}});
  const double now = rows[0].result.value_us;
  for (const Replanned& row : rows) {
    const PlanResult& r = row.result;
    table.add_row({row.what, value_text(row.problem, r.value_us), value_text(row.problem, r.bound.us),
                   percent(r.gap), times(now / r.value_us), r.bound.us > 0 ? times(now / r.bound.us) : ""});
  }
  return table.to_string() + bound_note();
}

Json check_json(const PlanFile& plan, const CheckReport& report) {
  Json findings = Json::array();
  for (const auto& f : report.findings)
    findings.push_back({{"kind", violation_name(f.kind)}, {"message", f.message}});
  Json row = {{"verified", report.ok()},
              {"planner", plan.planner},
              {"objective", objective_name(plan.problem.objective)}};
  put_value(row, plan.problem, objective_us(plan.problem, plan.predicted), plan.bound.us);
  row["findings"] = findings;
  return row;
}

std::string check_text(const std::string& name, const PlanFile& plan, const CheckReport& report) {
  if (report.ok())
    return fmt::format("{}: {}. {} in {}, {}; {} {}, {} ({})\n", name, painted(Ink::kGreen, "valid"),
                       counted(plan.problem.graph->num_ops(), "op"),
                       counted(plan.plan.segments.size(), "segment"), counted(plan.plan.steps.size(), "step"),
                       objective_name(plan.problem.objective),
                       value_text(plan.problem, objective_us(plan.problem, plan.predicted)),
                       bound_text(value_text(plan.problem, plan.bound.us)), plan.bound.proof.text());
  std::string text = fmt::format("{}: {}, {}:\n", name, painted(Ink::kRed, "NOT valid"),
                                 counted(report.findings.size(), "finding"));
  for (const auto& f : report.findings) text += fmt::format("  {}: {}\n", violation_name(f.kind), f.message);
  return text;
}

}  // namespace heddle
