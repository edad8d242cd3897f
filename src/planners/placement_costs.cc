#include "placement_costs.h"

#include <algorithm>
#include <map>

namespace heddle {

PlacementCosts::PlacementCosts(const Problem& problem) : devices_(problem.usable_devices()) {
  fill_times(problem);
  fill_transfers(problem);
  fill_resources(problem);
  fill_memory(problem);
}

void PlacementCosts::fill_times(const Problem& problem) {
  const auto n = problem.graph->num_ops();
  us_.reserve(n * devices_.size());
  mean_us_.reserve(n);
  for (size_t v = 0; v < n; ++v) {
    double sum = 0;
    int count = 0;
    for (const auto d : devices_) {
      const double t = problem.costs->us(OpId(v), d);
      us_.push_back(t);
      if (t < kImpossible) {
        sum += t;
        ++count;
      }
    }
    mean_us_.push_back(count ? sum / count : kImpossible);
  }
}

void PlacementCosts::fill_transfers(const Problem& problem) {
  const auto n = devices_.size();
  rates_.resize(n * n);
  int pairs = 0;
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = 0; b < n; ++b) {
      auto& r = rates_[a * n + b];
      if (a == b) continue;
      const auto way = passage(*problem.cluster, devices_[a], devices_[b]);
      if (way == Passage::kNone) {
        r.fixed_us = kImpossible;
        continue;
      }
      if (way == Passage::kRoute) {
        const auto* route = problem.cluster->route(devices_[a], devices_[b]);
        r = {route->latency_us, 1e6 / route->bytes_per_s};
      }
      mean_fixed_us_ += r.fixed_us;
      mean_us_per_byte_ += r.us_per_byte;
      ++pairs;
    }
  }
  if (pairs > 0) {
    mean_fixed_us_ /= pairs;
    mean_us_per_byte_ /= pairs;
  }
}

void PlacementCosts::fill_resources(const Problem& problem) {
  const auto& cluster = *problem.cluster;
  std::map<std::pair<int, int>, int> core;  // (host, core) -> resource
  for (const auto id : devices_) {
    const auto& d = cluster.device(id);
    std::vector<int> list;
    for (const int c : d.cores) {
      const auto [it, added] = core.try_emplace({d.host.value, c}, num_resources_);
      num_resources_ += added;
      list.push_back(it->second);
    }
    if (list.empty()) list.push_back(num_resources_++);
    resources_.push_back(std::move(list));
  }
}

void PlacementCosts::fill_memory(const Problem& problem) {
  const auto& cluster = *problem.cluster;
  const auto& graph = *problem.graph;
  // The largest op's tensors must fit beside the parameters; what else is alive at the same time the
  // evaluator tells.
  int64_t activations = 0;
  for (const auto& op : graph.ops()) {
    int64_t bytes = 0;
    for (const auto t : op.inputs) bytes += graph.tensor(t).bytes;
    for (const auto t : op.outputs) bytes += graph.tensor(t).bytes;
    activations = std::max(activations, bytes);
  }
  for (int p = 0; p < cluster.num_memory_pools(); ++p) {
    const auto limit = cluster.memory_pool_bytes(p);
    param_room_.push_back(limit == 0 ? INT64_MAX : std::max<int64_t>(0, limit - activations));
  }
  for (const auto d : devices_) {
    pool_.push_back(cluster.memory_pool(d));
    const auto* route = needs_load(cluster, d) ? cluster.load_route(d) : nullptr;
    load_us_per_byte_.push_back(
        route != nullptr && problem.objective == Objective::kColdLatency ? 1e6 / route->bytes_per_s : 0);
  }
}

}  // namespace heddle
