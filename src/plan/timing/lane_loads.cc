// How the runs of one lane get their parameters (cold objective): chains of loads, load routes of their own,
// direct host access.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "lane_timing.h"

namespace heddle {
namespace {

constexpr int32_t kNobody = -1, kResident = -2;

}  // namespace

// Sets host access and load route of each run; its ops must agree. Host access is ignored for runs without
// parameters and for parameters that already are in host memory.
Status LaneTiming::set_cold_choices(const Assignment& a) {
  if (a.host_access.empty() && a.load_route.empty()) return {};
  if (!t_.is_cold)
    return bad_assignment("direct host access and routes of loads belong to the cold-latency objective only");
  const Cluster& cluster = *t_.problem.cluster;
  for (size_t r = 0; r < runs_.size(); ++r) {
    const auto ops = ops_of(r);
    const std::string& name = t_.problem.graph->op(ops[0]).name;
    bool any = false, has_params = false, agree = true;
    for (const OpId op : ops) {
      has_params = has_params || !t_.flat.params(op.index()).empty();
      if (!a.host_access.empty()) {
        any = any || a.host_access[op.index()] != 0;
        agree = agree && (a.host_access[op.index()] != 0) == (a.host_access[ops[0].index()] != 0);
      }
      if (!a.load_route.empty()) agree = agree && a.load_route[op.index()] == a.load_route[ops[0].index()];
    }
    if (!agree)
      return bad_assignment("the ops of the segment of '" + name +
                            "' get their parameters in different ways");
    if (!a.load_route.empty()) runs_[r].load_route = a.load_route[ops[0].index()];
    if (runs_[r].load_route < -1 || runs_[r].load_route >= static_cast<int64_t>(a.routes.size()))
      return bad_assignment("the load of op '" + name + "' names a route that does not exist");
    if (!any || !has_params || !needs_load(cluster, runs_[r].device)) continue;
    runs_[r].host_access = true;
    runs_[r].us = t_.times.host_access_us(ops, runs_[r].device);
    if (!std::isfinite(runs_[r].us)) {
      return bad_assignment("op '" + name + "' (or its segment) cannot run on device '" +
                            cluster.device(runs_[r].device).name + "' with direct host access");
    }
  }
  return {};
}

Status LaneTiming::find_own_loads() {
  own_loads_.assign(runs_.size(), std::nullopt);
  own_resources_.assign(runs_.size(), {});
  for (size_t r = 0; r < runs_.size(); ++r) {
    const DeviceId to = runs_[r].device;
    if (runs_[r].load_route < 0 || !needs_load(*t_.problem.cluster, to)) continue;
    const auto& hops = assignment_->routes[static_cast<size_t>(runs_[r].load_route)];
    HEDDLE_ASSIGN_OR_RETURN(own_loads_[r], t_.map.over(hops, DeviceId(), to, own_resources_[r]));
  }
  return {};
}

Status LaneTiming::plan_loads() {
  HEDDLE_RETURN_IF_ERROR(find_own_loads());
  const Cluster& cluster = *t_.problem.cluster;
  const size_t devices = cluster.num_devices(), params = t_.problem.graph->num_params();
  load_waiting_.assign(runs_.size(), -1);
  load_bytes_.assign(runs_.size(), 0);
  chain_of_device_.assign(devices, -1);
  chain_of_run_.assign(runs_.size(), -1);
  std::vector<uint32_t> by_first_use(runs_.size());
  std::iota(by_first_use.begin(), by_first_use.end(), 0U);
  std::sort(by_first_use.begin(), by_first_use.end(),
            [&](uint32_t a, uint32_t b) { return runs_[a].first_place < runs_[b].first_place; });
  std::vector<int32_t> chain_of_resource(t_.map.size(), -1);
  std::vector<int32_t> brought(static_cast<size_t>(cluster.num_memory_pools()) * params, kNobody);
  for (size_t pool = 0; pool < t_.problem.resident.size(); ++pool) {
    for (const ParamId p : t_.problem.resident[pool]) brought[pool * params + p.index()] = kResident;
  }
  for (const uint32_t r : by_first_use) {
    const DeviceId d = runs_[r].device;
    if (runs_[r].host_access || !needs_load(cluster, d)) continue;
    const auto pool = static_cast<size_t>(cluster.memory_pool(d));
    for (const OpId op : ops_of(r)) {
      for (const uint32_t p : t_.flat.params(op.index())) {
        int32_t& by = brought[pool * params + p];
        if (by == kResident) continue;
        if (by == kNobody) {
          by = static_cast<int32_t>(r);
          load_bytes_[r] = plus_bytes(load_bytes_[r], t_.problem.graph->params()[p].bytes);
        }
        add_wait(load_waiting_[static_cast<size_t>(by)], r);
      }
    }
    if (load_bytes_[r] > 0) HEDDLE_RETURN_IF_ERROR(plan_load(r, chain_of_resource));
  }
  chain_at_.assign(chains_.size(), 0);
  return {};
}

// Appends the load of run r to a chain: its device's, else one that shares a resource, else a new one.
Status LaneTiming::plan_load(uint32_t r, std::vector<int32_t>& chain_of_resource) {
  const DeviceId d = runs_[r].device;
  const RoutedTransfer& load = load_of(r);
  if (load.passage == Passage::kNone) {
    return bad_assignment("device '" + t_.problem.cluster->device(d).name +
                          "' has no route from its host's memory for parameters");
  }
  runs_[r].brings_params = true;
  int32_t chain = own_loads_[r] ? -1 : chain_of_device_[d.index()];
  for (const uint32_t k : load.resources) {
    if (chain < 0) chain = chain_of_resource[k];
  }
  if (chain < 0) {
    chain = static_cast<int32_t>(chains_.size());
    chains_.emplace_back();
  }
  for (const uint32_t k : load.resources) {
    if (chain_of_resource[k] < 0) chain_of_resource[k] = chain;
  }
  if (!own_loads_[r]) chain_of_device_[d.index()] = chain;
  chain_of_run_[r] = chain;
  chains_[static_cast<size_t>(chain)].push_back(r);
  return {};
}

void LaneTiming::issue_next_load(size_t chain, double at) {
  if (chain_at_[chain] == chains_[chain].size()) return;
  const uint32_t r = chains_[chain][chain_at_[chain]++];
  requests_.push({at, kLoad, static_cast<uint32_t>(runs_[r].first_place), r, runs_[r].device.value});
}

void LaneTiming::serve_load(const Request& request) {
  const size_t r = request.tensor;
  const RoutedTransfer& load = load_of(r);
  const double us = load.time_us(load_bytes_[r]);
  const double start = hold(load.resources, request.ready, us);
  steps_.push_back(
      {{StepKind::kLoad, SegmentId(r), TensorId(), DeviceId(), runs_[r].device, runs_[r].load_route}, start});
  release(load_waiting_[r], start + us, /*elsewhere=*/true);
  // Loads that hold no resources need not wait for each other.
  issue_next_load(static_cast<size_t>(chain_of_run_[r]), load.resources.empty() ? start : start + us);
}

void LaneTiming::serve_host_run(size_t r) {
  runs_[r].start = hold(t_.map.host_access_resources(runs_[r].device), runs_[r].start, runs_[r].us);
  start_run(r);
}

}  // namespace heddle
