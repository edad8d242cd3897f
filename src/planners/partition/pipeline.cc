// Contiguous pipeline: a topological order is cut into intervals, one a device, for the least largest load.
// Exact in its model by dynamic programming over sets of devices. For a given limit T, which places can be the
// end of an interval on device d after the devices of a set S? All places from the interval's begin to the
// farthest end with load <= T, for each begin that some other device reaches and whose cut costs at most T. The
// least T follows by bisection over that question. The idea with all its variants: J. M. Tarnawski et al.,
// "Efficient algorithms for device placement of DNN graph operators", NeurIPS 2020, and D. Narayanan et al.,
// "PipeDream", SOSP 2019, section 3.1.
//
// Minimises the period. O(2^k k^2 V log(1 / precision)) for at most 8 devices, O(k^2 V log(1 / precision))
// beyond, with V capped by a budget. Exploits unequal devices, transfers between neighbours and memory
// limits. Ignores known segments, links that several pairs of devices share, and that a tensor may pass over
// a stage.
#include <algorithm>
#include <numeric>

#include "lists/construction.h"

namespace heddle {
namespace {

// All sequences of distinct devices are tried for at most so many; beyond that subsequences of the devices in
// their order and in the order of speed.
constexpr size_t kExactDevices = 8;
// Elementary steps of one feasibility question; it sets how many places of the order may be cuts.
constexpr double kStepsPerQuestion = 2e7;
// Halvings of the interval between bounds: far below rounding of measured times.
constexpr int kHalvings = 46;
constexpr size_t kLeastPlaces = 48;

struct PipelineCuts {
  std::vector<uint32_t> device;  // per op
  double us = 0;                 // the largest of all intervals' times and all cuts' transfer times
};

// An op's interval runs on one device; tensors that cross a cut load the way between the two neighbours.
class PipelineCutter {
 public:
  PipelineCutter(const FlatProblem& flat, const std::vector<uint32_t>& order, const Reserve& reserve)
      : flat_(flat), order_(order), k_(flat.num_devices()), exact_(k_ <= kExactDevices) {
    choose_places();
    add_up(reserve);
    find_crossing();
  }

  // Over all cuts and sequences of devices; nullopt when there is no way to cut, or the deadline was cancelled.
  std::optional<PipelineCuts> solve(const Deadline& deadline) {
    if (exact_) {
      add_sets();
      return bisect(deadline);
    }
    std::vector<uint32_t> sequence(k_);
    std::iota(sequence.begin(), sequence.end(), 0U);
    add_sequence(sequence);
    auto best = bisect(deadline);
    const size_t end = places_.size() - 1;
    std::stable_sort(sequence.begin(), sequence.end(),
                     [&](uint32_t a, uint32_t b) { return time(a, 0, end) < time(b, 0, end); });
    add_sequence(sequence);
    auto other = bisect(deadline);
    if (!best || (other && other->us < best->us)) best = std::move(other);
    return best;
  }

 private:
  struct Interval {
    uint32_t device;
    size_t begin, end;
  };
  // The last device so far, and what the devices before it may be.
  struct PipelineState {
    uint32_t device;
    bool may_begin;  // none before it
    std::vector<size_t> before;
  };

  // The last of a set of devices; sets ascending.
  void add_sets() {
    const size_t sets = size_t{1} << k_;
    std::vector<size_t> number(sets * k_);
    for (size_t s = 1; s < sets; ++s) {
      for (uint32_t d = 0; d < k_; ++d) {
        if (!(s >> d & 1)) continue;
        const size_t rest = s ^ (size_t{1} << d);
        number[s * k_ + d] = states_.size();
        PipelineState& state = states_.emplace_back(PipelineState{d, rest == 0, {}});
        for (uint32_t prev = 0; prev < k_; ++prev) {
          if (rest >> prev & 1) state.before.push_back(number[rest * k_ + prev]);
        }
      }
    }
  }
  void add_sequence(const std::vector<uint32_t>& sequence) {
    states_.clear();
    for (size_t i = 0; i < k_; ++i) {
      PipelineState& state = states_.emplace_back(PipelineState{sequence[i], true, {}});
      for (size_t j = 0; j < i; ++j) state.before.push_back(j);
    }
  }

