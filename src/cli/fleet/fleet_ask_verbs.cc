// heddle fleet explain, whatif and replan.

#include "fleet_verbs.h"
#include "heddle/base/json.h"
#include "heddle/fleet/fleet_check.h"
#include "heddle/fleet/fleet_explain.h"
#include "heddle/fleet/fleet_replan.h"
#include "heddle/report/text_table.h"

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
  HEDDLE_ASSIGN_OR_RETURN(const auto why, explain_fleet_plan(fleet, plan, o.planner, options));
  if (invocation.progress) invocation.progress->finish();
  if (invocation.json) {
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
    row["requests_per_s"] = why.requests_per_s;
    row["cost_per_hour"] = why.cost_per_hour;
    row["cost_per_million_requests"] = why.cost_per_million;
    row["watts"] = why.watts;
    show_json(invocation, row);
    return kExitDone;
  }
  print("{}\n{}\n", pools_text(fleet, plan), summary_text(plan));
  TextTable table({{"class"},
                   {"used", TextTable::Align::kRight},
                   {"of", TextTable::Align::kRight},
                   {"with one more", TextTable::Align::kRight},
                   {"change", TextTable::Align::kRight}});
  for (size_t c = 0; c < why.classes.size(); ++c) {
    const auto& v = why.classes[c];
    table.add_row({fleet.classes[c].name, std::to_string(v.used), std::to_string(v.count),
                   value_text(plan.objective, v.with_one_more),
                   fmt::format("{:+.3f} %", plan.value > 0 ? 100 * (v.with_one_more / plan.value - 1) : 0)});
  }
  print("{}{:.1f} requests/s in all", table.to_string(), why.requests_per_s);
  if (why.cost_per_hour > 0)
    print(", {:.4g} per hour, {:.4g} per million requests", why.cost_per_hour, why.cost_per_million);
  if (why.watts > 0) print(", {:.4g} W", why.watts);
  print("\n{}", times_line(fleet));
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
  HEDDLE_ASSIGN_OR_RETURN(const auto options, o.goal.options(invocation));
  HEDDLE_ASSIGN_OR_RETURN(const auto found, o.traffic.plan(fleet, o.planner, options));
  HEDDLE_ASSIGN_OR_RETURN(const auto found_after, o.traffic.plan(changed, o.planner, options));
  const FleetPlan &before = found.plan, &after = found_after.plan;
  if (invocation.progress) invocation.progress->finish();
  const double ratio = after.value / before.value;
  const double ratio_in_time = o.traffic.given() ? found_after.per_s / found.per_s : 1;
  if (invocation.json) {
    Json json = {{"before", plan_row(fleet, before)}, {"after", plan_row(changed, after)}, {"ratio", ratio}};
    if (o.traffic.given()) {
      json["before"]["in_time"] = o.traffic.json(found);
      json["after"]["in_time"] = o.traffic.json(found_after);
      json["ratio_in_time"] = ratio_in_time;
    }
    show_json(invocation, json);
    return kExitDone;
  }
  TextTable table({{"fleet"},
                   {"value", TextTable::Align::kRight},
                   {"bound", TextTable::Align::kRight},
                   {"gap", TextTable::Align::kRight},
                   {"ratio", TextTable::Align::kRight}});
  table.add_row({"as it is", value_text(before.objective, before.value),
                 value_text(before.objective, before.bound), percent(before.gap()), "1.0000"});
  table.add_row({"changed", value_text(after.objective, after.value),
                 value_text(after.objective, after.bound), percent(after.gap()),
                 fmt::format("{:.4f}", ratio)});
  print("{}", table.to_string());
  if (o.traffic.given())
    print(
        "in time: {:.6g} req/s as it is, {:.6g} req/s changed, ratio {:.4f}; {} of each model's requests, "
        "{}\n",
        found.per_s, found_after.per_s, ratio_in_time, percent(o.traffic.attainment), o.traffic.words());
  print("{}", fleet_bound_note(fleet));
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
  if (invocation.progress) invocation.progress->finish();
  if (invocation.json) {
    Json moves = Json::array();
    for (const auto& m : result.moves)
      moves.push_back({{"model", changed.models[m.model].name},
                       {"class", changed.classes[static_cast<size_t>(m.device_class)].name},
                       {"share", m.share},
                       {"blocks", {m.block_from, m.block_to}},
                       {"before", m.before},
                       {"after", m.after}});
    auto row = plan_row(changed, result.plan);
    row["moved_devices"] = result.moved_devices;
    row["moved_devices_of_fresh_plan"] = result.moved_devices_fresh;
    row["moves"] = moves;
    show_json(invocation, row);
    return kExitDone;
  }
  TextTable table({{"model", TextTable::Align::kLeft, 30},
                   {"blocks"},
                   {"pool"},
                   {"before", TextTable::Align::kRight},
                   {"after", TextTable::Align::kRight}});
  for (const auto& m : result.moves)
    table.add_row({changed.models[m.model].name,
                   std::to_string(m.block_from) + ".." + std::to_string(m.block_to - 1),
                   changed.classes[static_cast<size_t>(m.device_class)].name +
                       (m.share > 1 ? "/" + std::to_string(m.share) : ""),
                   std::to_string(m.before), std::to_string(m.after)});
  print("{}{}", result.moves.empty() ? "nothing moves\n" : table.to_string(), summary_text(result.plan));
  print("{:.4g} devices load other weights; a plan made anew would move {:.4g}\n", result.moved_devices,
        result.moved_devices_fresh);
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
