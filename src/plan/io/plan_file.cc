#include "heddle/plan/plan_file.h"

#include <algorithm>

#include "heddle/base/file.h"
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

Result<Segment> segment_from_json(const JsonCursor& cursor, const PlanFile& file) {
  const auto lanes = static_cast<int64_t>(file.plan.lane_shares.size());
  Segment segment;
  Fields f(cursor);
  f.required("name", segment.name)
      .required("device", segment.device, device_from_json, *file.problem.cluster)
      .optional("lane", segment.lane, 0, lanes - 1)
      .optional("stage", segment.stage, -1)
      .optional("host_access", segment.host_access)
      .optional("drops_params", segment.drops_params)
      .required("ops", segment.ops, file.problem.graph->num_ops());
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return segment;
}

Status step_from_json(const JsonCursor& cursor, PlanFile& file) {
  const int kinds = cursor.has("run") + cursor.has("load") + cursor.has("transfer");
  if (kinds != 1) return cursor.error("expected exactly one of 'run', 'load' and 'transfer'");
  const bool is_transfer = cursor.has("transfer"), is_run = cursor.has("run");
  if (!is_transfer && (cursor.has("segment") || cursor.has("to")))
    return cursor.error("'segment' and 'to' belong to transfers only");
  if (is_run && cursor.has("route")) return cursor.error("a run has no route");
  Step& step = file.plan.steps.emplace_back();
  Fields f(cursor);
  f.required(is_transfer ? "segment"
             : is_run    ? "run"
                         : "load",
             step.segment, file.plan.segments.size())
      .then([&] {
        step.kind = is_transfer ? StepKind::kTransfer : is_run ? StepKind::kRun : StepKind::kLoad;
        step.from = step.to = file.plan.segments[step.segment.index()].device;
        if (step.kind == StepKind::kLoad) step.from = DeviceId();
        return Status();
      });
  if (is_transfer)
    f.required("transfer", step.tensor, file.problem.graph->num_tensors())
        .required("to", step.to, device_from_json, *file.problem.cluster);
  f.optional("route", step.route, 0, static_cast<int64_t>(file.plan.routes.size()) - 1)
      .required("start_us", file.predicted.start_us.emplace_back(), 0, kMostUs)
      .required("finish_us", file.predicted.finish_us.emplace_back(), 0, kMostUs);
  return f.finish();
}

Result<LinkId> link_from_json(const JsonCursor& cursor, const Cluster& cluster) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string name, cursor.as_string());
  const auto links = cluster.links();
  const auto found = std::find_if(links.begin(), links.end(), [&](const Link& l) { return l.name == name; });
  if (found == links.end()) return cursor.error("the cluster has no link '" + name + "'");
  return LinkId(static_cast<size_t>(found - links.begin()));
}

Result<Hop> hop_from_json(const JsonCursor& cursor, const Cluster& cluster) {
  Hop hop;
  Fields f(cursor);
  f.required("link", hop.link, link_from_json, cluster).optional("forward", hop.forward);
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return hop;
}

Status steps_from_json(const JsonCursor& cursor, PlanFile& file) {
  Plan& plan = file.plan;
  const auto read_hop = [&](const JsonCursor& at) { return hop_from_json(at, *file.problem.cluster); };
  Fields f(cursor);
  f.optional("lane_shares",
             [&](const JsonCursor& at) -> Status {
               HEDDLE_RETURN_IF_ERROR(take(at, plan.lane_shares, 0, 1));
               return plan.lane_shares.empty() ? at.error("expected at least one lane") : Status();
             })
      .optional(
          "routes",
          each([&](const JsonCursor& at) { return each_into(plan.routes.emplace_back(), read_hop)(at); },
               kMostRoutes))
      .required("segments",
                each_into(plan.segments, [&](const JsonCursor& at) { return segment_from_json(at, file); }))
      .required("steps", each([&](const JsonCursor& at) { return step_from_json(at, file); }));
  return f.finish();
}

Status predicted_from_json(const JsonCursor& cursor, Timeline& predicted) {
  Fields f(cursor);
  f.required("makespan_us", predicted.makespan_us, 0, kMostUs)
      .required("period_us", predicted.period_us, 0, kMostUs);
  return f.finish();
}

Result<Bound> bound_from_json(const JsonCursor& cursor) {
  Bound bound;
  Fields f(cursor);
  f.required("us", bound.us, 0, kMostUs)
      .required("reason", bound.proof.reason)
      .optional("claimed_by", bound.proof.claimed_by);
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return bound;
}

// Recomputes what the file does not store (busy times, memory peaks, waited_for) if the plan is well-formed.
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

bool is_plan_json(const Json& json) { return has_format(json, kFormat); }

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
  json["bound"]["reason"] = file.bound.proof.reason;
  if (!file.bound.proof.proven()) json["bound"]["claimed_by"] = file.bound.proof.claimed_by;
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
  Fields f(cursor, kFormat, kPlanJsonVersion);
  f.required("planner", file.planner)
      .required("seed", file.seed)
      .optional("planning_s", file.planning_s, 0, 1e18)
      .required("problem", file.problem, problem_from_json)
      .required("plan", [&](const JsonCursor& at) { return steps_from_json(at, file); })
      .required("predicted", [&](const JsonCursor& at) { return predicted_from_json(at, file.predicted); })
      .required("bound", file.bound, bound_from_json);
  HEDDLE_RETURN_IF_ERROR(f.finish());
  complete_timeline(file);
  return file;
}

Result<PlanFile> read_plan_file(const std::string& path) { return read_json_file(path, plan_from_json); }

Status write_plan_file(const std::string& path, const PlanFile& file) {
  return write_file_atomic(path, json_text(plan_to_json(file)) + "\n");
}

}  // namespace heddle
