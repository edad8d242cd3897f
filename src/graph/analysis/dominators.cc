// Immediate dominators on a DAG: the nearest common ancestor, in the dominator tree, of an op's predecessors.
// One pass in topological order (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001).
#include "heddle/graph/analysis.h"

namespace heddle {

std::vector<OpId> immediate_dominators(const Graph& graph) {
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
  for (const auto v : graph.topological_order()) {
    const auto preds = graph.predecessors(v);
    OpId dominator = preds.empty() ? OpId() : preds[0];
    for (const auto p : preds) dominator = meet(dominator, p);
    idom[v.index()] = dominator;
  }
  return idom;
}

}  // namespace heddle
