#include "heddle/plan/robustness.h"

#include <algorithm>
#include <set>

#include "heddle/plan/evaluator.h"

namespace heddle {
namespace {

constexpr std::array kShares = {0.10, 0.25, 0.50};

Result<double> value_with(const Problem& problem, const Plan& plan, CostTable costs) {
  Problem slowed = problem;
  slowed.costs = std::make_shared<CostTable>(std::move(costs));
  return evaluate_objective(slowed, plan);
}

void keep_worst(SlowedPlan& worst, const std::string& what, double value_us) {
  if (value_us > worst.value_us) worst = {what, value_us};
}

// A device of one core shares it with the other process, half and half; one of several works on the others.
double speed_without_core(const Device& device) {
  const auto cores = static_cast<double>(device.cores.size());
  return cores > 1 ? (cores - 1) / cores : 0.5;
}

Status slow_devices(const Problem& problem, const Plan& plan, const std::set<DeviceId>& used,
                    Robustness& result) {
  const Cluster& cluster = *problem.cluster;
  for (const DeviceId device : used) {
    for (auto& loss : result.losses) {
      CostTable costs = *problem.costs;
      for (const DeviceId variant : cluster.variants(device)) costs.scale(variant, 1 / (1 - loss.share));
      HEDDLE_ASSIGN_OR_RETURN(const double us, value_with(problem, plan, std::move(costs)));
      keep_worst(loss.worst, cluster.device(device).name, us);
    }
  }
  return {};
}

Status take_cores(const Problem& problem, const Plan& plan, const std::set<DeviceId>& used,
                  Robustness& result) {
  const Cluster& cluster = *problem.cluster;
  std::set<std::pair<HostId, int>> cores;
  for (const DeviceId device : used)
    for (const int core : cluster.device(device).cores) cores.emplace(cluster.device(device).host, core);
  for (const auto& [host, core] : cores) {
    CostTable costs = *problem.costs;
    for (size_t d = 0; d < cluster.num_devices(); ++d) {
      const Device& device = cluster.devices()[d];
      if (device.host == host && std::ranges::find(device.cores, core) != device.cores.end())
        costs.scale(DeviceId(d), 1 / speed_without_core(device));
    }
    HEDDLE_ASSIGN_OR_RETURN(const double us, value_with(problem, plan, std::move(costs)));
    if (!result.core) result.core.emplace();
    keep_worst(*result.core, "core " + std::to_string(core), us);
  }
  return {};
}

}  // namespace

Result<Robustness> robustness(const Problem& problem, const Plan& plan) {
  Robustness result;
  for (size_t i = 0; i < kShares.size(); ++i) result.losses[i].share = kShares[i];
  HEDDLE_ASSIGN_OR_RETURN(result.value_us, evaluate_objective(problem, plan));
  std::set<DeviceId> used;
  for (const Segment& segment : plan.segments) used.insert(problem.cluster->physical(segment.device));
  HEDDLE_RETURN_IF_ERROR(slow_devices(problem, plan, used, result));
  HEDDLE_RETURN_IF_ERROR(take_cores(problem, plan, used, result));
  return result;
}

}  // namespace heddle
