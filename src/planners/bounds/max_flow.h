// Maximum flows, and so minimum cuts, with real capacities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle {

// E. Dinic 1970: blocking flows over levels. O(V^2 E), far less on the networks of bounds. Copies are cheap
// beside runs: a run uses the capacities up.
class MaxFlow {
 public:
  explicit MaxFlow(size_t vertices) : first_(vertices), level_(vertices), next_(vertices) {}
  // Capacities may be infinite, but no path from source to sink may consist of such arcs alone.
  void connect(size_t a, size_t b, double capacity);
  // Stops once the flow exceeds `enough`. Capacities up to `smallest` count as used up.
  double run(size_t source, size_t sink, double enough, double smallest);
  // After a run that was not stopped: is the vertex on the source's side of the minimum cut?
  bool on_source_side(size_t vertex) const { return level_[vertex] >= 0; }

 private:
  struct Arc {
    size_t to;
    double capacity;
  };
  bool find_levels(size_t source, size_t sink, double smallest);
  double push(size_t source, size_t sink, double smallest);

  std::vector<Arc> arcs_;
  std::vector<std::vector<size_t>> first_;  // arcs of each vertex; arc a's reverse is a ^ 1
  std::vector<int32_t> level_;
  std::vector<size_t> next_, queue_, path_;
};

}  // namespace heddle
