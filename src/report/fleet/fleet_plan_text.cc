#include "heddle/report/fleet_plan_text.h"

#include <fmt/format.h>

#include <cmath>

#include "heddle/base/gap.h"
#include "heddle/base/terminal.h"
#include "heddle/base/units.h"
#include "heddle/report/text_table.h"

namespace heddle {
namespace {

// What bounds and gaps of the fleet's plans are for, without the sources of times_line().
constexpr const char* kFleetTimes = "the times of the fleet file";

const char* value_unit(FleetObjective objective) {
  constexpr const char* kUnits[] = {"req/s", "per hour", "W", "req/s"};
  return kUnits[static_cast<int>(objective)];
}

// "auto: 2482 req/s, bound 2490 req/s for the times of the fleet file, gap 0.321 %, planned in 12 ms", and the proof on
// a line of its own.
std::string fleet_summary_text(const FleetPlan& plan) {
  return fmt::format("{}: {}, {}, gap {:.3f} %, planned in {:.1f} ms\nbound: {}\n", plan.planner,
                     painted(Ink::kBold, value_text(plan.objective, plan.value)),
                     bound_text(value_text(plan.objective, plan.bound), kFleetTimes), 100 * plan.gap(),
                     1e3 * plan.planning_s, plan.proof.text());
}

}  // namespace

std::string value_text(FleetObjective objective, double value) {
  return fmt::format("{:.6g} {}", value, value_unit(objective));
}

std::string times_line(const Fleet& fleet) {
  const auto text = times_text(fleet);
  return text.empty() ? "" : "times: " + text + "\n";
}

std::string fleet_bound_note(const Fleet& fleet) {
  const auto sources = times_text(fleet);
  return bound_note(kFleetTimes + (sources.empty() ? "" : " (" + sources + ")"));
}

Json plan_row(const Fleet& fleet, const FleetPlan& plan) {
  Json devices = Json::object();
  const auto used = devices_used(fleet, plan);
  for (size_t c = 0; c < used.size(); ++c) devices[fleet.classes[c].name] = used[c];
  return {{"planner", plan.planner},
          {"objective", fleet_objective_name(plan.objective)},
          {"value", plan.value},
          {"bound", plan.bound},
          {"bound_reason", plan.proof.reason},
          {"bound_claimed_by", plan.proof.claimed_by},
          {"gap", plan.gap()},
          {"planning_s", plan.planning_s},
          {"verified", true},
          {"devices", std::move(devices)},
          {"times", times_text(fleet)}};
}

std::string pools_text(const Fleet& fleet, const FleetPlan& plan) {
  TextTable table({{"model", TextTable::Align::kLeft, 20},
                   {"pipe", kRight},
                   {"batch", kRight},
                   {"blocks"},
                   {"pool"},
                   {"pool /s", kRight},
                   {"pipe /s", kRight},
                   {"latency, limit"},
                   {"binds"}});
  const auto explained = explain_fleet_plan(fleet, plan, "", {});
  if (!explained.ok()) return explained.error().to_string() + "\n";
  size_t pool = 0, last_model = SIZE_MAX;
  for (const auto& view : explained->pipelines) {
    const auto& p = plan.models[view.model].pipelines[view.pipeline];
    if (last_model != SIZE_MAX && last_model != view.model) table.add_rule();
    for (size_t k = 0; k < p.partitions.size(); ++k, ++pool) {
      const auto& q = p.partitions[k];
      const auto& pv = explained->pools[pool];
      const auto& dc = fleet.classes[static_cast<size_t>(q.device_class)];
      auto binds = pv.binds;
      if (k == 0 && view.deadline_binds) binds += binds.empty() ? "deadline" : ", deadline";
      table.add_row(
          {k == 0 && view.pipeline == 0 ? fleet.models[view.model].name : "",
           k == 0 ? std::to_string(view.pipeline) : "", k == 0 ? std::to_string(p.batch) : "",
           std::to_string(q.block_from) + ".." + std::to_string(q.block_to - 1),
           std::to_string(q.count) + " x " + dc.name + (q.share > 1 ? "/" + std::to_string(q.share) : ""),
           fmt::format("{:.1f}", pv.rate_per_s), k == 0 ? fmt::format("{:.1f}", p.rate_per_s) : "",
           k == 0 ? format_us(view.latency_us) + ", " + format_us(view.limit_us) : "", binds});
    }
    last_model = view.model;
  }
  return table.to_string();
}

std::string fleet_plan_text(const Fleet& fleet, const FleetPlan& plan) {
  std::string text = pools_text(fleet, plan) + "\n" + fleet_summary_text(plan);
  const auto used = devices_used(fleet, plan);
  for (size_t c = 0; c < used.size(); ++c)
    text += fmt::format("{}{} {} of {}", c == 0 ? "devices used: " : ", ", fleet.classes[c].name, used[c],
                        fleet.classes[c].count);
  return text + "\n";
}

Shown fleet_planners_shown() {
  Json rows = Json::array();
  TextTable table({{"planner"}, {"what it does"}, {"source"}});
  for (const auto& p : fleet_planners()) {
    rows.push_back({{"name", p.name}, {"summary", p.summary}, {"source", p.source}});
    table.add_row({p.name, p.summary, p.source});
  }
  return {rows, table.to_string()};
}

Shown fleet_comparison_shown(const Fleet& fleet, const std::vector<ComparedFleetPlan>& plans) {
  Json rows = Json::array();
  TextTable table({{"planner"},
                   {"value", kRight},
                   {"bound", kRight},
                   {"gap", kRight},
                   {"pipelines", kRight},
                   {"devices"},
                   {"seconds", kRight},
                   {"note", TextTable::Align::kLeft, 50}});
  bool any = false;
  for (const auto& [name, plan] : plans) {
    if (!plan.ok()) {
      rows.push_back({{"planner", name}, {"error", plan.error().to_string()}});
      table.add_row({name, "", "", "", "", "", "", plan.error().to_string()});
      continue;
    }
    any = true;
    rows.push_back(plan_row(fleet, *plan));
    size_t pipelines = 0;
    for (const auto& m : plan->models) pipelines += m.pipelines.size();
    std::string devices;
    const auto used = devices_used(fleet, *plan);
    for (size_t c = 0; c < used.size(); ++c)
      devices += (c > 0 ? " + " : "") + std::to_string(used[c]) + " " + fleet.classes[c].name;
    table.add_row({name, value_text(plan->objective, plan->value), value_text(plan->objective, plan->bound),
                   percent(plan->gap()), std::to_string(pipelines), devices,
                   fmt::format("{:.3f}", plan->planning_s)});
  }
  return {rows, table.to_string() + (any ? fleet_bound_note(fleet) : "")};
}

Json fleet_explanation_json(const Fleet& fleet, const FleetPlan& plan, const FleetExplanation& why) {
  Json pools = Json::array(), pipelines = Json::array(), classes = Json::array();
  for (const auto& p : why.pools)
    pools.push_back({{"model", fleet.models[p.model].name},
                     {"pipeline", p.pipeline},
                     {"partition", p.partition},
                     {"devices", p.devices},
                     {"rate_per_s", p.rate_per_s},
                     {"busy", p.busy},
                     {"binds", p.binds}});
  for (const auto& p : why.pipelines)
    pipelines.push_back({{"model", fleet.models[p.model].name},
                         {"pipeline", p.pipeline},
                         {"latency_us", p.latency_us},
                         {"limit_us", p.limit_us},
                         {"deadline_binds", p.deadline_binds}});
  for (size_t c = 0; c < why.classes.size(); ++c)
    classes.push_back({{"class", fleet.classes[c].name},
                       {"used", why.classes[c].used},
                       {"count", why.classes[c].count},
                       {"value_with_one_more", why.classes[c].with_one_more}});
  auto row = plan_row(fleet, plan);
  row["pools"] = pools;
  row["pipelines"] = pipelines;
  row["classes"] = classes;
  row["value_planned"] = why.planned;
  row["requests_per_s"] = why.requests_per_s;
  row["cost_per_hour"] = why.cost_per_hour;
  row["cost_per_million_requests"] = why.cost_per_million;
  row["watts"] = why.watts;
  return row;
}

std::string fleet_explanation_text(const Fleet& fleet, const FleetPlan& plan, const FleetExplanation& why) {
  TextTable table(
      {{"class"}, {"used", kRight}, {"of", kRight}, {"with one more", kRight}, {"change", kRight}});
  for (size_t c = 0; c < why.classes.size(); ++c) {
    const auto& v = why.classes[c];
    const bool known = !std::isnan(v.with_one_more);
    table.add_row({fleet.classes[c].name, std::to_string(v.used), std::to_string(v.count),
                   known ? value_text(plan.objective, v.with_one_more) : "-",
                   known && why.planned > 0
                       ? fmt::format("{:+.3f} %", 100 * (v.with_one_more / why.planned - 1))
                       : "-"});
  }
  std::string text = fmt::format("{}\n{}\n{}{:.1f} requests/s in all", pools_text(fleet, plan),
                                 fleet_summary_text(plan), table.to_string(), why.requests_per_s);
  if (why.cost_per_hour > 0)
    text += fmt::format(", {:.4g} per hour, {:.4g} per million requests", why.cost_per_hour,
                        why.cost_per_million);
  if (why.watts > 0) text += fmt::format(", {:.4g} W", why.watts);
  return text + "\n" + times_line(fleet);
}

Json replanned_fleet_json(const Fleet& fleet, const FleetReplan& result) {
  Json moves = Json::array();
  for (const auto& m : result.moves)
    moves.push_back({{"model", fleet.models[m.model].name},
                     {"class", fleet.classes[static_cast<size_t>(m.device_class)].name},
                     {"share", m.share},
                     {"blocks", {m.block_from, m.block_to}},
                     {"before", m.before},
                     {"after", m.after}});
  auto row = plan_row(fleet, result.plan);
  row["moved_devices"] = result.moved_devices;
  row["moved_devices_of_fresh_plan"] = result.moved_devices_fresh;
  row["moves"] = moves;
  return row;
}

std::string replanned_fleet_text(const Fleet& fleet, const FleetReplan& result) {
  TextTable table(
      {{"model", TextTable::Align::kLeft, 30}, {"blocks"}, {"pool"}, {"before", kRight}, {"after", kRight}});
  for (const auto& m : result.moves)
    table.add_row({fleet.models[m.model].name,
                   std::to_string(m.block_from) + ".." + std::to_string(m.block_to - 1),
                   fleet.classes[static_cast<size_t>(m.device_class)].name +
                       (m.share > 1 ? "/" + std::to_string(m.share) : ""),
                   std::to_string(m.before), std::to_string(m.after)});
  return (result.moves.empty() ? "nothing moves\n" : table.to_string()) + fleet_summary_text(result.plan) +
         fmt::format("{:.4g} devices load other weights; a plan made anew would move {:.4g}\n",
                     result.moved_devices, result.moved_devices_fresh);
}

}  // namespace heddle
