#include "relaxation.h"

#include <algorithm>
#include <limits>

namespace heddle {
namespace {

// Relative: sums of latencies differ by their order.
constexpr double kLatencyRounding = 1e-12;

bool routes_are_fastest(const FlatProblem& flat) {
  const Cluster& cluster = *flat.problem().cluster;
  const size_t n = cluster.nodes().size();
  std::vector<double> latency(n * n, kImpossible), rate(n * n, 0);
  for (size_t i = 0; i < n; ++i) latency[i * n + i] = 0, rate[i * n + i] = kImpossible;
  const auto join = [&](NodeId a, NodeId b, double us, double bytes_per_s) {
    const size_t at = a.index() * n + b.index();
    latency[at] = std::min(latency[at], us);
    rate[at] = std::max(rate[at], bytes_per_s);
  };
  for (const Link& link : cluster.links()) {
    double bytes_per_s = link.bytes_per_s;
    if (link.bus.valid() && cluster.bus(link.bus).bytes_per_s > 0)
      bytes_per_s = std::min(bytes_per_s, cluster.bus(link.bus).bytes_per_s);
    join(link.a, link.b, link.latency_us, bytes_per_s);
    if (link.duplex != Duplex::kOneWay) join(link.b, link.a, link.latency_us, bytes_per_s);
  }
  for (size_t via = 0; via < n; ++via) {
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = 0; b < n; ++b) {
        latency[a * n + b] = std::min(latency[a * n + b], latency[a * n + via] + latency[via * n + b]);
        rate[a * n + b] = std::max(rate[a * n + b], std::min(rate[a * n + via], rate[via * n + b]));
      }
    }
  }
  for (size_t u = 0; u < flat.num_devices(); ++u) {
    for (size_t v = 0; v < flat.num_devices(); ++v) {
      const RoutedTransfer& way = flat.way(u, v);
      if (way.passage == Passage::kFree) continue;
      if (way.passage == Passage::kNone) return false;
      const size_t at =
          cluster.device_node(flat.device(u)).index() * n + cluster.device_node(flat.device(v)).index();
      if (way.latency_us > latency[at] * (1 + kLatencyRounding) ||
          way.bytes_per_s < rate[at] * (1 - kLatencyRounding))
        return false;
    }
  }
  return true;
}

}  // namespace

bool bounds_every_plan(const TaskModel& model) {
  const FlatProblem& flat = model.flat();
  const Problem& problem = flat.problem();
  if (problem.objective != Objective::kLatency || model.num_requests() > 1 ||
      flat.num_devices() != problem.usable_devices().size())
    return false;
  for (const SegmentCost& s : problem.costs->segments()) {
    double sum = 0;
    for (const OpId op : s.ops) sum += problem.costs->us(op, s.device);
    if (s.cost.us < sum * (1 - kLatencyRounding)) return false;
  }
  return routes_are_fastest(flat);
}

}  // namespace heddle
