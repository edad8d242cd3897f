#include "heddle/report/moves.h"

#include <algorithm>

#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/evaluator.h"

namespace heddle {
namespace {

Result<Assignment> decisions(const Problem& problem, const Plan& plan) {
  if (plan.lane_shares.size() > 1)
    return unsupported("the plan has several lanes, each with every op; moves are for plans of one lane");
  return assignment_of(problem, plan);
}

// With the ops that must be on the same devices as these.
std::vector<OpId> with_companions(const Problem& problem, std::vector<OpId> ops) {
  if (!problem.rules || problem.rules->colour.empty()) return ops;
  const auto& colour = problem.rules->colour;
  std::vector<OpId> all;
  for (size_t i = 0; i < colour.size(); ++i) {
    const bool moves = std::any_of(ops.begin(), ops.end(), [&](OpId op) {
      return op.index() == i || (colour[i] >= 0 && colour[op.index()] == colour[i]);
    });
    if (moves) all.emplace_back(i);
  }
  return all;
}

Assignment moved(const Problem& problem, Assignment a, const std::vector<OpId>& ops, DeviceId device) {
  int next = a.segment.empty() ? 0 : *std::max_element(a.segment.begin(), a.segment.end()) + 1;
  for (const OpId op : ops) {
    a.device[op.index()] = device;
    if (!a.host_access.empty()) a.host_access[op.index()] = 0;
    if (!a.load_route.empty()) a.load_route[op.index()] = -1;
    if (!a.stage.empty()) a.stage[op.index()] = -1;
    if (!a.segment.empty()) a.segment[op.index()] = next++;
  }
  if (a.stage.empty()) {
    a.segment.clear();
    a.segment = merge_segments(problem, a);
  }
  return a;
}

// The ops that move, and their time there.
Move priced(const Problem& problem, std::vector<OpId> ops, DeviceId device) {
  Move move{.device = device, .ops = with_companions(problem, std::move(ops)), .value_us = {}, .refused = {}};
  move.ops_us = 0;
  move.origin = Origin::kMeasured;
  for (const OpId op : move.ops) {
    const Cost cost = problem.costs->at(op, device);
    move.ops_us += cost.us;
    move.origin = std::max(move.origin, cost.origin);
  }
  return move;
}

Result<double> value_after(const Problem& problem, const Assignment& from, const Move& move) {
  if (move.ops_us >= kImpossible) return unsupported("the device cannot run it");
  HEDDLE_ASSIGN_OR_RETURN(const Plan plan, build_plan(problem, moved(problem, from, move.ops, move.device)));
  HEDDLE_ASSIGN_OR_RETURN(const Timeline timeline, evaluate(problem, plan));
  const CheckReport report = check(problem, plan, timeline);
  if (!report.ok()) return unsupported(report.findings.front().message);
  return objective_us(problem, timeline);
}

Move make_move(const Problem& problem, const Assignment& from, std::vector<OpId> ops, DeviceId device) {
  Move move = priced(problem, std::move(ops), device);
  const auto value = value_after(problem, from, move);
  if (value.ok())
    move.value_us = *value;
  else
    move.refused = value.error().to_string();
  return move;
}

}  // namespace

Result<std::vector<Move>> moves_of(const Problem& problem, const Plan& plan, OpId op) {
  HEDDLE_ASSIGN_OR_RETURN(const Assignment from, decisions(problem, plan));
  HEDDLE_ASSIGN_OR_RETURN(const Timeline timeline, evaluate(problem, plan));
  std::vector<Move> moves;
  for (const DeviceId device : problem.usable_devices()) {
    if (from.device[op.index()] != device) {
      moves.push_back(make_move(problem, from, {op}, device));
      continue;
    }
    moves.push_back(priced(problem, {op}, device));
    moves.back().planned = true;
    moves.back().value_us = objective_us(problem, timeline);
  }
  return moves;
}

Result<BestUse> best_use(const Problem& problem, const Plan& plan, DeviceId device,
                         const Deadline& deadline) {
  HEDDLE_ASSIGN_OR_RETURN(const Assignment from, decisions(problem, plan));
  std::vector<std::vector<OpId>> candidates;
  for (const Segment& segment : plan.segments)
    if (segment.device != device && segment.ops.size() > 1) candidates.push_back(segment.ops);
  for (const OpId op : from.order)
    if (from.device[op.index()] != device) candidates.push_back({op});
  BestUse best;
  best.candidates = candidates.size();
  for (auto& ops : candidates) {
    if (best.move && deadline.should_stop()) break;
    ++best.tried;
    Move move = make_move(problem, from, std::move(ops), device);
    if (move.value_us && (!best.move || *move.value_us < *best.move->value_us)) best.move = std::move(move);
  }
  return best;
}

}  // namespace heddle
