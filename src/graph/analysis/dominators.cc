// Immediate dominators on a DAG: the nearest common ancestor, in the dominator tree, of an op's predecessors.
// One pass in topological order (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001).
#include <functional>

#include "heddle/graph/analysis.h"

namespace heddle {
namespace {

// `position` puts dominators first; the invalid id (the virtual root) precedes all.
std::vector<OpId> dominators(size_t n, const std::function<OpId(size_t)>& at,
                             const std::function<int(OpId)>& position,
                             const std::function<std::span<const OpId>(OpId)>& before) {
  std::vector<OpId> idom(n);
  const auto meet = [&](OpId a, OpId b) {
    while (a != b) {
      if (!a.valid() || !b.valid()) return OpId();
      if (position(a) > position(b)) {
        a = idom[a.index()];
      } else {
        b = idom[b.index()];
      }
    }
    return a;
  };
  for (size_t i = 0; i < n; ++i) {
    const auto v = at(i);
    const auto preds = before(v);
    OpId dominator = preds.empty() ? OpId() : preds[0];
    for (const auto p : preds) dominator = meet(dominator, p);
    idom[v.index()] = dominator;
  }
  return idom;
}

}  // namespace

std::vector<OpId> immediate_dominators(const Graph& graph) {
  const auto topo = graph.topological_order();
  return dominators(
      topo.size(), [&](size_t i) { return topo[i]; }, [&](OpId v) { return graph.topological_position(v); },
      [&](OpId v) { return graph.predecessors(v); });
}

std::vector<OpId> immediate_post_dominators(const Graph& graph) {
  const auto topo = graph.topological_order();
  const auto n = topo.size();
  return dominators(
      n, [&](size_t i) { return topo[n - 1 - i]; },
      [&](OpId v) { return static_cast<int>(n) - 1 - graph.topological_position(v); },
      [&](OpId v) { return graph.successors(v); });
}

}  // namespace heddle
