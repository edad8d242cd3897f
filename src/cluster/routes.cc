// A route's time is (sum of latencies) + bytes / (least bandwidth). With two criteria, the fastest path to a
// node need not extend the fastest path to the node before it, so Dijkstra on the time alone is wrong. The
// labels here are paths, settled in the order (latency, hops, link ids). A label is kept if its bandwidth
// exceeds that of every label settled before at its node; any other is no better in either criterion nor in
// the ties, whatever its continuation. So each node keeps at most one label per distinct bandwidth: one or
// two in real topologies.
//
// Devices do not forward: a GPU passes on data only if software makes it do so. So a route passes through a
// device only between nodes that no other path joins (Moirai's multi-hop tunnels), even if it is faster.
#include "routes.h"

#include <algorithm>
#include <cstdint>
#include <queue>
#include <string>

#include "heddle/base/units.h"

namespace heddle {
namespace {

// Far beyond real machines: PPipe's HC1-L (100 GPUs on one network) needs 90,000 labels, 200,000 hops.
constexpr size_t kMaxLabels = 30'000'000;
constexpr size_t kMaxHops = 20'000'000;

struct Arc {
  uint32_t to;
  uint32_t link;
  bool forward;
  double bytes_per_s;
  double latency_us;
};

struct Label {
  double latency_us;
  double bytes_per_s;
  uint32_t hops;
  uint32_t node;
  int32_t parent;  // index of a label, -1 at the source
  uint32_t link;   // the last hop
  bool forward;
};

std::vector<std::vector<Arc>> arcs_of(size_t num_nodes, std::span<const Link> links,
                                      std::span<const Bus> buses) {
  std::vector<std::vector<Arc>> arcs(num_nodes);
  for (uint32_t i = 0; i < links.size(); ++i) {
    const Link& l = links[i];
    double bandwidth = l.bytes_per_s;
    if (l.bus.valid() && buses[l.bus.index()].bytes_per_s > 0)
      bandwidth = std::min(bandwidth, buses[l.bus.index()].bytes_per_s);
    const auto a = static_cast<uint32_t>(l.a.value), b = static_cast<uint32_t>(l.b.value);
    arcs[a].push_back({b, i, true, bandwidth, l.latency_us});
    if (l.duplex != Duplex::kOneWay) arcs[b].push_back({a, i, false, bandwidth, l.latency_us});
  }
  return arcs;
}

// All routes from one source; reused for all sources to save allocations.
class Search {
 public:
  Search(std::span<const Node> nodes, const std::vector<std::vector<Arc>>& arcs)
      : nodes_(nodes), arcs_(arcs), settled_bandwidth_(nodes.size()), best_(nodes.size()) {}

  // False when the work limit for all sources together is exceeded.
  bool run(uint32_t source, bool through_devices, size_t& labels_left) {
    labels_.clear();
    std::fill(settled_bandwidth_.begin(), settled_bandwidth_.end(), 0.0);
    std::fill(best_.begin(), best_.end(), -1);
    const auto later = [this](int32_t a, int32_t b) { return key_less(b, a); };
    std::priority_queue<int32_t, std::vector<int32_t>, decltype(later)> queue(later);
    labels_.push_back({0, kInfinity, 0, source, -1, 0, true});
    queue.push(0);
    while (!queue.empty()) {
      const int32_t top = queue.top();
      queue.pop();
      const Label label = labels_[static_cast<size_t>(top)];
      if (label.bytes_per_s <= settled_bandwidth_[label.node]) continue;
      settled_bandwidth_[label.node] = label.bytes_per_s;
      if (best_[label.node] < 0 || result_less(top, best_[label.node])) best_[label.node] = top;
      if (!through_devices && label.node != source && nodes_[label.node].kind == Node::Kind::kDevice)
        continue;
      for (const Arc& arc : arcs_[label.node]) {
        const double bandwidth = std::min(label.bytes_per_s, arc.bytes_per_s);
        if (bandwidth <= settled_bandwidth_[arc.to]) continue;
        if (labels_left == 0) return false;
        --labels_left;
        labels_.push_back({label.latency_us + arc.latency_us, bandwidth, label.hops + 1, arc.to, top,
                           arc.link, arc.forward});
        queue.push(static_cast<int32_t>(labels_.size() - 1));
      }
    }
    return true;
  }

