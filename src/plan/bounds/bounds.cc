#include "heddle/plan/bounds.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bound_area.h"
#include "bound_blocks.h"
#include "bound_tables.h"
#include "heddle/base/units.h"

namespace heddle {
namespace {

// Elementary steps (op x device) that the area bound may take: about 0.1 s.
constexpr double kAreaWork = 2e7;
constexpr int kMostRounds = 2000, kLeastRounds = 20;
constexpr int kWindows = 3;

// Sums and maxima of n terms are off by at most about n ulps; bounds are rounded down by more than that.
double round_down(double us, size_t ops) { return us * (1 - 1e-12 - 4e-16 * static_cast<double>(ops)); }

void take(Bound& best, double us, const char* reason) {
  if (us > best.us) best = {us, reason};
}

// Max over (a, b) of a * weight + b + sum of the scores of ops with head >= a and tail >= b. Ops are added by
// falling head. A segment tree over tails holds b + sum for each b that is at most the tail of some op added
// (an empty window proves nothing).
class WindowTree {
 public:
  explicit WindowTree(std::vector<double> tails) : tails_(std::move(tails)) {
    std::sort(tails_.begin(), tails_.end());
    tails_.erase(std::unique(tails_.begin(), tails_.end()), tails_.end());
    while (size_ < tails_.size()) size_ *= 2;
    most_.assign(2 * size_, -kInfinity);
    add_.assign(2 * size_, 0);
  }
  void add(double tail, double score) {
    const auto last = std::upper_bound(tails_.begin(), tails_.end(), tail) - tails_.begin();  // b <= tail
    for (; open_ < static_cast<size_t>(last); ++open_) open(open_);
    add_to(1, 0, size_, static_cast<size_t>(last), score);
  }
  double most() const { return most_[1]; }
  // A tail b at which most() is reached.
  double best_tail() const {
    size_t node = 1;
    while (node < size_) node = 2 * node + (most_[2 * node] >= most_[2 * node + 1] ? 0 : 1);
    return tails_[std::min(node - size_, tails_.size() - 1)];
  }

 private:
  // Ops added before have smaller tails, so this leaf has no pending additions.
  void open(size_t leaf) {
    most_[size_ + leaf] = tails_[leaf];
    for (size_t node = (size_ + leaf) / 2; node > 0; node /= 2) {
      most_[node] = std::max(most_[2 * node], most_[2 * node + 1]) + add_[node];
    }
  }
  // Adds to the leaves [0, end) below `node`, which covers [from, to).
  void add_to(size_t node, size_t from, size_t to, size_t end, double score) {
    if (from >= end) return;
    if (to <= end) {
      most_[node] += score;
      add_[node] += score;
      return;
    }
    const size_t middle = (from + to) / 2;
    add_to(2 * node, from, middle, end, score);
    add_to(2 * node + 1, middle, to, end, score);
    most_[node] = std::max(most_[2 * node], most_[2 * node + 1]) + add_[node];
  }
  std::vector<double> tails_;
  size_t size_ = 1;
  size_t open_ = 0;  // number of leaves in use: the first ones
  std::vector<double> most_, add_;
};

struct HeadsAndTails {
  std::vector<double> head, tail;  // per op: least time before its start, and after its end
};

HeadsAndTails ends_of(const BoundTables& b, const PathBounds& paths) {
  const size_t n = b.problem.graph->num_ops(), k = b.devices.size();
  HeadsAndTails e{std::vector<double>(n, kInfinity), std::vector<double>(n, kInfinity)};
  for (size_t v = 0; v < n; ++v) {
    for (size_t i = 0; i < k; ++i) {
      const double t = b.t(v, i);
      if (!(t < kInfinity)) continue;
      e.head[v] = std::min(e.head[v], paths.start[v * k + i]);
      e.tail[v] = std::min(e.tail[v], paths.rest[v * k + i] - t);
    }
  }
  return e;
}

struct BoundWindow {
  double us = 0, a = 0, b = 0;
};

BoundWindow best_window(const HeadsAndTails& ends, const AreaBound& area) {
  const size_t n = ends.head.size();
  std::vector<uint32_t> by_head(n);
  std::iota(by_head.begin(), by_head.end(), 0U);
  std::sort(by_head.begin(), by_head.end(), [&](uint32_t x, uint32_t y) {
    return ends.head[x] != ends.head[y] ? ends.head[x] > ends.head[y] : x < y;
  });
  WindowTree tree(ends.tail);
  const double weight = area.compute_weight(), discount = area.memory_discount();
  BoundWindow best;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t v = by_head[i];
    tree.add(ends.tail[v], area.score(v));
    if (i + 1 < n && ends.head[by_head[i + 1]] == ends.head[v]) continue;
    const double us = ends.head[v] * weight + tree.most() - discount;
    if (us > best.us) best = {us, ends.head[v], tree.best_tail()};
  }
  return best;
}

const char* area_reason(const AreaBound& area, bool windowed) {
  if (area.memory_discount() > 1e-6 * area.compute_weight())
    return windowed ? "head + area + tail with memory limits" : "area with memory limits";
  if (area.has_loads()) return windowed ? "head + area and loads + tail" : "area and parameter loads";
  return windowed ? "head + area + tail" : "area";
}

void windowed_area(const HeadsAndTails& ends, AreaBound& area, int rounds, const Deadline& deadline,
                   Bound& best) {
  for (int i = 0; i < kWindows && !deadline.should_stop(); ++i) {
    const BoundWindow window = best_window(ends, area);
    take(best, window.us, area_reason(area, window.a > 0 || window.b > 0));
    // Improve the multipliers for this window's ops, then look for the best window under them.
    std::vector<uint32_t> inside;
    for (uint32_t v = 0; v < ends.head.size(); ++v) {
      if (ends.head[v] >= window.a && ends.tail[v] >= window.b) inside.push_back(v);
    }
    const double alone = area.improve(inside, rounds, deadline);
    take(best, alone + window.a * area.compute_weight() + window.b, area_reason(area, true));
  }
  const BoundWindow window = best_window(ends, area);
  take(best, window.us, area_reason(area, true));
}

}  // namespace

