#include "load_ways.h"

#include <set>

namespace heddle {

std::vector<Hop> hops_over(const Cluster& cluster, DeviceId helper, DeviceId device) {
  const Route* first = cluster.load_route(helper);
  const Route* second = cluster.route(helper, device);
  if (first == nullptr || second == nullptr || first->hops.empty() || second->hops.empty()) return {};
  std::vector<Hop> hops = first->hops;
  hops.insert(hops.end(), second->hops.begin(), second->hops.end());
  std::set<NodeId> seen{cluster.host_node(cluster.device(device).host)};
  for (const Hop& hop : hops) {
    const Link& link = cluster.link(hop.link);
    if (!seen.insert(hop.forward ? link.b : link.a).second) return {};
  }
  return hops;
}

}  // namespace heddle
