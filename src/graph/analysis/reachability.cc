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

}  // namespace heddle