Bound bound_of(const BoundTables& tables, std::span<const Block> blocks, const Deadline& deadline) {
  const Problem& problem = tables.problem;
  const size_t n = problem.graph->num_ops();
  AreaBound area(tables);
  const double per_round = static_cast<double>(area.work_per_round(n));
  const bool is_latency = problem.objective != Objective::kThroughput;
  const double affordable = kAreaWork / (is_latency ? 2 : 1) / per_round;
  // Where transfers have given times, planners prove bounds that know them; this one is for a first look.
  const bool is_rough = problem.execution.transfers != Transfers::kRoutes;
  const int rounds =
      is_rough ? kLeastRounds : static_cast<int>(std::clamp<double>(affordable, kLeastRounds, kMostRounds));
  std::vector<uint32_t> all(n);
  std::iota(all.begin(), all.end(), 0U);

  Bound best{0, "none"};
  if (is_latency) {
    const PathBounds paths = path_bounds(tables, blocks);
    if (!std::isfinite(paths.best))
      return {kInfinity, "no plan: devices that must exchange data have no route between them"};
    take(best, paths.best, blocks.empty() ? "critical path" : "critical path over fork-join blocks");
    // Work on CPUs without a limit fills no area.
    if (problem.execution.unlimited_cpus) return {round_down(best.us, n), best.proof};
    take(best, host_gate_us(tables, paths), "parameters out of host memory + tail");
    const double whole = area.improve(all, rounds, deadline);
    take(best, whole, area_reason(area, false));
    windowed_area(ends_of(tables, paths), area, std::max(kLeastRounds / 2, rounds / (2 * kWindows)), deadline,
                  best);
  } else {
    const double whole = area.improve(all, rounds, deadline);
    take(best, whole, area_reason(area, false));
  }
  best.us = round_down(best.us, n);
  return best;
}

Bound lower_bound(const Problem& problem, const Deadline& deadline) {
  const BoundTables tables(problem);
  std::vector<Block> blocks;
  if (problem.objective != Objective::kThroughput) blocks = find_blocks(tables, kFewBlockSteps, deadline);
  return bound_of(tables, blocks, deadline);
}

Relaxation relax(const Problem& problem, const Deadline& deadline) {
  BoundTables tables(problem);
  std::vector<Block> blocks;
  if (problem.objective != Objective::kThroughput) blocks = find_blocks(tables, kManyBlockSteps, deadline);
  PathBounds paths = path_bounds(tables, blocks);
  Relaxation r;
  r.devices = std::move(tables.devices);
  r.time = std::move(tables.time);
  r.earliest_finish = std::move(paths.finish);
  r.remaining = std::move(paths.rest);
  r.rates = std::move(tables.rates);
  for (uint32_t i = 0; i < r.devices.size(); ++i) r.exclusive.push_back({i});
  for (auto& set : core_groups_among(*problem.cluster, r.devices)) r.exclusive.push_back(std::move(set));
  return r;
}

}  // namespace heddle
