#include "heddle/graph/analysis.h"

namespace heddle {

Reachability::Reachability(const Graph& graph)
    : words_((graph.num_ops() + 63) / 64), bits_(words_ * graph.num_ops()) {
  const auto topo = graph.topological_order();
  for (size_t i = topo.size(); i-- > 0;) {
    auto* row = bits_.data() + topo[i].index() * words_;
    for (const auto s : graph.successors(topo[i])) {
      const auto* other = bits_.data() + s.index() * words_;
      for (size_t w = 0; w < words_; ++w) row[w] |= other[w];
      row[s.index() / 64] |= uint64_t{1} << (s.index() % 64);
    }
  }
}

std::vector<Edge> transitive_reduction(const Graph& graph) {
  const Reachability reach(graph);
  std::vector<Edge> kept;
  for (const auto& e : graph.edges()) {
    // An edge is implied when another successor of its source reaches its destination.
    bool implied = false;
    for (const auto s : graph.successors(e.src)) implied |= s != e.dst && reach.reaches(s, e.dst);
    if (!implied) kept.push_back(e);
  }
  return kept;
}

}  // namespace heddle
