#include "heddle/plan/plan_file.h"

#include <cmath>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "problem_json.h"

namespace heddle {
namespace {

constexpr const char* kFormat = "heddle-plan";
constexpr double kMostUs = 1e300;
constexpr size_t kMostRoutes = 1'000'000;

Json segments_to_json(const PlanFile& file) {
  Json list = Json::array();
  for (const Segment& s : file.plan.segments) {
    Json ops = Json::array();
    for (const OpId op : s.ops) ops.push_back(op.value);
    Json json;
    json["name"] = s.name;
    json["device"] = file.problem.cluster->device(s.device).name;
    if (s.lane != 0) json["lane"] = s.lane;
    if (s.stage >= 0) json["stage"] = s.stage;
    if (s.host_access) json["host_access"] = true;
    if (s.drops_params) json["drops_params"] = true;
    json["ops"] = std::move(ops);
    list.push_back(std::move(json));
  }
  return list;
}

Json steps_to_json(const PlanFile& file) {
  Json list = Json::array();
  for (size_t i = 0; i < file.plan.steps.size(); ++i) {
    const Step& step = file.plan.steps[i];
    Json json;
    switch (step.kind) {
      case StepKind::kRun:
        json["run"] = step.segment.value;
        break;
      case StepKind::kLoad:
        json["load"] = step.segment.value;
        break;
      case StepKind::kTransfer:
        json["transfer"] = step.tensor.value;
        json["segment"] = step.segment.value;
        json["to"] = file.problem.cluster->device(step.to).name;
        break;
    }
    if (step.route >= 0) json["route"] = step.route;
    json["start_us"] = file.predicted.start_us[i];
    json["finish_us"] = file.predicted.finish_us[i];
    list.push_back(std::move(json));
  }
  return list;
}

Json routes_to_json(const PlanFile& file) {
  Json list = Json::array();
  for (const auto& hops : file.plan.routes) {
    Json route = Json::array();
    for (const Hop& hop : hops) {
      Json json;
      json["link"] = file.problem.cluster->link(hop.link).name;
      json["forward"] = hop.forward;
      route.push_back(std::move(json));
    }
    list.push_back(std::move(route));
  }
  return list;
}

Result<int32_t> index_from_json(const JsonCursor& cursor, const char* key, size_t count) {
  HEDDLE_ASSIGN_OR_RETURN(const auto member, cursor.at(key));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t value, member.as_int(0, static_cast<int64_t>(count) - 1));
  return static_cast<int32_t>(value);
}

Result<double> time_from_json(const JsonCursor& cursor, const char* key) {
  HEDDLE_ASSIGN_OR_RETURN(const auto member, cursor.at(key));
  return member.as_number(0, kMostUs);
}

Status lanes_from_json(const JsonCursor& cursor, Plan& plan) {
  if (!cursor.has("lane_shares")) return {};
  HEDDLE_ASSIGN_OR_RETURN(const auto shares, cursor.at("lane_shares"));
  HEDDLE_ASSIGN_OR_RETURN(plan.lane_shares, shares.as_numbers(0, 1));
  if (plan.lane_shares.empty()) return shares.error("expected at least one lane");
  return {};
}

Result<Segment> segment_from_json(const JsonCursor& cursor, const Problem& problem, size_t lanes) {
  HEDDLE_RETURN_IF_ERROR(
      cursor.check_keys({"name", "device", "lane", "stage", "ops", "host_access", "drops_params"}));
  Segment segment;
  HEDDLE_ASSIGN_OR_RETURN(const auto name, cursor.at("name"));
  HEDDLE_ASSIGN_OR_RETURN(segment.name, name.as_string());
  HEDDLE_ASSIGN_OR_RETURN(const auto device, cursor.at("device"));
  HEDDLE_ASSIGN_OR_RETURN(segment.device, device_from_json(*problem.cluster, device));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t lane, cursor.int_or("lane", 0, 0, static_cast<int64_t>(lanes) - 1));
  segment.lane = static_cast<int>(lane);
  HEDDLE_ASSIGN_OR_RETURN(const int64_t stage, cursor.int_or("stage", -1, -1, INT32_MAX));
  segment.stage = static_cast<int32_t>(stage);
  HEDDLE_ASSIGN_OR_RETURN(segment.host_access, cursor.bool_or("host_access", false));
  HEDDLE_ASSIGN_OR_RETURN(segment.drops_params, cursor.bool_or("drops_params", false));
  HEDDLE_ASSIGN_OR_RETURN(const auto list, cursor.at("ops"));
  HEDDLE_ASSIGN_OR_RETURN(const auto ids,
                          list.as_ints(0, static_cast<int64_t>(problem.graph->num_ops()) - 1));
  for (const int64_t id : ids) segment.ops.emplace_back(static_cast<int32_t>(id));
  return segment;
}

