#include "heddle/plan/builder.h"

#include <algorithm>

#include "lane_timing.h"

namespace heddle {
namespace {

// "conv1", or "conv1..relu7 (12 ops)".
std::string segment_name(const Graph& graph, std::span<const OpId> ops) {
  if (ops.size() == 1) return graph.op(ops[0]).name;
  return graph.op(ops.front()).name + ".." + graph.op(ops.back()).name + " (" + std::to_string(ops.size()) +
         " ops)";
}

bool drops_params(const Problem& problem, const LaneTiming::Run& run, std::span<const OpId> ops) {
  const bool may = problem.objective == Objective::kColdLatency && problem.execution.parameter_drops;
  if (!may || run.host_access || !needs_load(*problem.cluster, run.device)) return false;
  return std::any_of(ops.begin(), ops.end(), [&](OpId op) { return !problem.graph->op(op).params.empty(); });
}

// Adds a lane's segments to the plan, and its steps (with final segment numbers) to `steps`.
void append_lane(const Problem& problem, LaneTiming& timing, int lane, Plan& plan,
                 std::vector<LaneTiming::TimedStep>& steps) {
  const auto base = static_cast<int32_t>(plan.segments.size());
  for (size_t r = 0; r < timing.runs().size(); ++r) {
    const auto ops = timing.ops_of(r);
    const int32_t stage = timing.stage_of(r);
    plan.segments.push_back({segment_name(*problem.graph, ops),
                             {ops.begin(), ops.end()},
                             timing.runs()[r].device,
                             lane,
                             stage < 0 ? stage : stage + base,
                             timing.runs()[r].host_access,
                             drops_params(problem, timing.runs()[r], ops)});
  }
  for (LaneTiming::TimedStep& s : timing.steps()) {
    s.step.segment.value += base;
    steps.push_back(s);
  }
}

}  // namespace

Result<Plan> build_plan(const Problem& problem, const Assignment& assignment) {
  return build_plan(problem, std::vector<Lane>{{assignment, 1.0}});
}

Result<Plan> build_plan(const Problem& problem, const std::vector<Lane>& lanes) {
  const TimingTables tables(problem);
  Plan plan;
  plan.lane_shares.clear();
  std::vector<LaneTiming::TimedStep> steps;
  if (lanes.empty()) return invalid_input("a plan needs at least one lane");
  if (lanes.size() > 1 && problem.objective != Objective::kThroughput) {
    return invalid_input("several lanes make sense for the throughput objective only");
  }
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    LaneTiming timing(tables);
    HEDDLE_RETURN_IF_ERROR(timing.time(lanes[lane].assignment));
    append_lane(problem, timing, static_cast<int>(lane), plan, steps);
    plan.lane_shares.push_back(lanes[lane].share);
    // Only single-lane plans have loads, so these are the only routes.
    if (lanes.size() == 1) plan.routes = lanes[lane].assignment.routes;
  }
  if (lanes.size() > 1) {
    std::stable_sort(steps.begin(), steps.end(),
                     [](const auto& a, const auto& b) { return a.start < b.start; });
  }
  plan.steps.reserve(steps.size());
  for (const LaneTiming::TimedStep& s : steps) plan.steps.push_back(s.step);
  return plan;
}

Assignment assignment_of(const Problem& problem, const Plan& plan, int lane) {
  const Graph& graph = *problem.graph;
  Assignment a;
  a.device.resize(graph.num_ops());
  a.segment.resize(graph.num_ops(), -1);
  a.routes = plan.routes;
  bool singles = true, stages = false;
  std::vector<OpId> ops;
  for (const Step& step : plan.steps) {
    const Segment& segment = plan.segments[step.segment.index()];
    if (segment.lane != lane || step.kind == StepKind::kTransfer) continue;
    if (step.kind == StepKind::kLoad) {
      if (step.route < 0) continue;
      if (a.load_route.empty()) a.load_route.assign(graph.num_ops(), -1);
      for (const OpId op : segment.ops) a.load_route[op.index()] = step.route;
      continue;
    }
    if (segment.host_access && a.host_access.empty()) a.host_access.assign(graph.num_ops(), 0);
    ops = segment.ops;
    std::sort(ops.begin(), ops.end(),
              [&](OpId x, OpId y) { return graph.topological_position(x) < graph.topological_position(y); });
    singles = singles && ops.size() == 1;
    if (segment.stage >= 0 && !stages) {
      stages = true;
      a.stage.assign(graph.num_ops(), -1);
    }
    for (const OpId op : ops) {
      a.device[op.index()] = segment.device;
      a.segment[op.index()] = step.segment.value;
      if (stages) a.stage[op.index()] = segment.stage;
      if (segment.host_access) a.host_access[op.index()] = 1;
      a.order.push_back(op);
    }
  }
  if (singles) a.segment.clear();
  return a;
}

}  // namespace heddle
