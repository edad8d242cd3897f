#include "lane_search.h"

#include "core/plan_store.h"
#include "heddle/planners/batch_problem.h"
#include "improve.h"
#include "lists/construction.h"
#include "lns_rounds.h"

namespace heddle {
namespace {

// Ops of all copies together.
constexpr size_t kMostOps = 20'000;
// Of the time, for local search.
constexpr double kLocalShareOfLanes = 0.4;

std::optional<Plan> as_lanes(const Problem& problem, const Assignment& all, int lanes) {
  const auto order = problem.graph->topological_order();
  const size_t n = order.size();
  std::vector<Lane> list;
  for (int l = 0; l < lanes; ++l) {
    Lane lane;
    lane.share = 1.0 / lanes;
    lane.assignment.device.resize(n);
    lane.assignment.order.assign(order.begin(), order.end());
    for (size_t i = 0; i < n; ++i)
      lane.assignment.device[order[i].index()] = all.device[static_cast<size_t>(l) * n + i];
    list.push_back(std::move(lane));
  }
  auto plan = build_plan(problem, list);
  return plan.ok() ? std::optional<Plan>(std::move(*plan)) : std::nullopt;
}

std::optional<Plan> as_copies(const Problem& problem, const Problem& many, const Plan& plan, int lanes) {
  const auto order = problem.graph->topological_order();
  const size_t n = order.size();
  const size_t there = plan.lane_shares.size();
  Assignment all;
  all.device.resize(n * static_cast<size_t>(lanes));
  all.order.assign(many.graph->topological_order().begin(), many.graph->topological_order().end());
  for (size_t l = 0; l < static_cast<size_t>(lanes); ++l) {
    const auto lane = assignment_of(problem, plan, static_cast<int>(l % there));
    for (size_t i = 0; i < n; ++i) all.device[l * n + i] = lane.device[order[i].index()];
  }
  auto built = build_plan(many, all);
  return built.ok() ? std::optional<Plan>(std::move(*built)) : std::nullopt;
}

}  // namespace

void search_lanes(const Problem& problem, const PlannerOptions& options, int lanes, const Plan* start,
                  const std::function<bool(Plan plan)>& offer) {
  if (problem.graph->num_ops() * static_cast<size_t>(lanes) > kMostOps) return;
  const auto many = side_by_side(problem, lanes);
  if (!many.ok()) return;
  const auto hand_over = [&](const Assignment& all) {
    if (auto plan = as_lanes(problem, all, lanes)) offer(std::move(*plan));
  };
  std::vector<Plan> starts;
  if (start != nullptr) {
    if (auto plan = as_copies(problem, *many, *start, lanes)) starts.push_back(std::move(*plan));
  }
  PlannerOptions part = options;
  part.progress = nullptr;
  part.start = nullptr;
  if (auto greedy = find_planner("greedy")->plan(*many, part); greedy.ok())
    starts.push_back(std::move(greedy->plan));
  PlanStore mine(*many);
  part.deadline = options.deadline.sooner(kLocalShareOfLanes * options.deadline.seconds_left());
  improve(*many, part, starts, "lanes", mine, 0);
  if (mine.empty()) return;
  hand_over(assignment_of(*many, *mine.best()));
  part.deadline = options.deadline;
  const FlatProblem flat(*many, many->usable_devices());
  const Plan best = *mine.best();
  lns_rounds(*many, flat, part, best, 0, [&](const Assignment& assignment) {
    const bool better = mine.offer(assignment, "lanes");
    if (better) hand_over(assignment);
    return better;
  });
}

}  // namespace heddle
