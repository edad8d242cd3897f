#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "bound_tables.h"
#include "heddle/base/units.h"

namespace heddle {
namespace {

// Bytes per us of a link that leaves host memory, limited by its bus.
double rate_of(const Cluster& cluster, const Link& link) { return link_bytes_per_s(cluster, link) * 1e-6; }

// Marks nodes from which a load can reach one of the host's devices without passing the host's node again.
std::vector<uint8_t> nodes_before_devices(const BoundTables& tables, NodeId host,
                                          const std::vector<uint8_t>& closed) {
  const Cluster& cluster = *tables.problem.cluster;
  std::vector<uint8_t> leads(cluster.nodes().size(), 0);
  for (const DeviceId d : tables.devices) {
    if (cluster.host_node(cluster.device(d).host) == host && needs_load(cluster, d))
      leads[cluster.device_node(d).index()] = 1;
  }
  for (bool grown = true; grown;) {
    grown = false;
    for (const Link& link : cluster.links()) {
      for (const bool forward : {true, false}) {
        if (!forward && link.duplex == Duplex::kOneWay) continue;
        const NodeId from = forward ? link.a : link.b, to = forward ? link.b : link.a;
        if (!leads[to.index()] || leads[from.index()] || closed[from.index()] || from == host) continue;
        leads[from.index()] = 1;
        grown = true;
      }
    }
  }
  return leads;
}

// Total rate of the links that leave hosts whose devices need loads. Links on one bus count once, with the
// fastest, for each direction that the bus serves separately. A link counts if it leads to such a device
// without passing an unusable one, or if the cluster's own load route starts with it.
double gate_rate(const BoundTables& tables) {
  const Cluster& cluster = *tables.problem.cluster;
  const auto closed = tables.problem.closed_nodes();
  std::map<NodeId, std::vector<uint8_t>> hosts;
  std::set<std::pair<LinkId, bool>> own;
  for (const DeviceId d : tables.devices) {
    if (!needs_load(cluster, d)) continue;
    const NodeId host = cluster.host_node(cluster.device(d).host);
    if (hosts.count(host) == 0) hosts[host] = nodes_before_devices(tables, host, closed);
    const Route* route = cluster.load_route(d);
    if (route != nullptr && !route->hops.empty()) own.insert({route->hops[0].link, route->hops[0].forward});
  }
  std::map<uint32_t, double> rates;  // by ResourceMap::channel()
  for (size_t l = 0; l < cluster.links().size(); ++l) {
    const Link& link = cluster.links()[l];
    for (const bool forward : {true, false}) {
      if (!forward && link.duplex == Duplex::kOneWay) continue;
      const auto host = hosts.find(forward ? link.a : link.b);
      if (host == hosts.end()) continue;
      const Hop hop{LinkId(l), forward};
      const bool leads = host->second[(forward ? link.b : link.a).index()] != 0;
      if (!leads && own.count({hop.link, forward}) == 0) continue;
      double& rate = rates[tables.map->channel(hop)];
      rate = std::max(rate, rate_of(cluster, link));
    }
  }
  double sum = 0;
  for (const auto& [resource, rate] : rates) sum += rate;
  return sum;
}

}  // namespace

double host_gate_us(const BoundTables& tables, const PathBounds& paths) {
  const Problem& problem = tables.problem;
  if (!tables.cold || !problem.execution.link_contention) return 0;
  const Cluster& cluster = *problem.cluster;
  const double gate = gate_rate(tables);
  if (!(gate > 0) || !(gate < kInfinity)) return 0;
  const size_t n = problem.graph->num_ops(), k = tables.devices.size();
  struct Need {
    double bytes = 0, tail = 0;
  };
  std::vector<Need> needs;
  for (size_t v = 0; v < n; ++v) {
    Need need{kInfinity, kInfinity};
    for (size_t i = 0; i < k; ++i) {
      const size_t at = v * k + i;
      const double t = tables.t(v, i);
      if (!(t < kInfinity)) continue;
      const DeviceId d = tables.devices[i];
      if (!needs_load(cluster, d) || tables.all_bytes[at] == 0) {
        need.bytes = 0;
        break;
      }
      // Loaded before the op starts.
      const bool loads = !tables.has_host_access() || tables.loaded_time[at] < kInfinity;
      if (loads) {
        need.bytes = std::min(need.bytes, tables.load_share[at]);
        need.tail = std::min(need.tail, paths.rest[at]);
      }
      // Read in place: the run holds the first link of the device's load route for its whole duration.
      if (!tables.has_host_access() || !(tables.host_time[at] < kInfinity)) continue;
      const Route* route = cluster.load_route(d);
      const bool holds = !problem.execution.fixed_sharing && route != nullptr && !route->hops.empty();
      const double held =
          holds ? tables.host_time[at] * rate_of(cluster, cluster.link(route->hops[0].link)) : 0;
      need.bytes = std::min(need.bytes, held);
      need.tail = std::min(need.tail, paths.rest[at] - t);
    }
    if (need.bytes > 0 && need.bytes < kInfinity) needs.push_back(need);
  }
  std::sort(needs.begin(), needs.end(), [](const Need& a, const Need& b) { return a.tail > b.tail; });
  double best = 0, bytes = 0;
  for (const Need& need : needs) {
    bytes += need.bytes;
    best = std::max(best, need.tail + bytes / gate);
  }
  return best;
}

}  // namespace heddle
