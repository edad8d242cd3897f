// A max-load bound from minimum cuts. The accelerator that holds unit u holds some set S of units around it,
// so its load is at least
//   f(u) = min over S containing u of ( work of S + cost of the nets that S cuts ),
// which is a minimum cut: u is the source; each unit has an edge to the sink of its work; a net is a vertex
// pair with an edge of its cost, entered from and left to all its units. Units with f(u) > T are on CPUs in
// any split of max-load T, whose loads they add up to; the least T that allows this is the bound.
#include <algorithm>
#include <limits>
#include <numeric>

#include "bounds/max_flow.h"
#include "heddle/base/units.h"
#include "placement_load.h"

namespace heddle {
namespace {}  // namespace

double cut_bound(const PlacementUnits& units, double enough, const Deadline& deadline) {
  const size_t n = units.size(), sink = n + 2 * units.nets.size();
  MaxFlow network(sink + 1);
  double whole = 0;
  for (size_t u = 0; u < n; ++u) {
    whole += units.accelerator[u];
    if (units.accelerator[u] > 0) network.connect(u, sink, units.accelerator[u]);
  }
  for (size_t net = 0; net < units.nets.size(); ++net) {
    const size_t in = n + 2 * net, out = in + 1;
    whole += units.nets[net].cost;
    network.connect(in, out, units.nets[net].cost);
    for (const auto pin : units.nets[net].pins) {
      network.connect(at(pin), in, kInfinity);
      network.connect(out, at(pin), kInfinity);
    }
  }
  // Those that would weigh most on a CPU say most; without CPUs all do.
  std::vector<int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return units.cpu[at(a)] > units.cpu[at(b)]; });
  std::vector<std::pair<double, double>> found;  // f(u), cpu(u)
  for (const auto u : order) {
    if (deadline.should_stop()) break;
    MaxFlow flow = network;
    const double f = units.on_accelerator[at(u)] && units.accelerators > 0
                         ? flow.run(at(u), sink, enough, whole * 1e-13)
                         : kInfinity;
    found.emplace_back(f, units.cpu[at(u)]);
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  // The first i on CPUs, the others on accelerators.
  double bound = kInfinity, on_cpus = 0;
  for (size_t i = 0; i <= found.size(); ++i) {
    const double cpus = on_cpus == 0 ? 0 : units.cpus > 0 ? on_cpus / units.cpus : kInfinity;
    bound = std::min(bound, std::max(cpus, i < found.size() ? found[i].first : 0.0));
    if (i < found.size()) on_cpus += found[i].second;
    if (units.cpus == 0) break;
  }
  // Rounding of the flows, and those that were stopped because they are large enough.
  return std::min(bound, enough) * (1 - 1e-9);
}

}  // namespace heddle
