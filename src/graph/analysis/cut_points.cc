#include <algorithm>

#include "heddle/graph/analysis.h"

namespace heddle {

std::vector<CutPoint> cut_points(const Graph& graph) {
  // An op is on every path iff no edge jumps over it and nothing starts or ends beside it, in topological
  // order: count the paths' open ends by position.
  const auto topo = graph.topological_order();
  const auto n = topo.size();
  const double total = std::max(1.0, graph.total_flops());
  std::vector<CutPoint> points;
  size_t reach = 0;  // furthest position that an op so far feeds
  size_t open_sinks = 0;
  size_t sources_left = 0;
  for (const auto op : topo) sources_left += graph.predecessors(op).empty();
  double flops = 0;
  for (size_t i = 0; i < n; ++i) {
    const auto op = topo[i];
    sources_left -= graph.predecessors(op).empty();
    flops += graph.op(op).flops;
    const bool jumped = reach > i;
    if (!jumped && open_sinks == 0 && sources_left == 0 && !graph.successors(op).empty()) {
      int64_t bytes = 0;
      for (const auto t : graph.op(op).outputs) {
        if (!graph.tensor(t).consumers.empty()) bytes += graph.tensor(t).bytes;
      }
      points.push_back({op, bytes, flops / total});
    }
    if (graph.successors(op).empty()) ++open_sinks;
    for (const auto next : graph.successors(op)) {
      reach = std::max(reach, static_cast<size_t>(graph.topological_position(next)));
    }
  }
  return points;
}

}  // namespace heddle