Result<Step> step_from_json(const JsonCursor& cursor, const Problem& problem, const Plan& plan) {
  HEDDLE_RETURN_IF_ERROR(
      cursor.check_keys({"run", "load", "transfer", "segment", "to", "route", "start_us", "finish_us"}));
  Step step;
  const int kinds = cursor.has("run") + cursor.has("load") + cursor.has("transfer");
  if (kinds != 1) return cursor.error("expected exactly one of 'run', 'load' and 'transfer'");
  const bool is_transfer = cursor.has("transfer");
  if (!is_transfer && (cursor.has("segment") || cursor.has("to"))) {
    return cursor.error("'segment' and 'to' belong to transfers only");
  }
  const char* segment_key = is_transfer ? "segment" : cursor.has("run") ? "run" : "load";
  HEDDLE_ASSIGN_OR_RETURN(step.segment.value, index_from_json(cursor, segment_key, plan.segments.size()));
  const Segment& segment = plan.segments[step.segment.index()];
  step.from = step.to = segment.device;
  if (is_transfer) {
    step.kind = StepKind::kTransfer;
    HEDDLE_ASSIGN_OR_RETURN(step.tensor.value,
                            index_from_json(cursor, "transfer", problem.graph->num_tensors()));
    HEDDLE_ASSIGN_OR_RETURN(const auto to, cursor.at("to"));
    HEDDLE_ASSIGN_OR_RETURN(step.to, device_from_json(*problem.cluster, to));
  } else if (cursor.has("load")) {
    step.kind = StepKind::kLoad;
    step.from = DeviceId();
  }
  if (cursor.has("route")) {
    if (step.kind == StepKind::kRun) return cursor.error("a run has no route");
    HEDDLE_ASSIGN_OR_RETURN(step.route, index_from_json(cursor, "route", plan.routes.size()));
  }
  return step;
}

Status routes_from_json(const JsonCursor& cursor, const Problem& problem, Plan& plan) {
  if (!cursor.has("routes")) return {};
  HEDDLE_ASSIGN_OR_RETURN(const auto list, cursor.at("routes"));
  HEDDLE_ASSIGN_OR_RETURN(const auto routes, list.elements(kMostRoutes));
  const auto links = problem.cluster->links();
  for (const JsonCursor& route : routes) {
    HEDDLE_ASSIGN_OR_RETURN(const auto hops, route.elements());
    plan.routes.emplace_back();
    for (const JsonCursor& json : hops) {
      HEDDLE_RETURN_IF_ERROR(json.check_keys({"link", "forward"}));
      HEDDLE_ASSIGN_OR_RETURN(const auto link, json.at("link"));
      HEDDLE_ASSIGN_OR_RETURN(const std::string name, link.as_string());
      Hop hop;
      for (size_t l = 0; l < links.size() && !hop.link.valid(); ++l) {
        if (links[l].name == name) hop.link = LinkId(l);
      }
      if (!hop.link.valid()) return link.error("the cluster has no link '" + name + "'");
      HEDDLE_ASSIGN_OR_RETURN(hop.forward, json.bool_or("forward", true));
      plan.routes.back().push_back(hop);
    }
  }
  return {};
}

Status plan_from_cursor(const JsonCursor& cursor, PlanFile& file) {
  HEDDLE_RETURN_IF_ERROR(cursor.check_keys({"lane_shares", "segments", "routes", "steps"}));
  HEDDLE_RETURN_IF_ERROR(lanes_from_json(cursor, file.plan));
  HEDDLE_RETURN_IF_ERROR(routes_from_json(cursor, file.problem, file.plan));
  HEDDLE_ASSIGN_OR_RETURN(const auto segments, cursor.at("segments"));
  HEDDLE_ASSIGN_OR_RETURN(const auto segment_list, segments.elements());
  for (const JsonCursor& s : segment_list) {
    HEDDLE_ASSIGN_OR_RETURN(file.plan.segments.emplace_back(),
                            segment_from_json(s, file.problem, file.plan.lane_shares.size()));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto steps, cursor.at("steps"));
  HEDDLE_ASSIGN_OR_RETURN(const auto step_list, steps.elements());
  for (const JsonCursor& s : step_list) {
    HEDDLE_ASSIGN_OR_RETURN(file.plan.steps.emplace_back(), step_from_json(s, file.problem, file.plan));
    HEDDLE_ASSIGN_OR_RETURN(file.predicted.start_us.emplace_back(), time_from_json(s, "start_us"));
    HEDDLE_ASSIGN_OR_RETURN(file.predicted.finish_us.emplace_back(), time_from_json(s, "finish_us"));
  }
  return {};
}

Status predicted_from_json(const JsonCursor& cursor, PlanFile& file) {
  HEDDLE_RETURN_IF_ERROR(cursor.check_keys({"makespan_us", "period_us"}));
  HEDDLE_ASSIGN_OR_RETURN(file.predicted.makespan_us, time_from_json(cursor, "makespan_us"));
  HEDDLE_ASSIGN_OR_RETURN(file.predicted.period_us, time_from_json(cursor, "period_us"));
  return {};
}

