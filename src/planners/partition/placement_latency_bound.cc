// Lower bounds for latency.
//
// Take any path. Pieces are convex (or they would wait for themselves), so a piece holds consecutive nodes
// v_i..v_j of the path and, with them, every node that lies between v_i and v_j on any path, and the colours
// of all these share the accelerator (and the piece, if it has only one): their memory must fit, and the
// piece's work is serial. Before it, v_i's predecessor on the path comes in; after it, v_j goes out. The
// least time over all divisions of the path into nodes on the CPUs and at most k*q such pieces,
//   D[0, 0] = 0
//   D[j+1, s] = min( D[j, s] + cpu(v_j),
//                    min_i D[i, s-1] + cost(v_{i-1}) + sum accelerator(between(v_i, v_j)) + cost(v_j) ),
// is below every split's latency. It is taken for several paths: those heaviest in time, in memory, in
// transfers, and in all three.
#include <algorithm>

#include "heddle/base/units.h"
#include "placement_latency.h"

namespace heddle {
namespace {

// Between-sets of a path cost about its length squared times the nodes.
constexpr double kMaxSteps = 4e8;

class PathBound {
 public:
  PathBound(const PlacementGraph& w, int pieces)
      : w_(w),
        one_piece_(pieces == 1),
        pieces_(at(w.accelerators) * static_cast<size_t>(pieces)),
        colour_(at(w.colours)) {
    for (const auto& node : w.nodes) {
      if (node.colour < 0) continue;
      auto& colour = colour_[at(node.colour)];
      colour.work += node.accelerator;
      colour.bytes += node.bytes;
      colour.possible = colour.possible && node.on_accelerator;
    }
  }

  // The path with the largest sum of weights.
  std::vector<int32_t> heaviest(const std::vector<double>& weight) const {
    std::vector<double> best(w_.nodes.size());
    std::vector<int32_t> from(w_.nodes.size(), -1);
    int32_t last = w_.order.front();
    for (const auto v : w_.order) {
      for (const auto u : w_.in[at(v)]) {
        if (from[at(v)] >= 0 && best[at(u)] <= best[at(from[at(v)])]) continue;
        from[at(v)] = u;
      }
      best[at(v)] = weight[at(v)] + (from[at(v)] >= 0 ? best[at(from[at(v)])] : 0);
      if (best[at(v)] >= best[at(last)]) last = v;
    }
    std::vector<int32_t> path;
    for (auto v = last; v >= 0; v = from[at(v)]) path.push_back(v);
    std::reverse(path.begin(), path.end());
    return path;
  }

  double of(const std::vector<int32_t>& path) const {
    const size_t n = path.size(), states = std::min(pieces_, n) + 1;
    if (static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(w_.nodes.size()) > kMaxSteps)
      return on_its_own(path);
    // The last place of the path from which each node is reached, and the first that it reaches.
    std::vector<int32_t> after(w_.nodes.size(), -1), before(w_.nodes.size(), static_cast<int32_t>(n));
    std::vector<int32_t> place(w_.nodes.size(), -1);
    for (size_t i = 0; i < n; ++i) place[at(path[i])] = static_cast<int32_t>(i);
    for (const auto v : w_.order) {
      for (const auto u : w_.in[at(v)]) after[at(v)] = std::max(after[at(v)], after[at(u)]);
      if (place[at(v)] >= 0) after[at(v)] = place[at(v)];
    }
    for (auto it = w_.order.rbegin(); it != w_.order.rend(); ++it) {
      const auto v = at(*it);
      for (const auto x : w_.out[v]) before[v] = std::min(before[v], before[at(x)]);
      if (place[v] >= 0) before[v] = place[v];
    }
    // By the place that leads to them last: nodes between path[i] and path[j] have i <= after, before <= j.
    std::vector<std::vector<int32_t>> entered(n);
    for (size_t v = 0; v < after.size(); ++v)
      if (after[v] >= 0 && before[v] < static_cast<int32_t>(n))
        entered[at(after[v])].push_back(static_cast<int32_t>(v));

    std::vector<double> best((n + 1) * states, kInfinity);
    best[0] = 0;
    std::vector<int32_t> counted(colour_.size(), -1);  // by colour: the last end for which it was counted
    // Fixed end j, start i falling: each step adds the nodes that i is the last to reach.
    for (size_t j = 0; j < n; ++j) {
      for (size_t s = 0; s < states; ++s)
        best[(j + 1) * states + s] = best[j * states + s] + w_.nodes[at(path[j])].cpu;
      double sum = 0, memory = 0;
      for (size_t i = j + 1; i-- > 0;) {
        bool possible = true;
        for (const auto v : entered[i]) {
          const auto& node = w_.nodes[at(v)];
          if (before[at(v)] > static_cast<int32_t>(j)) continue;
          Needs needs{node.accelerator, node.bytes, node.on_accelerator};
          if (node.colour >= 0) {
            needs = colour_[at(node.colour)];
            if (counted[at(node.colour)] == static_cast<int32_t>(j)) needs = {0, 0, true};
            counted[at(node.colour)] = static_cast<int32_t>(j);
            if (!one_piece_) needs.work = node.accelerator;
          }
          sum += needs.work;
          memory += needs.bytes;
          possible = possible && needs.possible;
        }
        if (!possible || memory > w_.accelerator_bytes) break;
        const double transfers =
            (i > 0 ? w_.nodes[at(path[i - 1])].cost : 0) + (j + 1 < n ? w_.nodes[at(path[j])].cost : 0);
        for (size_t s = 1; s < states; ++s) {
          auto& there = best[(j + 1) * states + s];
          there = std::min(there, best[i * states + s - 1] + transfers + sum);
        }
      }
    }
    return *std::min_element(&best[n * states], &best[n * states] + states);
  }

 private:
  double on_its_own(const std::vector<int32_t>& path) const {
    double sum = 0;
    for (const auto v : path) {
      const auto& node = w_.nodes[at(v)];
      sum += node.on_accelerator && pieces_ > 0 ? std::min(node.cpu, node.accelerator) : node.cpu;
    }
    return sum;
  }

  struct Needs {
    double work = 0, bytes = 0;
    bool possible = true;
  };

  const PlacementGraph& w_;
  bool one_piece_;
  size_t pieces_;
  std::vector<Needs> colour_;  // of all nodes of each
};

}  // namespace

double latency_bound(const PlacementGraph& w, int pieces) {
  const PathBound bound(w, pieces);
  double time = 0, bytes = 0, cost = 0;
  for (const auto& node : w.nodes) {
    time += node.accelerator;
    bytes += node.bytes;
    cost += node.cost;
  }
  // Mixtures of the three, each relative to the whole; the last counts nodes.
  static constexpr double kMixtures[][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {1, 1, 1, 0},
                                            {2, 1, 0, 0}, {1, 0, 2, 0}, {0, 1, 2, 0}, {0, 0, 0, 1}};
  double best = 0;
  for (const auto& mixture : kMixtures) {
    std::vector<double> weight;
    for (const auto& node : w.nodes) {
      const double least = std::min(node.cpu, node.accelerator);
      weight.push_back((time > 0 ? mixture[0] * least / time : 0) +
                       (bytes > 0 ? mixture[1] * node.bytes / bytes : 0) +
                       (cost > 0 ? mixture[2] * node.cost / cost : 0) + mixture[3]);
    }
    best = std::max(best, bound.of(bound.heaviest(weight)));
  }
  return best;
}

}  // namespace heddle
