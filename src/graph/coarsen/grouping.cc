// Grouping of ops into units: chains, light ops, a given number of groups.
#include <algorithm>
#include <map>
#include <numeric>
#include <queue>

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

// A graph under contraction: groups of ops, the edges between them, and merges that keep it acyclic. A group
// is named by one of its ops; find() gives an op's group by its current name.
class Contraction {
 public:
  using Neighbours = std::map<int, int64_t>;  // to bytes

  explicit Contraction(const Graph& graph)
      : graph_(graph),
        parent_(graph.num_ops()),
        out_(graph.num_ops()),
        in_(graph.num_ops()),
        order_(graph.num_ops()),
        rank_(graph.num_ops()),
        visited_(graph.num_ops(), 0),
        groups_(graph.num_ops()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (size_t v = 0; v < parent_.size(); ++v) {
      rank_[v] = graph.topological_position(OpId(v));
      order_[static_cast<size_t>(rank_[v])] = static_cast<int>(v);
    }
    for (const auto& e : graph.edges()) {
      out_[e.src.index()][e.dst.value] += e.bytes;
      in_[e.dst.index()][e.src.value] += e.bytes;
    }
  }

  int find(int op) const {
    while (parent_[static_cast<size_t>(op)] != op) {
      auto& p = parent_[static_cast<size_t>(op)];
      p = parent_[static_cast<size_t>(p)];
      op = p;
    }
    return op;
  }
  size_t num_groups() const { return groups_; }
  const Neighbours& successors(int group) const { return out_[static_cast<size_t>(group)]; }
  const Neighbours& predecessors(int group) const { return in_[static_cast<size_t>(group)]; }

  // True when the quotient stays acyclic if a and b are united. Needs no search when one of them is the only
  // neighbour of the other on that side. Otherwise searches for a path from one to the other through a third
  // group; only groups ranked between the two can be on it. O(groups between) at worst.
  bool may_merge(int a, int b) const {
    if (a == b) return false;
    if (rank_[static_cast<size_t>(a)] > rank_[static_cast<size_t>(b)]) std::swap(a, b);
    // No path leads from b to a: edges only lead to higher ranks.
    if (successors(a).contains(b) && (successors(a).size() == 1 || predecessors(b).size() == 1)) return true;
    return !path_through_third(a, b);
  }

  // Returns the name of the united group. Call only after may_merge(a, b) was true. O(groups ranked between
  // and their edges), plus the smaller group's degree.
  int merge(int a, int b) {
    const auto degree = [&](int g) { return successors(g).size() + predecessors(g).size(); };
    if (degree(a) < degree(b)) std::swap(a, b);
    const auto ia = static_cast<size_t>(a), ib = static_cast<size_t>(b);
    parent_[ib] = a;
    --groups_;
    const bool a_first = rank_[ia] < rank_[ib];
    rank_merged(a_first ? a : b, a_first ? b : a, a);
    out_[ia].erase(b);
    in_[ia].erase(b);
    // Each edge of b becomes one of a, at both of its ends.
    const auto move_edges = [&](std::vector<Neighbours>& here, std::vector<Neighbours>& there) {
      for (const auto& [other, bytes] : here[ib]) {
        if (other == a) continue;
        here[ia][other] += bytes;
        auto& back = there[static_cast<size_t>(other)];
        back.erase(b);
        back[a] += bytes;
      }
      here[ib].clear();
    };
    move_edges(out_, in_);
    move_edges(in_, out_);
    return a;
  }

  // Groups numbered 0..k-1 in topological order of their first ops.
  std::vector<int> numbering() const {
    std::vector<int> number(parent_.size(), -1), group(parent_.size());
    int next = 0;
    for (const auto v : graph_.topological_order()) {
      auto& n = number[static_cast<size_t>(find(v.value))];
      if (n < 0) n = next++;
      group[v.index()] = n;
    }
    return group;
  }

 private:
  // Marks, under a new round number, every group that `from` reaches through groups ranked before `to`. True
  // when one of those groups leads to `to`.
  bool path_through_third(int from, int to) const {
    ++round_;
    const int limit = rank_[static_cast<size_t>(to)];
    bool found = false;
    std::vector<int> stack = {from};
    while (!stack.empty()) {
      const int g = stack.back();
      stack.pop_back();
      for (const auto& [next, bytes] : successors(g)) {
        if (next == to && g != from) found = true;
        auto& visited = visited_[static_cast<size_t>(next)];
        if (rank_[static_cast<size_t>(next)] >= limit || visited == round_) continue;
        visited = round_;
        stack.push_back(next);
      }
    }
    return found;
  }

  // Renumbers the ranks between `low` and `high`: groups that `low` reaches move behind the united group, all
  // others before it; both keep their order. No group that `low` reaches leads to `high` (may_merge), so
  // every edge still leads to a higher rank.
  void rank_merged(int low, int high, int united) {
    path_through_third(low, high);
    const int begin = rank_[static_cast<size_t>(low)], end = rank_[static_cast<size_t>(high)];
    std::vector<int> before, after;
    for (int r = begin; r <= end; ++r) {
      const int g = order_[static_cast<size_t>(r)];
      if (g < 0 || g == low || g == high) continue;
      (visited_[static_cast<size_t>(g)] == round_ ? after : before).push_back(g);
    }
    before.push_back(united);
    before.insert(before.end(), after.begin(), after.end());
    for (int r = begin; r <= end; ++r) {
      const auto i = static_cast<size_t>(r - begin);
      order_[static_cast<size_t>(r)] = i < before.size() ? before[i] : -1;
      if (i < before.size()) rank_[static_cast<size_t>(before[i])] = r;
    }
  }

  const Graph& graph_;
  mutable std::vector<int> parent_;
  std::vector<Neighbours> out_, in_;
  // A topological order of the quotient, kept up to date: every edge leads to a higher rank. The positions of
  // a group's ops in the graph could not replace it: two groups' spans may overlap although neither group
  // precedes the other.
  std::vector<int> order_, rank_;     // rank -> group (-1: unused), group -> rank
  mutable std::vector<int> visited_;  // round of the last search that reached the group
  mutable int round_ = 0;
  size_t groups_;
};

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
