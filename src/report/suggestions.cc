#include "suggestions.h"

#include <algorithm>
#include <set>

#include "heddle/cluster/edit.h"

namespace heddle {
namespace {

constexpr double kLeastGain = 1e-3;
constexpr size_t kMostSuggestions = 8;

void try_change(const Problem& changed, const Plan& plan, double value_us, const std::string& text,
                std::vector<Suggestion>& out) {
  const auto value = evaluate_objective(changed, plan);
  if (!value.ok()) return;
  const double gain = value_us > 0 ? (value_us - *value) / value_us : 0;
  if (gain >= kLeastGain) out.push_back({text, *value, gain});
}

// Links that the plan's transfers and loads use.
std::set<LinkId> used_links(const Problem& problem, const Plan& plan) {
  std::set<LinkId> links;
  for (const auto& step : plan.steps) {
    const std::vector<Hop>* hops = nullptr;
    if (step.route >= 0) {
      hops = &plan.routes[static_cast<size_t>(step.route)];
    } else if (step.kind != StepKind::kRun) {
      const auto* route = step.kind == StepKind::kLoad ? problem.cluster->load_route(step.to)
                                                       : problem.cluster->route(step.from, step.to);
      if (route != nullptr) hops = &route->hops;
    }
    if (hops == nullptr) continue;
    for (const auto& hop : *hops) links.insert(hop.link);
  }
  return links;
}

}  // namespace

std::vector<Suggestion> suggest(const Problem& problem, const Plan& plan, double value_us) {
  std::vector<Suggestion> list;
  std::set<DeviceId> used;
  for (const auto& s : plan.segments) used.insert(problem.cluster->physical(s.device));
  for (const auto device : used) {
    Problem changed = problem;
    auto costs = std::make_shared<CostTable>(*problem.costs);
    for (const auto variant : problem.cluster->variants(device)) costs->scale(variant, 0.5);
    changed.costs = std::move(costs);
    try_change(changed, plan, value_us, problem.cluster->device(device).name + " twice as fast", list);
  }
  for (const auto link : used_links(problem, plan)) {
    const auto& name = problem.cluster->link(link).name;
    auto cluster = edit_cluster(*problem.cluster, {.scale = name, .factor = 2});
    if (!cluster.ok()) continue;
    Problem changed = problem;
    changed.cluster = *cluster;
    try_change(changed, plan, value_us, "link " + name + " twice as fast", list);
  }
  Problem uncontended = problem;
  uncontended.execution.link_contention = uncontended.execution.engine_contention = false;
  try_change(uncontended, plan, value_us, "transfers that never wait for each other", list);
  std::stable_sort(list.begin(), list.end(),
                   [](const Suggestion& a, const Suggestion& b) { return a.gain > b.gain; });
  if (list.size() > kMostSuggestions) list.resize(kMostSuggestions);
  return list;
}

}  // namespace heddle
