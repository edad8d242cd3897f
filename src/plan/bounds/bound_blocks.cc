#include "bound_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "bound_tables.h"
#include "heddle/base/units.h"
#include "heddle/graph/analysis.h"

namespace heddle {
namespace {

// Rounds of improving multipliers per call of too_short().
constexpr int kFitRounds = 12;

// Energetic reasoning: do ops with a head and a tail per device fit into a span of time? docs/bounds.md, section 9.
class SpanFit {
 public:
  explicit SpanFit(const BoundTables& tables);

  void clear();
  // head[i]: least time from the span's start to the op's end on device i; tail[i]: from the op's start on
  // device i to the span's end.
  void add(uint32_t op, const double* head, const double* tail);
  // The smallest positive time of any op: a starting point for a search.
  double least_us() const;
  // True only if no schedule of these ops fits into `span` under the heads and tails, with one device of each
  // exclusive set running at a time. Monotone in `span` (up to the limit on rounds).
  bool too_short(double span);

 private:
  struct Entry {
    uint32_t op;
    const double *head, *tail;
  };
  const BoundTables& b_;
  const size_t k_;
  std::vector<std::vector<uint32_t>> sets_;     // exclusive sets of devices
  std::vector<std::vector<uint32_t>> sets_of_;  // per device
  std::vector<Entry> entries_;
  std::vector<double> time_;  // entry x device: infinite if the op cannot be there within the span
  std::vector<double> first_, last_, room_;     // per set
  std::vector<double> weight_, per_us_, busy_;  // per set; per device
};

// Relative margin above all rounding errors of sums of a block's times: an excess beyond it is real.
constexpr double kRounding = 1e-9;

SpanFit::SpanFit(const BoundTables& tables) : b_(tables), k_(tables.devices.size()), sets_of_(k_) {
  const auto add_set = [&](std::vector<uint32_t> set) {
    for (const uint32_t i : set) sets_of_[i].push_back(static_cast<uint32_t>(sets_.size()));
    sets_.push_back(std::move(set));
  };
  for (uint32_t i = 0; i < k_; ++i) add_set({i});
  for (auto& set : core_groups_among(*b_.problem.cluster, b_.devices)) add_set(std::move(set));
}

void SpanFit::clear() { entries_.clear(); }

void SpanFit::add(uint32_t op, const double* head, const double* tail) {
  entries_.push_back({op, head, tail});
}

double SpanFit::least_us() const {
  double least = kInfinity;
  for (const Entry& e : entries_) {
    for (size_t i = 0; i < k_; ++i) {
      if (b_.t(e.op, i) > 0) least = std::min(least, b_.t(e.op, i));
    }
  }
  return least < kInfinity ? least : 0;
}

bool SpanFit::too_short(double span) {
  const size_t sets = sets_.size();
  first_.assign(sets, kInfinity);
  last_.assign(sets, kInfinity);
  time_.assign(entries_.size() * k_, kInfinity);
  for (size_t e = 0; e < entries_.size(); ++e) {
    const Entry& entry = entries_[e];
    bool anywhere = false;
    for (size_t i = 0; i < k_; ++i) {
      const double t = b_.t(entry.op, i);
      if (!(entry.head[i] + entry.tail[i] - t <= span * (1 + kRounding))) continue;
      anywhere = true;
      time_[e * k_ + i] = t;
      for (const uint32_t s : sets_of_[i]) {
        first_[s] = std::min(first_[s], entry.head[i] - t);
        last_[s] = std::min(last_[s], entry.tail[i] - t);
      }
    }
    if (!anywhere) return true;
  }
  room_.assign(sets, 0);
  weight_.assign(sets, 0);
  double sum = 0;
  for (size_t s = 0; s < sets; ++s) {
    if (!(first_[s] < kInfinity)) continue;  // no op can be there
    room_[s] = std::max(span - first_[s] - last_[s], span * kRounding);
    sum += weight_[s] = room_[s];
  }
  if (!(sum > 0)) return false;
  // Multipliers weight_[s] >= 0 with sum 1: any such weights prove a misfit if the cheapest placement costs
  // more than 1.
  for (int round = 0; round < kFitRounds; ++round) {
    per_us_.assign(k_, 0);
    busy_.assign(k_, 0);
    for (size_t s = 0; s < sets; ++s) {
      weight_[s] /= sum;
      if (weight_[s] > 0) {
        for (const uint32_t i : sets_[s]) per_us_[i] += weight_[s] / room_[s];
      }
    }
    double cost = 0;
    for (size_t e = 0; e < entries_.size(); ++e) {
      const double* time = &time_[e * k_];
      double least = kInfinity;
      size_t at = 0;
      for (size_t i = 0; i < k_; ++i) {
        if (!(time[i] < kInfinity)) continue;
        const double s = time[i] * per_us_[i];
        if (s < least) least = s, at = i;
      }
      cost += least;
      busy_[at] += time[at];
    }
    if (cost > 1 + kRounding) return true;
    sum = 0;
    bool fits = true;
    const double step = 1.0 / (1 + 0.3 * round);
    for (size_t s = 0; s < sets; ++s) {
      if (!(room_[s] > 0)) continue;
      double load = 0;
      for (const uint32_t i : sets_[s]) load += busy_[i];
      fits = fits && load <= room_[s];
      sum += weight_[s] *= std::exp(step * std::clamp(load / room_[s] - 1, -1.0, 2.0));
    }
    if (fits || !(sum > 0)) return false;
  }
  return false;
}

// Search for a block's span: growth factor, number of growths, number of halvings of the open interval.
constexpr double kGrowth = 1.3;
constexpr int kMostGrowths = 40, kHalvings = 6;

OpId longest_source(const Graph& graph) {
  const auto order = graph.topological_order();
  std::vector<uint32_t> hops(graph.num_ops(), 0);
  OpId best;
  for (size_t i = order.size(); i-- > 0;) {
    const OpId v = order[i];
    for (const OpId w : graph.successors(v)) hops[v.index()] = std::max(hops[v.index()], hops[w.index()] + 1);
    if (graph.predecessors(v).empty() && (!best.valid() || hops[v.index()] >= hops[best.index()])) best = v;
  }
  return best;
}

class BlockFinder {
 public:
  BlockFinder(const BoundTables& tables, double steps, const Deadline& deadline)
      : b_(tables),
        graph_(*tables.problem.graph),
        k_(tables.devices.size()),
        steps_(steps),
        deadline_(deadline),
        fit_(tables),
        local_(graph_.num_ops(), -1),
        ends_at_(graph_.num_ops(), -1),
        place_(graph_.num_ops()),
        starts_at_(graph_.num_ops()) {
    const auto order = graph_.topological_order();
    for (uint32_t i = 0; i < order.size(); ++i) place_[order[i].index()] = i;
  }

