// docs/bounds.md, sections 7, 11 and 12. x(v, i) is the part of op v on device i, T the objective.
#include "lp_bound.h"

#include <algorithm>
#include <cmath>

#include "gates.h"
#include "heddle/solve/milp.h"
#include "lp_windows.h"

namespace heddle {
namespace {

// Beyond so many entries HiGHS takes minutes.
constexpr double kMostEntries = 400'000;
// HiGHS keeps rows and duals within 1e-7, relative to the largest of them.
constexpr double kSafety = 1e-6;
// Rounds of gates and windows (sections 11 and 12), the relative gain that is worth another one, and what a
// gate must be overfull by.
constexpr int kRowRounds = 12;
constexpr double kLeastGain = 1e-4, kViolation = 1e-6;

class Program {
 public:
  Program(const FlatProblem& flat, const Relaxation& relaxation)
      : flat_(flat),
        r_(relaxation),
        n_(flat.num_ops()),
        k_(flat.num_devices()),
        params_(shared_param_bytes(flat)),
        gates_(find_gates(flat, relaxation)) {
    // Times of about one are what solvers are good at.
    for (size_t v = 0; v < n_; ++v) {
      double least = kImpossible;
      for (size_t i = 0; i < k_; ++i) least = std::min(least, r_.t(v, i));
      unit_ += std::isfinite(least) ? least : 0;
    }
    if (!(unit_ > 0)) unit_ = 1;
  }

  void build() {
    total_ = milp_.add_continuous(0, kNoBound, "T");
    milp_.add_cost(total_, 1);
    add_placement();
    add_area();
    if (flat_.problem().objective != Objective::kThroughput) add_times();
  }
  // Rows that the values break: gates, each once, and windows. Returns how many.
  int add_violated(std::span<const double> values, const LpWindows& windows) {
    const double total = values[static_cast<size_t>(total_.index)];
    int added = 0;
    for (size_t g = 0; g < gates_.size(); ++g) {
      const double entries = entries_of(gates_[g]);
      if (entries > entries_left_ || !(gate_load(gates_[g], values) > total * (1 + kViolation))) continue;
      add_gate(gates_[g]);
      entries_left_ -= entries;
      gates_.erase(gates_.begin() + static_cast<std::ptrdiff_t>(g--));
      ++added;
    }
    if (flat_.problem().objective == Objective::kThroughput) return added;
    return added + windows.add_rows(values, x_, total_, unit_, milp_);
  }
  const Milp& milp() const { return milp_; }
  double unit_us() const { return unit_; }

 private:
  bool possible(size_t v, size_t i) const { return std::isfinite(r_.t(v, i)); }
  Var x(size_t v, size_t i) const { return x_[v * k_ + i]; }

  void add_placement() {
    for (size_t v = 0; v < n_; ++v) {
      std::vector<Term> one;
      for (size_t i = 0; i < k_; ++i) {
        x_.push_back(milp_.add_continuous(0, possible(v, i) ? 1 : 0));
        one.push_back({x_.back(), 1});
      }
      milp_.equal(std::move(one), 1);
    }
  }

  void add_area() {
    for (const auto& set : r_.exclusive) {
      std::vector<Term> row{{total_, 1}};
      for (size_t v = 0; v < n_; ++v) {
        for (const uint32_t i : set) {
          if (possible(v, i)) row.push_back({x(v, i), -r_.t(v, i) / unit_});
        }
      }
      milp_.at_least(std::move(row), 0);
    }
  }

  // Starts, a path's transfers included: what of u is on i and not of w pays the cheapest way out of i, and
  // likewise what of w is on i and not of u the cheapest way in.
  void add_times() {
    for (size_t v = 0; v < n_; ++v) {
      start_.push_back(milp_.add_continuous(0, kNoBound));
      std::vector<Term> head{{start_[v], 1}}, tail{{total_, 1}, {start_[v], -1}};
      for (size_t i = 0; i < k_; ++i) {
        if (!possible(v, i)) continue;
        head.push_back({x(v, i), -(r_.earliest_finish[v * k_ + i] - r_.t(v, i)) / unit_});
        tail.push_back({x(v, i), -r_.remaining[v * k_ + i] / unit_});
      }
      milp_.at_least(std::move(head), 0);
      milp_.at_least(std::move(tail), 0);
    }
    for (size_t w = 0; w < n_; ++w) {
      for (const uint32_t t : flat_.inputs(w)) add_read(flat_.producer(t), w, flat_.bytes(t));
    }
  }
  void add_read(size_t u, size_t w, int64_t bytes) {
    for (const bool out : {true, false}) {
      std::vector<Term> row{{start_[w], 1}, {start_[u], -1}};
      for (size_t i = 0; i < k_; ++i) {
        if (possible(u, i)) row.push_back({x(u, i), -r_.t(u, i) / unit_});
      }
      bool pays = false;
      for (size_t i = 0; i < k_; ++i) {
        double cheapest = kImpossible;
        for (size_t j = 0; j < k_; ++j) {
          if (j != i) cheapest = std::min(cheapest, out ? r_.way_us(i, j, bytes) : r_.way_us(j, i, bytes));
        }
        if (!(cheapest > 0) || !std::isfinite(cheapest)) continue;
        const Var moved = milp_.add_continuous(0, 1);
        milp_.at_least(out ? std::vector<Term>{{moved, 1}, {x(u, i), -1}, {x(w, i), 1}}
                           : std::vector<Term>{{moved, 1}, {x(w, i), -1}, {x(u, i), 1}},
                       0);
        row.push_back({moved, -cheapest / unit_});
        pays = true;
      }
      if (out || pays) milp_.at_least(std::move(row), 0);
    }
  }