  // Places are positions between ops; all of them when the budget allows.
  void choose_places() {
    const double per_place =
        exact_ ? static_cast<double>((size_t{1} << k_) * k_ * k_) : static_cast<double>(k_ * k_);
    const double most = std::max<double>(kLeastPlaces, kStepsPerQuestion / per_place);
    const size_t n = order_.size();
    const auto blocks = static_cast<size_t>(std::min<double>(most, static_cast<double>(n)));
    for (size_t b = 0; b <= blocks; ++b) places_.push_back(b * n / blocks);
  }

  void add_up(const Reserve& reserve) {
    const size_t count = places_.size();
    sum_us_.assign(k_, std::vector<double>(count, 0));
    missing_.assign(k_, std::vector<uint32_t>(count, 0));
    param_bytes_.assign(count, 0);
    std::vector<uint8_t> seen(flat_.num_params(), 0);
    for (size_t c = 1; c < count; ++c) {
      param_bytes_[c] = param_bytes_[c - 1];
      for (size_t i = 0; i < k_; ++i) {
        sum_us_[i][c] = sum_us_[i][c - 1];
        missing_[i][c] = missing_[i][c - 1];
      }
      for (size_t p = places_[c - 1]; p < places_[c]; ++p) {
        const uint32_t v = order_[p];
        for (size_t i = 0; i < k_; ++i) {
          if (flat_.us(v, i) < kImpossible)
            sum_us_[i][c] += flat_.us(v, i);
          else
            ++missing_[i][c];
        }
        for (const uint32_t q : flat_.params(v)) {
          if (!seen[q]) param_bytes_[c] = plus_bytes(param_bytes_[c], flat_.param_bytes(q));
          seen[q] = 1;
        }
      }
    }
    for (size_t i = 0; i < k_; ++i) {
      const int64_t limit = flat_.pool_limit(flat_.pool(i));
      room_.push_back(limit > 0 ? limit - (reserve.empty() ? 0 : reserve[flat_.pool(i)]) : INT64_MAX);
    }
  }

  // Tensors and bytes that cross each place.
  void find_crossing() {
    std::vector<uint32_t> position(order_.size());
    for (uint32_t p = 0; p < order_.size(); ++p) position[order_[p]] = p;
    crossing_count_.assign(places_.size() + 1, 0);
    crossing_bytes_.assign(places_.size() + 1, 0);
    for (const uint32_t v : order_) {
      for (const uint32_t t : flat_.outputs(v)) {
        uint32_t last = position[v];
        for (const uint32_t w : flat_.readers(t)) last = std::max(last, position[w]);
        // Places p with position[v] < p <= last.
        const auto lo = std::upper_bound(places_.begin(), places_.end(), position[v]) - places_.begin();
        const auto hi = std::upper_bound(places_.begin(), places_.end(), last) - places_.begin();
        if (lo >= hi) continue;
        crossing_count_[static_cast<size_t>(lo)] += 1;
        crossing_count_[static_cast<size_t>(hi)] -= 1;
        crossing_bytes_[static_cast<size_t>(lo)] += static_cast<double>(flat_.bytes(t));
        crossing_bytes_[static_cast<size_t>(hi)] -= static_cast<double>(flat_.bytes(t));
      }
    }
    for (size_t c = 1; c < crossing_count_.size(); ++c) {
      crossing_count_[c] += crossing_count_[c - 1];
      crossing_bytes_[c] += crossing_bytes_[c - 1];
    }
  }

