#include "max_flow.h"

#include <algorithm>
#include <limits>

namespace heddle {

void MaxFlow::connect(size_t a, size_t b, double capacity) {
  first_[a].push_back(arcs_.size());
  arcs_.push_back({b, capacity});
  first_[b].push_back(arcs_.size());
  arcs_.push_back({a, 0});
}

double MaxFlow::run(size_t source, size_t sink, double enough, double smallest) {
  double flow = 0;
  while (flow <= enough && find_levels(source, sink, smallest)) {
    std::fill(next_.begin(), next_.end(), 0);
    for (double pushed = 1; pushed > 0 && flow <= enough; flow += pushed)
      pushed = push(source, sink, smallest);
  }
  return flow;
}

bool MaxFlow::find_levels(size_t source, size_t sink, double smallest) {
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

// One augmenting path along rising levels; 0 when there is none left. Paths may be as long as the network, so
// the path is kept in a list, not on the stack.
double MaxFlow::push(size_t source, size_t sink, double smallest) {
  path_.clear();
  size_t v = source;
  while (v != sink) {
    bool moved = false;
    for (auto& i = next_[v]; i < first_[v].size(); ++i) {
      const auto a = first_[v][i];
      if (arcs_[a].capacity <= smallest || level_[arcs_[a].to] != level_[v] + 1) continue;
      path_.push_back(a);
      v = arcs_[a].to;
      moved = true;
      break;
    }
    if (moved) continue;
    if (path_.empty()) return 0;
    v = arcs_[path_.back() ^ 1].to;
    path_.pop_back();
    ++next_[v];
  }
  double most = std::numeric_limits<double>::infinity();
  for (const auto a : path_) most = std::min(most, arcs_[a].capacity);
  for (const auto a : path_) {
    arcs_[a].capacity -= most;
    arcs_[a ^ 1].capacity += most;
  }
  return most;
}

}  // namespace heddle