  std::vector<Block> run() {
    choose();
    for (const Candidate& c : chosen_) {
      if (deadline_.should_stop()) break;
      compute(c.fork, c.join);
    }
    return std::move(blocks_);
  }

 private:
  struct Candidate {
    uint32_t fork, join;
    double steps;
  };

  // The ops both after the fork and before the join, in topological order. nullopt: more than `most`.
  std::optional<std::vector<uint32_t>> inside(uint32_t fork, uint32_t join, size_t most) {
    std::vector<uint32_t> ops, stack{join};
    bool fits = true;
    while (!stack.empty() && fits) {
      const uint32_t v = stack.back();
      stack.pop_back();
      for (const uint32_t t : b_.flat.inputs(v)) {
        const auto u = static_cast<uint32_t>(b_.flat.producer(t));
        // Ops that the source does not reach are not after the fork; all others lead here from the fork.
        if (u == fork || !idom_[u].valid() || local_[u] >= 0) continue;
        local_[u] = 0;
        ops.push_back(u);
        stack.push_back(u);
        fits = fits && ops.size() <= most;
      }
    }
    for (const uint32_t u : ops) local_[u] = -1;
    if (!fits) return std::nullopt;
    std::sort(ops.begin(), ops.end(), [&](uint32_t x, uint32_t y) { return place_[x] < place_[y]; });
    return ops;
  }

  double steps_of(const std::vector<uint32_t>& ops, uint32_t join) const {
    double reads = static_cast<double>(b_.flat.inputs(join).size());
    for (const uint32_t v : ops) reads += static_cast<double>(b_.flat.inputs(v).size());
    const auto k = static_cast<double>(k_);
    return 2 * reads * k * k * k + kFitRounds * 6 * static_cast<double>(ops.size()) * k * k * k;
  }