  double time(uint32_t device, size_t from, size_t to) const {
    if (missing_[device][to] != missing_[device][from]) return kImpossible;
    return sum_us_[device][to] - sum_us_[device][from];
  }
  bool fits(uint32_t device, size_t from, size_t to) const {
    return param_bytes_[to] - param_bytes_[from] <= room_[device];
  }
  double cut_us(uint32_t from, uint32_t to, size_t place) const {
    const auto& way = flat_.way(from, to);
    if (way.passage == Passage::kFree || crossing_count_[place] == 0) return 0;
    if (way.passage == Passage::kNone) return kImpossible;
    if (way.resources.empty()) return 0;
    return crossing_count_[place] * way.latency_us + crossing_bytes_[place] / way.bytes_per_s * 1e6;
  }

  // Farthest end of an interval on the device from each place.
  void find_farthest(double limit) {
    farthest_.assign(k_, std::vector<size_t>(places_.size()));
    for (uint32_t d = 0; d < k_; ++d) {
      size_t end = 0;
      for (size_t begin = 0; begin < places_.size(); ++begin) {
        end = std::max(end, begin);
        while (end + 1 < places_.size() && time(d, begin, end + 1) <= limit && fits(d, begin, end + 1)) ++end;
        farthest_[d][begin] = end;
      }
    }
  }

  using Reached = std::vector<uint8_t>;
  // Marks the ends of intervals on `d` that begin where `before` (on device `prev`) may end.
  void extend(const Reached& before, uint32_t prev, uint32_t d, double limit, Reached& out) const {
    size_t marked = 0;
    for (size_t begin = 0; begin < places_.size(); ++begin) {
      if (!before[begin] || cut_us(prev, d, begin) > limit) continue;
      for (size_t end = std::max(begin, marked); end <= farthest_[d][begin]; ++end) out[end] = 1;
      marked = std::max(marked, farthest_[d][begin] + 1);
    }
  }

  // A pipeline with all loads <= limit; empty when there is none.
  std::vector<Interval> intervals(double limit) {
    find_farthest(limit);
    std::vector<Reached> reached;
    for (size_t s = 0; s < states_.size(); ++s) {
      const PipelineState& state = states_[s];
      Reached& out = reached.emplace_back(places_.size(), 0);
      if (state.may_begin) std::fill_n(out.begin(), farthest_[state.device][0] + 1, 1);
      for (const size_t prev : state.before)
        extend(reached[prev], states_[prev].device, state.device, limit, out);
      if (out.back()) return trace(reached, s, limit);
    }
    return {};
  }

  std::vector<Interval> trace(const std::vector<Reached>& reached, size_t s, double limit) const {
    std::vector<Interval> intervals;
    for (size_t end = places_.size() - 1;;) {
      const PipelineState& state = states_[s];
      const auto& farthest = farthest_[state.device];
      Interval& interval = intervals.emplace_back(Interval{state.device, 0, end});
      if (state.may_begin && end <= farthest[0]) return intervals;
      const auto may_cut = [&](size_t prev, size_t begin) {
        return reached[prev][begin] && cut_us(states_[prev].device, state.device, begin) <= limit &&
               farthest[begin] >= end;
      };
      bool found = false;
      for (const size_t prev : state.before) {
        for (size_t begin = 0; begin <= end && !found; ++begin) {
          found = may_cut(prev, begin);
          if (found) interval.begin = begin, s = prev;
        }
        if (found) break;
      }
      end = interval.begin;
    }
  }

