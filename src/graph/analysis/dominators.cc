// Immediate dominators on a DAG: the nearest common ancestor, in the dominator tree, of an op's predecessors.
// One pass in topological order (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001).
#include <optional>

#include "heddle/graph/analysis.h"

namespace heddle {

std::vector<OpId> immediate_dominators(const Graph& graph, OpId source) {
  std::vector<OpId> idom(graph.num_ops());
  const auto meet = [&](OpId a, OpId b) {
    while (a != b) {
      if (!a.valid() || !b.valid()) return OpId();
      if (graph.topological_position(a) > graph.topological_position(b)) {
        a = idom[a.index()];
      } else {
        b = idom[b.index()];
      }
    }
    return a;
  };
  std::vector<uint8_t> reached(graph.num_ops(), source.valid() ? 0 : 1);
  if (source.valid()) reached[source.index()] = 1;
  for (const auto v : graph.topological_order()) {
    if (v == source) continue;
    std::optional<OpId> dominator;
    for (const auto p : graph.predecessors(v)) {
      if (reached[p.index()]) dominator = dominator ? meet(*dominator, p) : p;
    }
    if (!dominator) continue;
    idom[v.index()] = *dominator;
    reached[v.index()] = 1;
  }
  return idom;
}

}  // namespace heddle
