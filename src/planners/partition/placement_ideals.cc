// The dynamic programme over ideals of Tarnawski et al. 2020, section 5.1.1 (equations for dp[I][k'][l']),
// made fast. An ideal is a set of units closed under predecessors; contiguous devices are differences of
// ideals. Their section 5.1.2 (DPL) applies the same recursion to the prefixes of one order. What the paper
// leaves out:
//  - the max-load `above` of a known split bounds every segment's work (a segment is left at the first ideal
//    that exceeds it), and what is left must still fit the devices that are left; near the optimum few ideals
//    survive;
//  - segments are grown one unit at a time with incremental load, over the lattice's own edges, each ideal
//    once;
//  - a state that uses more devices than another of the same ideal without being better is dropped.
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "placement_load.h"

namespace heddle {
namespace {

constexpr double kMostNumbers = 1e8;  // of 16 bytes at most

// All ideals by size, as bitsets in one array, with the lattice's edges.
class Ideals {
 public:
  Ideals(const PlacementUnits& units, int64_t limit, const Deadline& deadline)
      : units_(units), words_((units.size() + 63) / 64), index_(1024, Hash{this}, Equal{this}) {
    bits_.assign(words_, 0);
    index_.insert(0);
    size_ = 1;
    first_child_.push_back(0);
    for (int32_t ideal = 0; ideal < size_; ++ideal) {
      for (size_t u = 0; u < units.size(); ++u) {
        if (has(ideal, u) || !minimal(ideal, u)) continue;
        // The candidate is written behind the last ideal: there the set can compare it.
        bits_.resize(at(size_ + 1) * words_);
        std::copy_n(&bits_[at(ideal) * words_], words_, &bits_[at(size_) * words_]);
        bits_[at(size_) * words_ + u / 64] |= uint64_t{1} << (u % 64);
        const auto [entry, fresh] = index_.insert(size_);
        if (fresh && ++size_ > limit) return;
        child_.push_back(*entry);
        added_.push_back(static_cast<int32_t>(u));
      }
      first_child_.push_back(static_cast<int64_t>(child_.size()));
      if (ideal % 16 == 0 && deadline.should_stop()) return;
    }
    complete_ = true;
  }
  Ideals(const Ideals&) = delete;
  Ideals& operator=(const Ideals&) = delete;

  bool complete() const { return complete_; }
  int32_t size() const { return size_; }
  bool has(int32_t ideal, size_t u) const { return bits_[at(ideal) * words_ + u / 64] >> (u % 64) & 1; }
  size_t first_child(int32_t ideal) const { return static_cast<size_t>(first_child_[at(ideal)]); }
  int32_t child(size_t edge) const { return child_[edge]; }
  int32_t added(size_t edge) const { return added_[edge]; }

 private:
  struct Hash {
    const Ideals* of;
    size_t operator()(int32_t ideal) const {
      uint64_t h = 0x9e3779b97f4a7c15ULL;
      for (size_t w = 0; w < of->words_; ++w) {
        h ^= of->bits_[at(ideal) * of->words_ + w];
        h *= 0xbf58476d1ce4e5b9ULL;
        h ^= h >> 29;
      }
      return static_cast<size_t>(h);
    }
  };
  struct Equal {
    const Ideals* of;
    bool operator()(int32_t a, int32_t b) const {
      return std::equal(&of->bits_[at(a) * of->words_], &of->bits_[at(a) * of->words_] + of->words_,
                        &of->bits_[at(b) * of->words_]);
    }
  };

  bool minimal(int32_t ideal, size_t u) const {
    return std::all_of(units_.previous[u].begin(), units_.previous[u].end(),
                       [&](int32_t p) { return has(ideal, at(p)); });
  }

