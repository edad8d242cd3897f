// For a given limit T, which places can be the end of an interval on device d after the devices of a set S?
// All places from the interval's begin to the farthest end with load <= T, for each begin that some other
// device reaches and whose cut costs at most T. The least T follows by bisection over that question.
#include "pipeline_cuts.h"

#include <algorithm>
#include <numeric>

namespace heddle {
namespace {

// Elementary steps of one feasibility question; it sets how many places of the order may be cuts.
constexpr double kStepsPerQuestion = 2e7;
// Halvings of the interval between bounds: far below rounding of measured times.
constexpr int kHalvings = 46;
constexpr size_t kLeastPlaces = 48;

class Cutter {
 public:
  Cutter(const FlatProblem& flat, const std::vector<uint32_t>& order, const Reserve& reserve)
      : flat_(flat), order_(order), k_(flat.num_devices()), exact_(k_ <= kExactDevices) {
    choose_places();
    add_up(reserve);
    find_crossing();
  }

  std::optional<PipelineCuts> solve(const Deadline& deadline) {
    sequence_.resize(k_);
    std::iota(sequence_.begin(), sequence_.end(), 0U);
    auto best = bisect(deadline);
    if (exact_) return best;
    const size_t end = places_.size() - 1;
    std::stable_sort(sequence_.begin(), sequence_.end(),
                     [&](uint32_t a, uint32_t b) { return time(a, 0, end) < time(b, 0, end); });
    auto other = bisect(deadline);
    if (!best || (other && other->us < best->us)) best = std::move(other);
    return best;
  }

 private:
  struct Stage {
    uint32_t device;
    size_t begin, end;
  };

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
  Reached first_stage(uint32_t d) const {
    Reached out(places_.size(), 0);
    for (size_t end = 0; end <= farthest_[d][0]; ++end) out[end] = 1;
    return out;
  }

  // Stages of a pipeline with all loads <= limit; empty when there is none.
  std::vector<Stage> stages(double limit) {
    find_farthest(limit);
    return exact_ ? stages_of_sets(limit) : stages_in_sequence(limit);
  }

  std::vector<Stage> stages_of_sets(double limit) const {
    const size_t sets = size_t{1} << k_, end = places_.size() - 1;
    std::vector<Reached> reached(sets * k_);
    for (size_t s = 1; s < sets; ++s) {
      for (uint32_t d = 0; d < k_; ++d) {
        if (!(s >> d & 1)) continue;
        const size_t rest = s ^ (size_t{1} << d);
        Reached& out = reached[s * k_ + d];
        out = rest == 0 ? first_stage(d) : Reached(places_.size(), 0);
        for (uint32_t prev = 0; prev < k_ && rest != 0; ++prev) {
          if (rest >> prev & 1) extend(reached[rest * k_ + prev], prev, d, limit, out);
        }
        if (out[end]) return trace_sets(reached, s, d, limit);
      }
    }
    return {};
  }

  std::vector<Stage> trace_sets(const std::vector<Reached>& reached, size_t set, uint32_t d,
                                double limit) const {
    std::vector<Stage> stages;
    size_t end = places_.size() - 1;
    while (true) {
      const size_t rest = set ^ (size_t{1} << d);
      if (rest == 0) {
        stages.push_back({d, 0, end});
        break;
      }
      Stage stage{d, 0, end};
      uint32_t before = d;
      for (uint32_t prev = 0; prev < k_ && before == d; ++prev) {
        if (!(rest >> prev & 1)) continue;
        for (size_t begin = 0; begin <= end && before == d; ++begin) {
          if (reached[rest * k_ + prev][begin] && cut_us(prev, d, begin) <= limit &&
              farthest_[d][begin] >= end) {
            stage.begin = begin;
            before = prev;
          }
        }
      }
      stages.push_back(stage);
      end = stage.begin;
      set = rest;
      d = before;
    }
    return stages;
  }

  std::vector<Stage> stages_in_sequence(double limit) const {
    const size_t end = places_.size() - 1;
    std::vector<Reached> reached(k_);
    for (size_t i = 0; i < k_; ++i) {
      const uint32_t d = sequence_[i];
      reached[i] = first_stage(d);
      for (size_t j = 0; j < i; ++j) extend(reached[j], sequence_[j], d, limit, reached[i]);
      if (reached[i][end]) return trace_sequence(reached, i, limit);
    }
    return {};
  }

  std::vector<Stage> trace_sequence(const std::vector<Reached>& reached, size_t i, double limit) const {
    std::vector<Stage> stages;
    size_t end = places_.size() - 1;
    while (true) {
      const uint32_t d = sequence_[i];
      if (end <= farthest_[d][0]) {
        stages.push_back({d, 0, end});
        return stages;
      }
      size_t from = i, at = 0;
      for (size_t j = 0; j < i && from == i; ++j) {
        for (size_t begin = 0; begin <= end && from == i; ++begin) {
          if (reached[j][begin] && cut_us(sequence_[j], d, begin) <= limit && farthest_[d][begin] >= end) {
            from = j;
            at = begin;
          }
        }
      }
      stages.push_back({d, at, end});
      end = at;
      i = from;
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
    auto best = stages(high);
    if (best.empty()) return std::nullopt;
    double low = 0;
    for (int i = 0; i < kHalvings && high - low > 1e-12 * high; ++i) {
      if (deadline.cancelled()) return std::nullopt;
      const double middle = low + (high - low) / 2;
      auto found = stages(middle);
      if (found.empty())
        low = middle;
      else {
        best = std::move(found);
        high = middle;
      }
      if (deadline.expired()) break;
    }
    PipelineCuts cuts{std::vector<uint32_t>(order_.size(), 0), high};
    for (const Stage& s : best) {
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
  std::vector<uint32_t> sequence_;
};

}  // namespace

std::optional<PipelineCuts> pipeline_cuts(const FlatProblem& flat, const std::vector<uint32_t>& order,
                                          const Reserve& reserve, const Deadline& deadline) {
  return Cutter(flat, order, reserve).solve(deadline);
}

}  // namespace heddle
