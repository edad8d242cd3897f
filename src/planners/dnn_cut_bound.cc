// A max-load bound from minimum cuts. The accelerator that holds unit u holds some set S of units around it,
// so its load is at least
//   f(u) = min over S containing u of ( work of S + cost of the nets that S cuts ),
// which is a minimum cut: u is the source; each unit has an edge to the sink of its work; a net is a vertex
// pair with an edge of its cost, entered from and left to all its units. Units with f(u) > T are on CPUs in
// any split of max-load T, whose loads they add up to; the least T that allows this is the bound.
#include <algorithm>
#include <limits>
#include <numeric>

#include "dnn_load.h"

namespace heddle {
namespace {

size_t at(int32_t v) { return static_cast<size_t>(v); }
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// E. Dinic 1970: blocking flows over levels, with real capacities.
class Flow {
 public:
  explicit Flow(size_t vertices) : first_(vertices), level_(vertices), next_(vertices) {}
  void connect(size_t a, size_t b, double capacity) {
    first_[a].push_back(arcs_.size());
    arcs_.push_back({b, capacity});
    first_[b].push_back(arcs_.size());
    arcs_.push_back({a, 0});
  }
  // The capacities are used up. Stops once the flow exceeds `enough`.
  double run(size_t source, size_t sink, double enough, double smallest) {
    double flow = 0;
    while (flow <= enough && find_levels(source, sink, smallest)) {
      std::fill(next_.begin(), next_.end(), 0);
      for (double pushed = 1; pushed > 0 && flow <= enough; flow += pushed)
        pushed = push(source, sink, kInfinity, smallest);
    }
    return flow;
  }

 private:
  struct Arc {
    size_t to;
    double capacity;
  };

  bool find_levels(size_t source, size_t sink, double smallest) {
    std::fill(level_.begin(), level_.end(), -1);
    queue_.assign(1, source);
    level_[source] = 0;
    for (size_t i = 0; i < queue_.size() && level_[sink] < 0; ++i) {
      for (const auto a : first_[queue_[i]]) {
        if (arcs_[a].capacity <= smallest || level_[arcs_[a].to] >= 0) continue;
        level_[arcs_[a].to] = level_[queue_[i]] + 1;
        queue_.push_back(arcs_[a].to);
      }
    }
    return level_[sink] >= 0;
  }

  double push(size_t v, size_t sink, double most, double smallest) {
    if (v == sink) return most;
    for (auto& i = next_[v]; i < first_[v].size(); ++i) {
      const auto a = first_[v][i];
      if (arcs_[a].capacity <= smallest || level_[arcs_[a].to] != level_[v] + 1) continue;
      const double pushed = push(arcs_[a].to, sink, std::min(most, arcs_[a].capacity), smallest);
      if (pushed <= 0) continue;
      arcs_[a].capacity -= pushed;
      arcs_[a ^ 1].capacity += pushed;
      return pushed;
    }
    return 0;
  }

  std::vector<Arc> arcs_;
  std::vector<std::vector<size_t>> first_;  // arcs of each vertex; arc a's reverse is a ^ 1
  std::vector<int32_t> level_;
  std::vector<size_t> next_, queue_;
};

}  // namespace

double cut_bound(const DnnUnits& units, double enough, const Deadline& deadline) {
  const size_t n = units.size(), sink = n + 2 * units.nets.size();
  Flow network(sink + 1);
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
    Flow flow = network;
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