  // How many entries its rows have.
  double entries_of(const Gate& gate) const {
    const auto devices = static_cast<double>(std::count(gate.inside.begin(), gate.inside.end(), 1));
    return (gate.out + gate.in) * (2 * devices + 2) * static_cast<double>(flat_.num_reads());
  }
  // What passes a gate holds it, one after another: for how long, at these values.
  double gate_load(const Gate& gate, std::span<const double> values) const {
    double sum = 0;
    for (size_t t = 0; t < flat_.num_tensors(); ++t) {
      const double us = gate.us(flat_.bytes(t));
      if (flat_.producer(t) == UINT32_MAX || flat_.readers(t).empty() || !(us > 0)) continue;
      if (gate.out) sum += us * passing(t, gate.inside, gate.free_out, true, values);
      if (gate.in) sum += us * passing(t, gate.inside, gate.free_in, false, values);
    }
    for (size_t v = 0; v < n_; ++v) {
      for (size_t i = 0; i < k_; ++i)
        sum += params_[v] * gate.load_us_per_byte[i] * values[static_cast<size_t>(x(v, i).index)];
    }
    return sum / unit_;
  }
  double passing(size_t t, const std::vector<uint8_t>& inside, const std::vector<uint8_t>& free, bool out,
                 std::span<const double> values) const {
    double most = 0;
    for (const uint32_t w : flat_.readers(t)) {
      const size_t here = out ? flat_.producer(t) : w, there = out ? w : flat_.producer(t);
      double part = 0;
      for (size_t i = 0; i < k_; ++i) {
        if (inside[i]) part += values[static_cast<size_t>(x(here, i).index)];
        if (free[i]) part -= values[static_cast<size_t>(x(there, i).index)];
      }
      most = std::max(most, part);
    }
    return most;
  }
  void add_gate(const Gate& gate) {
    std::vector<Term> row{{total_, 1}};
    for (size_t t = 0; t < flat_.num_tensors(); ++t) {
      const double us = gate.us(flat_.bytes(t));
      if (flat_.producer(t) == UINT32_MAX || flat_.readers(t).empty() || !(us > 0)) continue;
      if (gate.out) add_passage(t, gate.inside, gate.free_out, true, us, row);
      if (gate.in) add_passage(t, gate.inside, gate.free_in, false, us, row);
    }
    for (size_t v = 0; v < n_; ++v) {
      for (size_t i = 0; i < k_; ++i) {
        const double us = params_[v] * gate.load_us_per_byte[i];
        if (us > 0 && possible(v, i)) row.push_back({x(v, i), -us / unit_});
      }
    }
    if (row.size() > 1) milp_.at_least(std::move(row), 0);
  }
  // A new variable that is at least the part of the tensor that leaves (or enters), into the gate's row.
  void add_passage(size_t t, const std::vector<uint8_t>& inside, const std::vector<uint8_t>& free, bool out,
                   double us, std::vector<Term>& row) {
    const Var moved = milp_.add_continuous(0, 1);
    bool moves = false;
    for (const uint32_t w : flat_.readers(t)) {
      const size_t here = out ? flat_.producer(t) : w, there = out ? w : flat_.producer(t);
      if (here == there) continue;
      std::vector<Term> terms{{moved, 1}};
      for (size_t i = 0; i < k_; ++i) {
        if (inside[i]) terms.push_back({x(here, i), -1});
        if (free[i]) terms.push_back({x(there, i), 1});
      }
      milp_.at_least(std::move(terms), 0);
      moves = true;
    }
    if (moves) row.push_back({moved, -us / unit_});
  }

  const FlatProblem& flat_;
  const Relaxation& r_;
  const size_t n_, k_;
  const std::vector<double> params_;
  std::vector<Gate> gates_;
  double entries_left_ = kMostEntries;
  double unit_ = 0;
  Milp milp_;
  Var total_;
  std::vector<Var> x_, start_;
};

}  // namespace

Bound lp_bound(const FlatProblem& flat, const Relaxation& relaxation, const Deadline& deadline,
               const Bound& known) {
  const Bound none{0, "linear program"};
  const auto k = static_cast<double>(flat.num_devices());
  if ((static_cast<double>(flat.num_reads()) * 8 + static_cast<double>(flat.num_ops()) * 5) * k >
      kMostEntries)
    return none;
  Program program(flat, relaxation);
  program.build();
  SolveOptions options;
  options.deadline = deadline;
  Bound best = none;
  const LpWindows windows(relaxation, known.us);
  for (int round = 0; round <= kRowRounds; ++round) {
    const auto solution = solve_relaxation(program.milp(), options);
    if (!solution.ok() || solution->status != SolveStatus::kOptimal) break;
    const double us = std::max(0.0, solution->objective * (1 - kSafety) * program.unit_us());
    // A round that gains next to nothing is the last.
    const bool gains = us > best.us * (1 + kLeastGain);
    if (us > best.us) best = {us, round > 0 ? "linear program with cuts" : "linear program"};
    if (!gains || program.add_violated(solution->values, windows) == 0) break;
  }
  return best;
}

}  // namespace heddle