  void choose() {
    const OpId source = longest_source(graph_);
    if (!source.valid()) return;
    idom_ = immediate_dominators(graph_, source);
    const auto k = static_cast<double>(k_);
    const auto most = static_cast<size_t>(std::clamp(steps_ / (20 * k * k * k), 1.0, 1e9));
    double looked = 0;
    std::vector<char> large(graph_.num_ops());  // more than `most` ops between the op and its fork
    for (const OpId v : graph_.topological_order()) {
      const OpId fork = idom_[v.index()];
      if (!fork.valid()) continue;
      // The fork lies before those of the op's other predecessors, so theirs are among the ops between.
      large[v.index()] =
          std::ranges::any_of(graph_.predecessors(v), [&](OpId u) { return u != fork && large[u.index()]; });
      if (large[v.index()] || b_.flat.inputs(v.index()).size() < 2) continue;
      // Path bounds cover a single op between fork and join; two or more may compete for a device.
      const auto ops = inside(static_cast<uint32_t>(fork.value), static_cast<uint32_t>(v.value), most);
      looked += static_cast<double>(ops ? ops->size() : most);
      if (looked > steps_ || deadline_.should_stop()) break;
      large[v.index()] = !ops;
      if (!ops || ops->size() < 2) continue;
      const double steps = steps_of(*ops, static_cast<uint32_t>(v.value));
      chosen_.push_back({static_cast<uint32_t>(fork.value), static_cast<uint32_t>(v.value), steps});
    }
    std::stable_sort(chosen_.begin(), chosen_.end(),
                     [](const Candidate& x, const Candidate& y) { return x.steps < y.steps; });
    size_t count = 0;
    for (double left = steps_; count < chosen_.size() && chosen_[count].steps <= left; ++count)
      left -= chosen_[count].steps;
    chosen_.resize(count);
    std::sort(chosen_.begin(), chosen_.end(),
              [&](const Candidate& x, const Candidate& y) { return place_[x.join] < place_[y.join]; });
  }

  static void raise(double& floor, double value) { floor = std::max(floor, value); }
  double least(const double* values, const double* add) const {
    double best = kInfinity;
    for (size_t j = 0; j < k_; ++j) best = std::min(best, values[j] + add[j]);
    return best;
  }

  // Transfer times of a tensor between all pairs: to_[i * k + j] from j to i, from_[i * k + j] from i to j.
  void time_transfers(double bytes) {
    for (size_t i = 0; i < k_; ++i) {
      for (size_t j = 0; j < k_; ++j) to_[j * k_ + i] = from_[i * k_ + j] = b_.rate(i, j).us(bytes);
    }
  }

  const double* values_of(const std::vector<double>& values, uint32_t op) const {
    return &values[static_cast<size_t>(local_[op]) * k_ * k_];
  }

  // Raises mine[(p, i)] to the least over j of theirs[(p, j)] + add[(i, j)]. `theirs` null: the block's end
  // itself, which is 0 at j = p and impossible elsewhere.
  void extend(double* mine, const double* theirs, const double* add) const {
    for (size_t p = 0; p < k_; ++p) {
      for (size_t i = 0; i < k_; ++i) {
        const double value = theirs == nullptr ? add[i * k_ + p] : least(theirs + p * k_, add + i * k_);
        raise(mine[p * k_ + i], value);
      }
    }
  }

  // Least time from the fork's end on device p to the end of each op on device i, as values[(p, i)]. The fork
  // itself has 0 at its own device only.
  void forward(const std::vector<uint32_t>& ops, uint32_t fork, uint32_t join,
               std::vector<double>& floor_join) {
    head_.assign((ops.size() + 1) * k_ * k_, 0);
    for (size_t at = 0; at <= ops.size(); ++at) {
      const uint32_t w = at < ops.size() ? ops[at] : join;
      double* mine = &head_[at * k_ * k_];
      const auto come = [&](uint32_t u, const double* add) {  // add[i * k + j]: from j to i
        extend(mine, u == fork ? nullptr : values_of(head_, u), add);
      };
      for (const uint32_t t : b_.flat.inputs(w)) {
        const auto u = static_cast<uint32_t>(b_.flat.producer(t));
        if (u != fork && local_[u] < 0) continue;
        time_transfers(static_cast<double>(b_.flat.bytes(t)));
        come(u, to_.data());
      }
      if (at < ops.size() && ends_at_[w] >= 0) {
        const Block& block = blocks_[static_cast<size_t>(ends_at_[w])];
        if (block.fork == fork || local_[block.fork] >= 0) {
          for (size_t i = 0; i < k_; ++i) {
            for (size_t j = 0; j < k_; ++j) to_[i * k_ + j] = block.span[j * k_ + i];
          }
          come(block.fork, to_.data());
        }
      }
      if (at == ops.size()) {
        floor_join.assign(mine, mine + k_ * k_);
        return;
      }
      for (size_t p = 0; p < k_; ++p) {
        for (size_t i = 0; i < k_; ++i) mine[p * k_ + i] += b_.t(w, i);
      }
    }
  }