  const PlacementUnits& units_;
  size_t words_;
  std::vector<uint64_t> bits_;
  std::unordered_set<int32_t, Hash, Equal> index_;
  int32_t size_ = 0;
  std::vector<int64_t> first_child_;
  std::vector<int32_t> child_, added_;
  bool complete_ = false;
};

class IdealPlanner {
 public:
  IdealPlanner(const PlacementUnits& units, const Ideals& ideals, double above, const Deadline& deadline)
      : units_(units),
        ideals_(ideals),
        deadline_(deadline),
        above_(above),
        k_(static_cast<size_t>(units.accelerators)),
        c_(static_cast<size_t>(units.cpus)),
        states_((k_ + 1) * (c_ + 1)),
        best_(at(ideals.size()) * states_, std::numeric_limits<double>::infinity()),
        from_(best_.size()),
        left_(at(ideals.size()), 0),
        stamp_(at(ideals.size()), -1),
        segment_(units) {
    double relief = 0;  // accelerator time that one unit of CPU time can take over, at most
    free_relief_ = 0;
    for (size_t u = 0; u < units.size(); ++u) {
      total_ += units.accelerator[u];
      if (units.cpu[u] > 0) {
        relief = std::max(relief, units.accelerator[u] / units.cpu[u]);
      } else {
        free_relief_ += units.accelerator[u];
      }
    }
    relief_ = relief;
    left_[0] = total_;
    for (int32_t i = 0; i < ideals.size(); ++i)
      for (size_t e = ideals.first_child(i); e < ideals.first_child(i + 1); ++e)
        left_[at(ideals.child(e))] = left_[at(i)] - units.accelerator[at(ideals.added(e))];
  }

  // False at the deadline.
  bool run() {
    best_[0] = 0;
    for (source_ = 0; source_ + 1 < ideals_.size(); ++source_) {
      drop_dominated();
      if (alive_.empty()) continue;
      if (deadline_.should_stop()) return false;
      may_grow_cpu_ = std::any_of(alive_.begin(), alive_.end(), [&](size_t s) { return s % (c_ + 1) < c_; });
      may_grow_accelerator_ =
          std::any_of(alive_.begin(), alive_.end(), [&](size_t s) { return s / (c_ + 1) < k_; });
      grow(source_);
    }
    return true;
  }

  std::vector<int32_t> devices() const {
    const double* last = &best_[best_.size() - states_];
    size_t state = static_cast<size_t>(std::min_element(last, last + states_) - last);
    if (!(last[state] < above_)) return {};
    std::vector<int32_t> device(units_.size(), -1);
    for (int32_t ideal = ideals_.size() - 1; ideal > 0;) {
      const auto [source, on_cpu] = from_[at(ideal) * states_ + state];
      const size_t a = state / (c_ + 1), p = state % (c_ + 1);
      const auto d = static_cast<int32_t>(on_cpu ? k_ + p - 1 : a - 1);
      for (size_t u = 0; u < units_.size(); ++u)
        if (ideals_.has(ideal, u) && !ideals_.has(source, u)) device[u] = d;
      state = on_cpu ? state - 1 : state - (c_ + 1);
      ideal = source;
    }
    return device;
  }

 private:
  // Can what the ideal leaves still go to k - a accelerators and c - p CPUs, each below `above`?
  bool hopeful(int32_t ideal, size_t state) const {
    const size_t accelerators = k_ - state / (c_ + 1), cpus = c_ - state % (c_ + 1);
    const auto a = static_cast<double>(accelerators), p = static_cast<double>(cpus);
    if (std::isinf(above_)) return true;
    const double capacity = a * above_ + p * above_ * relief_ + (p > 0 ? free_relief_ : 0);
    // What is left is a difference of sums: its rounding is relative to the whole.
    return left_[at(ideal)] <= capacity + 1e-9 * total_;
  }

  void drop_dominated() {
    alive_.clear();
    double* here = &best_[at(source_) * states_];
    for (size_t a = 0; a <= k_; ++a) {
      for (size_t p = 0; p <= c_; ++p) {
        const double value = here[a * (c_ + 1) + p];
        if (!(value < above_)) continue;
        bool dominated = false;
        for (const auto other : alive_)
          if (other / (c_ + 1) <= a && other % (c_ + 1) <= p && here[other] <= value) dominated = true;
        if (!dominated) alive_.push_back(a * (c_ + 1) + p);
      }
    }
  }