Status bound_from_json(const JsonCursor& cursor, Bound& bound) {
  HEDDLE_RETURN_IF_ERROR(cursor.check_keys({"us", "reason"}));
  HEDDLE_ASSIGN_OR_RETURN(bound.us, time_from_json(cursor, "us"));
  HEDDLE_ASSIGN_OR_RETURN(const auto reason, cursor.at("reason"));
  HEDDLE_ASSIGN_OR_RETURN(bound.reason, reason.as_string());
  return {};
}

Status header_from_json(const JsonCursor& cursor, PlanFile& file) {
  HEDDLE_ASSIGN_OR_RETURN(const auto format, cursor.at("format"));
  HEDDLE_ASSIGN_OR_RETURN(const std::string name, format.as_string());
  if (name != kFormat)
    return format.error("is '" + name + "', expected '" + kFormat + "': this is no plan file");
  HEDDLE_ASSIGN_OR_RETURN(const auto version, cursor.at("version"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t number, version.as_int(1));
  if (number > kPlanJsonVersion) {
    return version.error("is " + std::to_string(number) + ", this Heddle reads up to " +
                         std::to_string(kPlanJsonVersion) + ": use a newer Heddle or plan again");
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto planner, cursor.at("planner"));
  HEDDLE_ASSIGN_OR_RETURN(file.planner, planner.as_string());
  HEDDLE_ASSIGN_OR_RETURN(const auto seed, cursor.at("seed"));
  if (!seed.value().is_number_unsigned()) return seed.error("expected a whole number of at least 0");
  file.seed = seed.value().get<uint64_t>();
  HEDDLE_ASSIGN_OR_RETURN(file.planning_s, cursor.number_or("planning_s", 0, 0, 1e18));
  return {};
}

// What the file does not hold (busy times, memory peaks, what waited for what) follows from the plan, when it
// is one.
void complete_timeline(PlanFile& file) {
  auto timeline = evaluate(file.problem, file.plan);
  if (!timeline.ok()) return;
  timeline->start_us = std::move(file.predicted.start_us);
  timeline->finish_us = std::move(file.predicted.finish_us);
  timeline->makespan_us = file.predicted.makespan_us;
  timeline->period_us = file.predicted.period_us;
  file.predicted = std::move(*timeline);
}

}  // namespace

bool is_plan_json(const Json& json) {
  return json.is_object() && json.contains("format") && json["format"] == kFormat;
}

Json plan_to_json(const PlanFile& file) {
  Json json;
  json["format"] = kFormat;
  json["version"] = kPlanJsonVersion;
  json["planner"] = file.planner;
  json["seed"] = file.seed;
  json["planning_s"] = file.planning_s;
  json["predicted"]["makespan_us"] = file.predicted.makespan_us;
  json["predicted"]["period_us"] = file.predicted.period_us;
  json["bound"]["us"] = file.bound.us;
  json["bound"]["reason"] = file.bound.reason;
  Json plan;
  if (file.plan.lane_shares.size() != 1 || file.plan.lane_shares[0] != 1.0)
    plan["lane_shares"] = file.plan.lane_shares;
  plan["segments"] = segments_to_json(file);
  if (!file.plan.routes.empty()) plan["routes"] = routes_to_json(file);
  plan["steps"] = steps_to_json(file);
  json["plan"] = std::move(plan);
  json["problem"] = problem_to_json(file.problem);
  return json;
}

Result<PlanFile> plan_from_json(const JsonCursor& cursor) {
  PlanFile file;
  HEDDLE_RETURN_IF_ERROR(cursor.check_keys(
      {"format", "version", "planner", "seed", "planning_s", "predicted", "bound", "plan", "problem"}));
  HEDDLE_RETURN_IF_ERROR(header_from_json(cursor, file));
  HEDDLE_ASSIGN_OR_RETURN(const auto problem, cursor.at("problem"));
  HEDDLE_ASSIGN_OR_RETURN(file.problem, problem_from_json(problem));
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, cursor.at("plan"));
  HEDDLE_RETURN_IF_ERROR(plan_from_cursor(plan, file));
  HEDDLE_ASSIGN_OR_RETURN(const auto predicted, cursor.at("predicted"));
  HEDDLE_RETURN_IF_ERROR(predicted_from_json(predicted, file));
  HEDDLE_ASSIGN_OR_RETURN(const auto bound, cursor.at("bound"));
  HEDDLE_RETURN_IF_ERROR(bound_from_json(bound, file.bound));
  complete_timeline(file);
  return file;
}

Result<PlanFile> read_plan_file(const std::string& path) {
  auto json = read_json_file(path);
  if (!json.ok()) return std::move(json).error();
  auto file = plan_from_json(JsonCursor(*json));
  if (!file.ok()) return std::move(file).error().with_context(path);
  return file;
}

Status write_plan_file(const std::string& path, const PlanFile& file) {
  // Names come from models and may hold anything; bytes that are no UTF-8 are replaced.
  const std::string text = plan_to_json(file).dump(-1, ' ', false, Json::error_handler_t::replace);
  return write_file_atomic(path, text + "\n");
}

}  // namespace heddle