  // Least time from the start of each op on each device i to the join's start on each q, as values[(q, i)].
  void backward(const std::vector<uint32_t>& ops, uint32_t join) {
    tail_.assign(ops.size() * k_ * k_, 0);
    for (size_t at = ops.size(); at-- > 0;) {
      const uint32_t w = ops[at];
      double* mine = &tail_[at * k_ * k_];
      const auto go = [&](uint32_t r, const double* add) {  // add[i * k + j]: from i to j
        extend(mine, r == join ? nullptr : values_of(tail_, r), add);
      };
      for (const uint32_t t : b_.flat.outputs(w)) {
        time_transfers(static_cast<double>(b_.flat.bytes(t)));
        for (const OpId r : graph_.tensors()[t].consumers) {
          const auto reader = static_cast<uint32_t>(r.value);
          if (reader == join || local_[reader] >= 0) go(reader, from_.data());
        }
      }
      for (const uint32_t n : starts_at_[w]) {
        const Block& block = blocks_[n];
        if (block.join == join || local_[block.join] >= 0) go(block.join, block.span.data());
      }
      for (size_t q = 0; q < k_; ++q) {
        for (size_t i = 0; i < k_; ++i) mine[q * k_ + i] += b_.t(w, i);
      }
    }
  }

  void compute(uint32_t fork, uint32_t join) {
    const auto ops = *inside(fork, join, graph_.num_ops());
    for (uint32_t i = 0; i < ops.size(); ++i) local_[ops[i]] = static_cast<int32_t>(i);
    to_.assign(k_ * k_, 0);
    from_ = to_;
    Block block{fork, join, {}};
    forward(ops, fork, join, block.span);
    backward(ops, join);
    for (size_t p = 0; p < k_; ++p) {
      for (size_t q = 0; q < k_; ++q) {
        double& span = block.span[p * k_ + q];
        const bool possible = b_.t(fork, p) < kInfinity && b_.t(join, q) < kInfinity && span < kInfinity;
        if (possible) span = longer(ops, p, q, span);
      }
    }
    for (const uint32_t v : ops) local_[v] = -1;
    ends_at_[join] = static_cast<int32_t>(blocks_.size());
    starts_at_[fork].push_back(static_cast<uint32_t>(blocks_.size()));
    blocks_.push_back(std::move(block));
  }

  // The largest span found that is too short for the block's ops; at least `span`.
  double longer(const std::vector<uint32_t>& ops, size_t p, size_t q, double span) {
    fit_.clear();
    for (size_t at = 0; at < ops.size(); ++at)
      fit_.add(ops[at], &head_[(at * k_ + p) * k_], &tail_[(at * k_ + q) * k_]);
    double low = span, high = span;
    if (!(high > 0)) high = fit_.least_us();
    for (int i = 0; i < kMostGrowths; ++i) {
      if (!fit_.too_short(high)) break;
      low = high;
      high *= kGrowth;
    }
    if (low == high) return span;
    for (int i = 0; i < kHalvings && low < high; ++i) {
      const double middle = 0.5 * (low + high);
      (fit_.too_short(middle) ? low : high) = middle;
    }
    return std::max(span, low);
  }

  const BoundTables& b_;
  const Graph& graph_;
  const size_t k_;
  const double steps_;
  const Deadline& deadline_;
  SpanFit fit_;
  std::vector<OpId> idom_;        // from the longest path's source
  std::vector<int32_t> local_;    // index within the block's ops, or -1
  std::vector<int32_t> ends_at_;  // per op: the block that joins there, or -1
  std::vector<uint32_t> place_;
  std::vector<std::vector<uint32_t>> starts_at_;
  std::vector<Candidate> chosen_;
  std::vector<Block> blocks_;
  std::vector<double> head_, tail_, to_, from_;
};

}  // namespace

std::vector<Block> find_blocks(const BoundTables& tables, double steps, const Deadline& deadline) {
  // A block's ops could all run at once.
  if (tables.problem.execution.unlimited_cpus) return {};
  if (tables.problem.graph->num_ops() == 0) return {};
  return BlockFinder(tables, steps, deadline).run();
}

}  // namespace heddle
