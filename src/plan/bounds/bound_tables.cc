#include "bound_tables.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "heddle/base/units.h"

namespace heddle {
namespace {

struct LinkArc {
  size_t to;
  double latency_us, bytes_per_s;
  std::vector<uint32_t> resources;
};
using Arcs = std::vector<std::vector<LinkArc>>;

Arcs arcs_of(const Cluster& cluster, const ResourceMap& map) {
  Arcs arcs(cluster.nodes().size());
  for (size_t l = 0; l < cluster.links().size(); ++l) {
    const Link& link = cluster.links()[l];
    const auto add = [&](NodeId from, NodeId to, bool forward) {
      const Hop hop{LinkId(l), forward};
      arcs[from.index()].push_back(
          {to.index(), link.latency_us, link_bytes_per_s(cluster, link), map.link_resources({&hop, 1})});
    };
    add(link.a, link.b, true);
    if (link.duplex != Duplex::kOneWay) add(link.b, link.a, false);
  }
  return arcs;
}

// Dijkstra from one node: least sum of latencies, or highest bandwidth (as inverse: largest on the route).
template <class Extend>
std::vector<double> spread(const Arcs& arcs, size_t from, Extend extend) {
  std::vector<double> best(arcs.size(), kInfinity);
  std::priority_queue<std::pair<double, size_t>, std::vector<std::pair<double, size_t>>, std::greater<>>
      queue;
  queue.push({best[from] = 0, from});
  while (!queue.empty()) {
    const auto [value, node] = queue.top();
    queue.pop();
    if (value > best[node]) continue;
    for (const LinkArc& arc : arcs[node]) {
      const double next = extend(value, arc);
      if (next < best[arc.to]) queue.push({best[arc.to] = next, arc.to});
    }
  }
  return best;
}

std::vector<TransferRate> fastest_from(const Arcs& arcs, size_t from) {
  const auto latency = spread(arcs, from, [](double v, const LinkArc& a) { return v + a.latency_us; });
  const auto slowness =
      spread(arcs, from, [](double v, const LinkArc& a) { return std::max(v, 1e6 / a.bytes_per_s); });
  std::vector<TransferRate> rates(arcs.size());
  for (size_t n = 0; n < rates.size(); ++n) {
    rates[n] = latency[n] < kInfinity ? TransferRate{latency[n], slowness[n]} : TransferRate{kInfinity, 0};
  }
  return rates;
}

bool reaches_without(const Arcs& arcs, size_t from, size_t to, uint32_t resource) {
  std::vector<uint8_t> seen(arcs.size(), 0);
  std::vector<size_t> stack{from};
  seen[from] = 1;
  while (!stack.empty()) {
    const size_t node = stack.back();
    stack.pop_back();
    if (node == to) return true;
    for (const LinkArc& arc : arcs[node]) {
      const bool holds =
          std::find(arc.resources.begin(), arc.resources.end(), resource) != arc.resources.end();
      if (holds || seen[arc.to]) continue;
      seen[arc.to] = 1;
      stack.push_back(arc.to);
    }
  }
  return false;
}

void fill_params(BoundTables& b) {
  const Graph& graph = *b.problem.graph;
  std::vector<double> users(graph.num_params(), 0);
  for (size_t v = 0; v < graph.num_ops(); ++v) {
    for (const uint32_t p : b.flat.params(v)) ++users[p];
  }
  const size_t k = b.devices.size();
  b.param_share.assign(graph.num_ops(), 0);
  b.load_share.assign(graph.num_ops() * k, 0);
  b.own_bytes = b.all_bytes = b.largest_param = b.load_share;
  for (size_t v = 0; v < graph.num_ops(); ++v) {
    for (const uint32_t p : b.flat.params(v)) {
      const auto bytes = static_cast<double>(graph.params()[p].bytes);
      b.param_share[v] += bytes / users[p];
      for (size_t i = 0; i < k; ++i) {
        if (b.cold && b.problem.is_resident(b.problem.cluster->memory_pool(b.devices[i]), ParamId(size_t{p})))
          continue;
        const size_t at = v * k + i;
        b.load_share[at] += bytes / users[p];
        b.all_bytes[at] += bytes;
        b.largest_param[at] = std::max(b.largest_param[at], bytes);
        if (users[p] == 1) b.own_bytes[at] += bytes;
      }
    }
  }
}

void fill_host_access(BoundTables& b) {
  if (!b.problem.has_host_access()) return;
  b.loaded_time = b.time;
  b.loaded_path_time = b.path_time;
  b.host_time.resize(b.time.size());
  for (size_t v = 0; v < b.problem.graph->num_ops(); ++v) {
    for (size_t i = 0; i < b.devices.size(); ++i) {
      const size_t at = v * b.devices.size() + i;
      b.host_time[at] = host_access_us(b.problem, OpId(v), b.devices[i]);
      b.time[at] = std::min(b.time[at], b.host_time[at]);
      b.path_time[at] = std::min(b.path_time[at], b.host_time[at]);
    }
  }
}

void fill_loads(BoundTables& b, const Arcs& arcs) {
  const Cluster& cluster = *b.problem.cluster;
  std::unordered_map<uint32_t, uint32_t> number;
  for (size_t i = 0; i < b.devices.size(); ++i) {
    const DeviceId d = b.devices[i];
    if (!needs_load(cluster, d)) continue;
    const size_t host = cluster.host_node(cluster.device(d).host).index(),
                 node = cluster.device_node(d).index();
    b.loads[i] = fastest_from(arcs, host)[node];
    const auto use = [&](uint32_t resource) {
      b.load_resources[i].push_back(
          number.try_emplace(resource, static_cast<uint32_t>(number.size())).first->second);
    };
    // The copy engine (numbered from the top, so that it cannot collide with links), and every link or bus
    // that all routes need.
    if (b.problem.execution.engine_contention && cluster.device(d).copy_engines > 0)
      use(UINT32_MAX - static_cast<uint32_t>(i));
    const Route* route = cluster.load_route(d);
    if (route == nullptr) continue;
    for (const uint32_t r : b.map->link_resources(route->hops)) {
      if (reaches_without(arcs, host, node, r)) continue;
      use(r);
      if (!b.problem.execution.fixed_sharing) b.host_resources[i].push_back(b.load_resources[i].back());
    }
  }
  b.num_load_resources = number.size();
}

}  // namespace

BoundTables::BoundTables(const Problem& p)
    : problem(p),
      flat(*p.graph),
      map(std::make_shared<ResourceMap>(*p.cluster, p.execution)),
      cold(p.objective == Objective::kColdLatency),
      devices(p.usable_devices()) {
  const size_t n = p.graph->num_ops(), k = devices.size(), all = p.cluster->num_devices();
  const std::vector<double> least = p.costs->bound_times();
  const std::vector<double> work = p.costs->bound_work(p.execution.stage_width);
  time.resize(n * k);
  path_time.resize(n * k);
  for (size_t v = 0; v < n; ++v) {
    for (size_t i = 0; i < k; ++i) {
      time[v * k + i] = work[v * all + devices[i].index()];
      path_time[v * k + i] = least[v * all + devices[i].index()];
    }
  }
  const Arcs arcs = arcs_of(*p.cluster, *map);
  rates.resize(k * k);
  for (size_t i = 0; i < k; ++i) {
    const auto from = fastest_from(arcs, p.cluster->device_node(devices[i]).index());
    for (size_t j = 0; j < k; ++j) {
      // Transfers with given times, or within runs, count for nothing: that is a relaxation.
      const bool is_free = p.execution.transfers != Transfers::kRoutes ||
                           passage(*p.cluster, devices[i], devices[j]) == Passage::kFree;
      if (!is_free) rates[i * k + j] = from[p.cluster->device_node(devices[j]).index()];
    }
  }
  loads.resize(k);
  load_resources.resize(k);
  host_resources.resize(k);
  if (cold) fill_loads(*this, arcs);
  fill_params(*this);
  fill_host_access(*this);
}

}  // namespace heddle
