// Grouping of ops into units: chains, light ops, a given number of groups.
#include <algorithm>
#include <queue>

#include "contraction.h"
#include "heddle/graph/coarsen.h"

namespace heddle {
namespace {

// Flops per byte accessed at or below which an op counts as light (copies, activations, additions,
// normalisation): it is bound by memory, and compiling it together with its neighbour hides its cost.
constexpr double kElementwiseFlopsPerByte = 1;

// Weight of one byte in flops when groups are compared by weight: about ten, typical of today's devices.
constexpr double kFlopsPerByte = 10;

double weight_of(const Op& op) {
  double given = 0;
  for (const auto& t : op.given_times) given = std::max(given, t.us);
  return given > 0 ? given : op.flops + kFlopsPerByte * static_cast<double>(op.bytes_accessed);
}

// The neighbour that a light group joins: its only predecessor, else its only successor, else -1.
int only_neighbour(const Contraction& c, int g) {
  if (c.predecessors(g).size() == 1) return c.predecessors(g).begin()->first;
  if (c.successors(g).size() == 1) return c.successors(g).begin()->first;
  return -1;
}

class ToSize {
 public:
  ToSize(const Graph& graph, size_t most)
      : c_(graph), most_(std::max<size_t>(1, most)), weight_(graph.num_ops()) {
    for (size_t v = 0; v < weight_.size(); ++v) {
      weight_[v] = weight_of(graph.op(OpId(v)));
      total_ += weight_[v];
      queue_.emplace(weight_[v], static_cast<int>(v));
    }
  }

  std::vector<int> run() {
    while (c_.num_groups() > most_ && !queue_.empty()) {
      const auto [w, g] = queue_.top();
      queue_.pop();
      // Skip stale entries: the group has grown or was merged into another since.
      if (c_.find(g) != g || weight_[static_cast<size_t>(g)] != w) continue;
      const int other = partner(g);
      if (other < 0) continue;
      const double sum = w + weight_[static_cast<size_t>(other)];
      const int united = c_.merge(g, other);
      weight_[static_cast<size_t>(united)] = sum;
      queue_.emplace(sum, united);
    }
    return c_.numbering();
  }

 private:
  // Prefers, among neighbours that keep the united group within its share of the total weight, the one that
  // exchanges the most bytes; else the lightest mergeable neighbour; else the lightest mergeable group
  // anywhere.
  int partner(int g) const {
    const double share = 1.5 * total_ / static_cast<double>(most_);
    int best = -1, lightest = -1;
    int64_t most_bytes = -1;
    const auto consider = [&](int h, int64_t bytes) {
      const double sum = weight_[static_cast<size_t>(g)] + weight_[static_cast<size_t>(h)];
      const bool better = sum <= share && bytes > most_bytes;
      const bool lighter =
          lightest < 0 || weight_[static_cast<size_t>(h)] < weight_[static_cast<size_t>(lightest)];
      if ((!better && !lighter) || !c_.may_merge(g, h)) return;
      if (better) {
        best = h;
        most_bytes = bytes;
      }
      if (lighter) lightest = h;
    };
    for (const auto& [h, bytes] : c_.successors(g)) consider(h, bytes);
    for (const auto& [h, bytes] : c_.predecessors(g)) consider(h, bytes);
    if (best >= 0) return best;
    if (lightest >= 0) return lightest;
    return any_partner(g);
  }

  int any_partner(int g) const {
    int best = -1;
    for (int h = 0; h < static_cast<int>(weight_.size()); ++h) {
      if (c_.find(h) != h || h == g) continue;
      if (best >= 0 && weight_[static_cast<size_t>(h)] >= weight_[static_cast<size_t>(best)]) continue;
      if (c_.may_merge(g, h)) best = h;
    }
    return best;
  }

  Contraction c_;
  size_t most_;
  std::vector<double> weight_;
  double total_ = 0;
  using Entry = std::pair<double, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

}  // namespace

std::vector<int> group_light_ops(const Graph& graph, double flops_share, double bytes_share) {
  Contraction c(graph);
  const double all_flops = graph.total_flops();
  double all_bytes = 0;
  for (const auto& op : graph.ops()) all_bytes += static_cast<double>(op.bytes_accessed);
  std::vector<bool> light(graph.num_ops());
  for (size_t v = 0; v < light.size(); ++v) {
    const auto& op = graph.op(OpId(v));
    const auto bytes = static_cast<double>(op.bytes_accessed);
    light[v] = op.flops <= kElementwiseFlopsPerByte * bytes ||
               (op.flops <= flops_share * all_flops && bytes <= bytes_share * all_bytes);
  }
  // One merge can leave another light group with a single neighbour, so passes repeat until none merges.
  for (bool changed = true; changed && c.num_groups() > 1;) {
    changed = false;
    for (const auto v : graph.topological_order()) {
      const int g = c.find(v.value);
      if (g != v.value || !light[v.index()]) continue;
      const int other = only_neighbour(c, g);
      if (other < 0) continue;
      const bool both = light[static_cast<size_t>(g)] && light[static_cast<size_t>(other)];
      const int united = c.merge(g, other);
      light[static_cast<size_t>(united)] = both;
      changed = true;
    }
  }
  return c.numbering();
}

std::vector<int> group_to_size(const Graph& graph, size_t max_groups) {
  return ToSize(graph, max_groups).run();
}

}  // namespace heddle