  std::optional<Route> route_to(size_t node) const {
    if (best_[node] < 0) return std::nullopt;
    const Label& last = labels_[static_cast<size_t>(best_[node])];
    Route route{
        .hops = std::vector<Hop>(last.hops), .bytes_per_s = last.bytes_per_s, .latency_us = last.latency_us};
    int32_t at = best_[node];
    for (size_t i = last.hops; i-- > 0;) {
      const Label& l = labels_[static_cast<size_t>(at)];
      route.hops[i] = {LinkId(static_cast<int32_t>(l.link)), l.forward};
      at = l.parent;
    }
    return route;
  }

 private:
  // For two paths with equally many hops: true if a's link is smaller at the first difference.
  bool links_less(int32_t a, int32_t b) const {
    bool less = false;
    while (a != b && a >= 0 && b >= 0) {
      const Label &x = labels_[static_cast<size_t>(a)], &y = labels_[static_cast<size_t>(b)];
      if (x.link != y.link) less = x.link < y.link;
      a = x.parent;
      b = y.parent;
    }
    return less;
  }
  bool key_less(int32_t a, int32_t b) const {
    const Label &x = labels_[static_cast<size_t>(a)], &y = labels_[static_cast<size_t>(b)];
    if (x.latency_us != y.latency_us) return x.latency_us < y.latency_us;
    if (x.hops != y.hops) return x.hops < y.hops;
    return links_less(a, b);
  }
  bool result_less(int32_t a, int32_t b) const {
    const Label &x = labels_[static_cast<size_t>(a)], &y = labels_[static_cast<size_t>(b)];
    const double tx = time_us(x), ty = time_us(y);
    if (tx != ty) return tx < ty;
    if (x.hops != y.hops) return x.hops < y.hops;
    return links_less(a, b);
  }
  static double time_us(const Label& l) { return l.latency_us + kRouteMessageBytes / l.bytes_per_s * 1e6; }

  std::span<const Node> nodes_;
  const std::vector<std::vector<Arc>>& arcs_;
  std::vector<Label> labels_;
  std::vector<double> settled_bandwidth_;
  std::vector<int32_t> best_;
};

}  // namespace

Result<RouteTable> fastest_routes(std::span<const Node> nodes, std::span<const Link> links,
                                  std::span<const Bus> buses) {
  const size_t n = nodes.size();
  const auto arcs = arcs_of(n, links, buses);
  RouteTable routes(n * n);
  Search search(nodes, arcs);
  size_t labels_left = kMaxLabels, hops = 0;
  for (size_t from = 0; from < n; ++from) {
    const auto row = std::span(routes).subspan(from * n, n);
    for (const bool through_devices : {false, true}) {
      if (std::all_of(row.begin(), row.end(), [](const auto& r) { return r.has_value(); })) break;
      if (!search.run(static_cast<uint32_t>(from), through_devices, labels_left)) {
        return unsupported(
            "the topology has too many incomparable routes; use fewer links or fewer distinct bandwidths");
      }
      for (size_t to = 0; to < n; ++to) {
        if (row[to]) continue;
        row[to] = search.route_to(to);
        if (row[to]) hops += row[to]->hops.size();
      }
    }
    if (hops > kMaxHops) {
      return unsupported("the routes of the topology hold over " + std::to_string(kMaxHops) +
                         " hops; join its nodes by switches instead of long chains");
    }
  }
  return routes;
}

}  // namespace heddle
