// Simulated annealing over pieces of units; infeasible neighbours (memory, pieces that wait for each other)
// are not entered. The energy is the latency and a little of all pieces' durations, so that what is not
// critical has a slope too.
#include <cmath>

#include "placement_latency.h"
#include "placement_moves.h"

namespace heddle {
namespace {

constexpr double kColdOfHot = 1e-3;

class LatencySearch : public UnitMoves<PlacementLatency> {
 public:
  LatencySearch(const LatencyProblem& problem, const std::vector<int32_t>& start,
                const PlacementSearchOptions& options)
      : UnitMoves(problem.units, PlacementLatency(problem, start), options.seed),
        problem_(problem),
        options_(options),
        best_(start) {
    for (size_t u = 0; u < units_.size(); ++u) {
      for (const auto w : units_.next[u]) edges_.emplace_back(static_cast<int32_t>(u), w);
    }
  }

  std::vector<int32_t> run() {
    const double infinity = std::numeric_limits<double>::infinity();
    if (edges_.empty() && units_.size() == 0) return best_;
    best_latency_ = state_.time(infinity);
    energy_ = best_latency_ + side();
    const double hot = options_.heat * best_latency_;
    const AnnealSchedule schedule{.hot = hot,
                                  .cold = hot * kColdOfHot,
                                  .moves = static_cast<uint64_t>(options_.moves),
                                  .moves_per_look = 256};
    anneal(*this, schedule, options_.deadline, random_);
    return best_;
  }

  // For anneal().
  bool propose() {
    begin_move();
    if (!change()) return false;
    if (random_.chance(0.15)) change();
    return true;
  }
  double rise(Metropolis& rule) {
    const double limit = energy_ + rule.most(), extra = side();
    if (!state_.fits()) return std::numeric_limits<double>::infinity();
    next_latency_ = state_.time(limit - extra);
    return next_latency_ + extra - energy_;
  }
  void keep() {
    energy_ = next_latency_ + side();
    if (next_latency_ >= best_latency_ * (1 - 1e-12)) return;
    best_latency_ = next_latency_;
    best_ = state_.device();
  }

 private:
  double side() const {
    double sum = 0;
    for (int32_t p = 0; p < units_.accelerators; ++p) sum += state_.duration(p);
    return 0.01 * sum;
  }

  int32_t any_piece() { return static_cast<int32_t>(pick(at(units_.accelerators) + 1)); }
  int32_t empty_piece() {
    for (int tries = 0; tries < 4; ++tries) {
      const auto p = any_piece();
      if (p != problem_.cpu() && state_.units_in(p).empty()) return p;
    }
    return any_piece();
  }
  // Where a group from `here` may go: a neighbour's piece, the CPUs, an empty piece.
  int32_t target(int32_t unit) {
    const double kind = random_.unit();
    if (kind < 0.15) return problem_.cpu();
    if (kind < 0.3) return empty_piece();
    const auto& next = units_.next[at(unit)];
    const auto& previous = units_.previous[at(unit)];
    const auto around = next.size() + previous.size();
    if (around == 0) return any_piece();
    const auto i = pick(around);
    return device(i < next.size() ? next[i] : previous[i - next.size()]);
  }

  bool change() {
    const double kind = random_.unit();
    const auto unit = any_unit();
    if (edges_.empty() || kind < 0.08) return put(unit, target(unit));
    // Most changes begin at an edge between two pieces.
    std::pair<int32_t, int32_t> edge = edges_[pick(edges_.size())];
    for (int tries = 0; tries < 12 && device(edge.first) == device(edge.second); ++tries)
      edge = edges_[pick(edges_.size())];
    const bool later = random_.chance(0.5);  // the consumer's side moves to the producer's, or the reverse
    const auto mover = later ? edge.second : edge.first;
    const auto to = device(later ? edge.first : edge.second);
    if (kind < 0.3) return put(mover, to);
    if (kind < 0.5) {
      // All before (or after) a unit within its piece: what stays is closed, so no new cycle inside.
      closure(later ? walk(mover, 1) : walk(mover, 0), later);
      return put_group(random_.chance(0.7) ? to : target(mover));
    }
    if (kind < 0.75) {
      connected(mover, random_.chance(0.5));
      return put_group(random_.chance(0.6) ? to : target(mover));
    }
    if (kind < 0.85) {
      closure(unit, random_.chance(0.5));
      return put_group(target(unit));
    }
    if (kind < 0.95) {
      connected(unit, random_.chance(0.5));
      return put_group(target(unit));
    }
    // A whole piece.
    const auto from = device(mover);
    if (from == problem_.cpu()) return put(mover, to);
    group_ = state_.units_in(from);
    return put_group(random_.chance(0.6) ? to : target(mover));
  }

  // Some steps along the edges within the piece, forward or backward.
  int32_t walk(int32_t unit, bool forward) {
    const auto here = device(unit);
    auto steps = static_cast<int>(std::exp(random_.uniform(0, std::log(30.0)))) - 1;
    while (steps-- > 0) {
      const auto& around = forward ? units_.next[at(unit)] : units_.previous[at(unit)];
      if (around.empty()) break;
      const auto to = around[pick(around.size())];
      if (device(to) != here) break;
      unit = to;
    }
    return unit;
  }

  // The unit and all its ancestors (or descendants) within its piece; on the CPUs not more than some.
  void closure(int32_t unit, bool ancestors) {
    const auto here = device(unit);
    const size_t most = here == problem_.cpu() ? 1 + pick(60) : units_.size();
    begin_group(unit);
    for (size_t i = 0; i < group_.size() && group_.size() < most; ++i)
      for (const auto to : ancestors ? units_.previous[at(group_[i])] : units_.next[at(group_[i])])
        gather(to, here);
  }
  // A connected group of units of its piece: a few, or all along nets of at least some cost.
  void connected(int32_t unit, bool few) {
    const size_t most =
        few ? static_cast<size_t>(std::exp(random_.uniform(std::log(2.0), std::log(80.0)))) : units_.size();
    const double least = few || units_.nets.empty() ? 0 : units_.nets[pick(units_.nets.size())].cost;
    gather_connected(unit, most, least);
  }

  const LatencyProblem& problem_;
  const PlacementSearchOptions& options_;
  std::vector<int32_t> best_;
  double energy_ = 0, best_latency_ = 0, next_latency_ = 0;
  std::vector<std::pair<int32_t, int32_t>> edges_;
};

}  // namespace

std::vector<int32_t> search_latency(const LatencyProblem& problem, const std::vector<int32_t>& start,
                                    const PlacementSearchOptions& options) {
  return LatencySearch(problem, start, options).run();
}

}  // namespace heddle
