#include "heddle/plan/robustness.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "heddle/plan/evaluator.h"

namespace heddle {
namespace {

constexpr std::array kShares = {0.10, 0.25, 0.50};

Result<double> value_with(const Problem& problem, const Plan& plan, std::shared_ptr<const CostTable> costs) {
  Problem slowed = problem;
  slowed.costs = std::move(costs);
  return evaluate_objective(slowed, plan);
}

std::set<DeviceId> devices_of(const Problem& problem, const Plan& plan) {
  std::set<DeviceId> used;
  for (const Segment& segment : plan.segments) used.insert(problem.cluster->physical(segment.device));
  return used;
}

// The devices whose loss makes the plan slower: those that it uses, then those that share a core with one of them.
std::vector<DeviceId> devices_that_count(const Problem& problem, const Plan& plan) {
  const std::set<DeviceId> used = devices_of(problem, plan);
  std::set<DeviceId> beside;
  for (const DeviceId device : used) {
    for (const DeviceId other : problem.cluster->overlaps(device))
      beside.insert(problem.cluster->physical(other));
  }
  std::vector<DeviceId> all(used.begin(), used.end());
  std::ranges::set_difference(beside, used, std::back_inserter(all));
  return all;
}

bool runs_on(const Plan& plan, DeviceId device) {
  return std::ranges::any_of(plan.segments, [&](const Segment& s) { return s.device == device; });
}

// The rule: a device of one core shares it with the other process, half and half; one of several works on the others.
double slowdown_without_core(const Problem& problem, DeviceId id) {
  if (const double measured = problem.costs->core_taken(id); measured > 0) return measured;
  const auto cores = static_cast<double>(problem.cluster->device(id).cores.size());
  return cores > 1 ? cores / (cores - 1) : 2;
}

Status take_cores(const Problem& problem, const Plan& plan, const std::set<DeviceId>& used,
                  Robustness& result) {
  const Cluster& cluster = *problem.cluster;
  std::set<std::pair<HostId, int>> cores;
  for (const DeviceId device : used)
    for (const int core : cluster.device(device).cores) cores.emplace(cluster.device(device).host, core);
  for (const auto& [host, core] : cores) {
    const auto costs = std::make_shared<CostTable>(*problem.costs);
    bool measured = true;
    for (size_t d = 0; d < cluster.num_devices(); ++d) {
      const DeviceId id(d);
      const Device& device = cluster.device(id);
      if (device.host != host || std::ranges::find(device.cores, core) == device.cores.end()) continue;
      costs->scale(id, slowdown_without_core(problem, id));
      measured = measured && (!runs_on(plan, id) || problem.costs->core_taken(id) > 0);
    }
    HEDDLE_ASSIGN_OR_RETURN(const double us, value_with(problem, plan, costs));
    if (!result.core || us > result.core->value_us)
      result.core = {"core " + std::to_string(core), us, measured};
  }
  return {};
}

}  // namespace

std::shared_ptr<const CostTable> costs_without(const Problem& problem, DeviceId device, double share) {
  const Cluster& cluster = *problem.cluster;
  std::set<DeviceId> slower;
  for (const DeviceId variant : cluster.variants(device)) slower.insert(variant);
  for (const DeviceId other : cluster.overlaps(device)) slower.insert(other);
  auto costs = std::make_shared<CostTable>(*problem.costs);
  for (const DeviceId id : slower) costs->scale(id, 1 / (1 - share));
  return costs;
}

Result<WorstLoss> worst_loss(const Problem& problem, const Plan& plan, double share) {
  WorstLoss worst;
  for (const DeviceId device : devices_that_count(problem, plan)) {
    HEDDLE_ASSIGN_OR_RETURN(const double us,
                            value_with(problem, plan, costs_without(problem, device, share)));
    if (!worst.device.valid() || us > worst.value_us) worst = {device, us};
  }
  return worst;
}

Result<Robustness> robustness(const Problem& problem, const Plan& plan) {
  Robustness result;
  HEDDLE_ASSIGN_OR_RETURN(result.value_us, evaluate_objective(problem, plan));
  for (size_t i = 0; i < kShares.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const WorstLoss worst, worst_loss(problem, plan, kShares[i]));
    result.losses[i].share = kShares[i];
    if (worst.device.valid())
      result.losses[i].worst = {problem.cluster->device(worst.device).name, worst.value_us};
  }
  HEDDLE_RETURN_IF_ERROR(take_cores(problem, plan, devices_of(problem, plan), result));
  return result;
}

}  // namespace heddle