  // Depth first over the ideals above; with a stack of its own, for a chain of a million nodes is as deep.
  void grow(int32_t ideal) {
    const auto enter = [this](int32_t at_ideal, int32_t added) {
      path_.push_back({ideals_.first_child(at_ideal), ideals_.first_child(at_ideal + 1), added});
    };
    enter(ideal, -1);
    while (!path_.empty()) {
      auto& top = path_.back();
      if (top.edge == top.end) {
        if (top.added >= 0) segment_.remove(top.added);
        path_.pop_back();
        continue;
      }
      const size_t e = top.edge++;
      const auto next = ideals_.child(e);
      if (stamp_[at(next)] == source_) continue;
      stamp_[at(next)] = source_;
      segment_.add(ideals_.added(e));
      const bool fits = may_grow_accelerator_ && segment_.work() < above_ && segment_.only_cpu() == 0 &&
                        segment_.bytes() <= units_.accelerator_bytes;
      const bool cpu_fits = may_grow_cpu_ && segment_.cpu() < above_;
      if (fits && segment_.load() < above_) offer(next, segment_.load(), false);
      if (cpu_fits) offer(next, segment_.cpu(), true);
      if (fits || cpu_fits)
        enter(next, ideals_.added(e));
      else
        segment_.remove(ideals_.added(e));
    }
  }

  void offer(int32_t ideal, double load, bool on_cpu) {
    for (const auto state : alive_) {
      if (on_cpu ? state % (c_ + 1) == c_ : state / (c_ + 1) == k_) continue;
      const size_t to = on_cpu ? state + 1 : state + c_ + 1;
      const double value = std::max(load, best_[at(source_) * states_ + state]);
      if (value >= best_[at(ideal) * states_ + to] || !hopeful(ideal, to)) continue;
      best_[at(ideal) * states_ + to] = value;
      from_[at(ideal) * states_ + to] = {source_, on_cpu};
      // A full split: only what is better is of interest from now on.
      if (ideal == ideals_.size() - 1) above_ = std::min(above_, std::nextafter(value, 2 * value + 1));
    }
  }

  const PlacementUnits& units_;
  const Ideals& ideals_;
  const Deadline& deadline_;
  double above_;
  size_t k_, c_, states_;
  std::vector<double> best_;
  std::vector<std::pair<int32_t, bool>> from_;  // the ideal before the last device, and whether it is a CPU
  std::vector<double> left_;                    // accelerator time outside each ideal
  std::vector<int32_t> stamp_;
  PlacementSegment segment_;
  struct Entered {
    size_t edge, end;  // edges to larger ideals that are not tried yet
    int32_t added;     // the unit with which the ideal was entered; -1: none
  };
  std::vector<Entered> path_;
  double total_ = 0, relief_ = 0, free_relief_ = 0;
  int32_t source_ = 0;
  std::vector<size_t> alive_;
  bool may_grow_cpu_ = false, may_grow_accelerator_ = false;
};

}  // namespace

IdealResult ideal_load(const PlacementUnits& units, double above, int64_t max_ideals,
                       const Deadline& deadline) {
  IdealResult result;
  // Each ideal has a value for each number of devices that are used, and a bit for each unit.
  const double per_ideal =
      (units.accelerators + 1.0) * (units.cpus + 1.0) + static_cast<double>(units.size()) / 64;
  max_ideals = std::min(max_ideals, static_cast<int64_t>(kMostNumbers / per_ideal));
  const Ideals ideals(units, max_ideals, deadline);
  if (!ideals.complete()) return result;
  IdealPlanner planner(units, ideals, above, deadline);
  result.exact = planner.run();
  result.device = planner.devices();
  return result;
}

}  // namespace heddle