  std::optional<PipelineCuts> bisect(const Deadline& deadline) {
    const size_t end = places_.size() - 1;
    double high = 0;  // every interval and cut is below
    for (uint32_t d = 0; d < k_; ++d) {
      high += sum_us_[d][end];
      for (uint32_t e = 0; e < k_; ++e) {
        for (size_t c = 0; c < places_.size(); ++c) {
          const double us = cut_us(d, e, c);
          if (us < kImpossible) high = std::max(high, us);
        }
      }
    }
    auto best = intervals(high);
    if (best.empty()) return std::nullopt;
    double low = 0;
    for (int i = 0; i < kHalvings && high - low > 1e-12 * high; ++i) {
      if (deadline.cancelled()) return std::nullopt;
      const double middle = low + (high - low) / 2;
      auto found = intervals(middle);
      if (found.empty())
        low = middle;
      else {
        best = std::move(found);
        high = middle;
      }
      if (deadline.expired()) break;
    }
    PipelineCuts cuts{std::vector<uint32_t>(order_.size(), 0), high};
    for (const Interval& s : best) {
      for (size_t p = places_[s.begin]; p < places_[s.end]; ++p) cuts.device[order_[p]] = s.device;
    }
    return cuts;
  }

  const FlatProblem& flat_;
  const std::vector<uint32_t>& order_;
  const size_t k_;
  const bool exact_;
  std::vector<size_t> places_;
  std::vector<std::vector<double>> sum_us_;
  std::vector<std::vector<uint32_t>> missing_;
  std::vector<int64_t> param_bytes_, room_;
  std::vector<int> crossing_count_;
  std::vector<double> crossing_bytes_;
  std::vector<std::vector<size_t>> farthest_;
  std::vector<PipelineState> states_;
};

// Depth first from the exits: branches stay together, so that fewer tensors cross a cut.
std::vector<uint32_t> depth_first_order(const FlatProblem& flat) {
  std::vector<uint32_t> order;
  std::vector<uint8_t> seen(flat.num_ops(), 0);
  std::vector<std::pair<uint32_t, size_t>> stack;
  for (const uint32_t exit : flat.topological()) {
    const auto made = flat.outputs(exit);
    if (std::any_of(made.begin(), made.end(), [&](uint32_t t) { return !flat.readers(t).empty(); })) continue;
    stack.push_back({exit, 0});
    seen[exit] = 1;
    while (!stack.empty()) {
      auto& [v, next] = stack.back();
      const auto inputs = flat.inputs(v);
      while (next < inputs.size() && seen[flat.producer(inputs[next])]) ++next;
      if (next < inputs.size()) {
        const uint32_t u = flat.producer(inputs[next]);
        seen[u] = 1;
        stack.push_back({u, 0});
      } else {
        order.push_back(v);
        stack.pop_back();
      }
    }
  }
  return order;
}

// Farthest from the end first: branches go side by side.
std::vector<uint32_t> level_order(const FlatProblem& flat) {
  return order_by_priority(flat, flat.least_remaining_us());
}

Result<PlannerOutput> plan_pipeline(const Problem& problem, const PlannerOptions& options) {
  PlanStore candidates(problem);
  const auto offer = [&](auto make_order) {
    offer_constructions(
        problem, options, "pipeline",
        [&](const FlatProblem& flat, const Reserve& reserve) {
          std::optional<FlatPlan> plan;
          const std::vector<uint32_t> order = make_order(flat);
          auto cuts = PipelineCutter(flat, order, reserve).solve(options.deadline);
          if (cuts) plan = FlatPlan{std::move(cuts->device), order};
          return plan;
        },
        candidates);
  };
  offer([](const FlatProblem& flat) {
    return std::vector<uint32_t>(flat.topological().begin(), flat.topological().end());
  });
  if (!options.deadline.should_stop()) offer(depth_first_order);
  if (!options.deadline.should_stop()) offer(level_order);
  return candidates.output(StopReason::kFinished, options.deadline);
}

}  // namespace

PlannerEntry pipeline_planner() {
  return {{.name = "pipeline",
           .description = "contiguous intervals of the model, one a device, with the least largest load",
           .source = "Tarnawski et al., NeurIPS 2020; PipeDream, SOSP 2019, section 3.1",
           .objectives = {Objective::kThroughput},
           .exploits = "unequal devices, transfers between neighbours, memory limits",
           .ignores = "links that several pairs of devices share, known segments"},
          plan_pipeline};
}

}  // namespace heddle
