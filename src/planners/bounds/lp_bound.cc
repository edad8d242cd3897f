// docs/bounds.md, sections 7, 11 and 12. x(v, i) is the part of op v on device i, T the objective.
#include "lp_bound.h"

#include <algorithm>
#include <cmath>

#include "gates.h"
#include "heddle/solve/milp.h"

namespace heddle {
namespace {

// Beyond so many entries HiGHS takes minutes.
constexpr double kMostEntries = 400'000;
// The rows' coefficients are quotients of doubles.
constexpr double kRoundedDown = 1 - 1e-12;
// Rounds of gates and windows (sections 11 and 12), the relative gain that is worth another one, and by
// how much a gate must be overfull.
constexpr int kRowRounds = 12;
constexpr double kLeastGain = 1e-4, kViolation = 1e-6;
// Section 12: so many heads are candidates for a, every tail is one for b; by how much a row must be
// violated, relative to T.
constexpr size_t kMostHeads = 200;
constexpr double kWindowViolation = 1e-5;

class Program {
 public:
  // `known_us` is a bound that holds already.
  Program(const FlatProblem& flat, const Relaxation& relaxation, double known_us)
      : flat_(flat),
        r_(relaxation),
        n_(flat.num_ops()),
        k_(flat.num_devices()),
        known_us_(known_us),
        params_(shared_param_bytes(flat)),
        gates_(find_gates(flat, relaxation)) {
    // Solvers are most precise for numbers near one.
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
  int add_violated(std::span<const double> values) {
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
    for (const auto& set : r_.exclusive) added += add_window(set, values) ? 1 : 0;
    return added;
  }
  const Milp& milp() const { return milp_; }
  double unit_us() const { return unit_; }

 private:
  // An op on a device of a window's set.
  struct WindowOp {
    size_t at;  // op x device
    double head, tail, us, work;
  };

  bool possible(size_t v, size_t i) const {
    const size_t at = v * k_ + i;
    return std::isfinite(r_.t(v, i)) && std::isfinite(r_.earliest_finish[at]) &&
           std::isfinite(r_.remaining[at]);
  }
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

  // Starts, with the transfers on a path: the part of u on i that exceeds w's part there pays the cheapest
  // transfer out of i; the part of w on i that exceeds u's pays the cheapest transfer in.
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

  // Adds the row T >= a + b + sum of t(v, i) x(v, i), over ops and devices of the set with a head of at least a
  // and a tail of at least b, that `values` violates most. False: none. O(n D log n).
  bool add_window(const std::vector<uint32_t>& set, std::span<const double> values) {
    const double now = values[static_cast<size_t>(total_.index)] * unit_;
    std::vector<WindowOp> ops;
    for (size_t v = 0; v < n_; ++v) {
      for (const uint32_t i : set) {
        const size_t at = v * k_ + i;
        const double us = r_.time[at];
        if (!std::isfinite(us) || !std::isfinite(r_.earliest_finish[at]) || !std::isfinite(r_.remaining[at]))
          continue;
        const double share = std::clamp(values[static_cast<size_t>(x_[at].index)], 0.0, 1.0);
        ops.push_back({at, std::max(0.0, r_.earliest_finish[at] - us), std::max(0.0, r_.remaining[at] - us),
                       us, us * share});
      }
    }
    std::sort(ops.begin(), ops.end(), [](const WindowOp& p, const WindowOp& q) {
      return p.tail != q.tail ? p.tail > q.tail : p.at < q.at;
    });
    std::vector<double> heads{0};
    for (const WindowOp& op : ops) {
      if (op.work > 0) heads.push_back(op.head);
    }
    std::sort(heads.begin(), heads.end());
    heads.erase(std::unique(heads.begin(), heads.end()), heads.end());
    const size_t stride = heads.size() / kMostHeads + 1;
    double best = now * (1 + kWindowViolation), best_a = 0, best_b = 0;
    for (size_t h = 0; h < heads.size(); h += stride) {
      const double a = heads[h];
      double sum = a;
      for (size_t j = 0; j < ops.size(); ++j) {
        if (ops[j].head >= a) sum += ops[j].work;
        const double b = ops[j].tail;
        if (a + b > known_us_ || (j + 1 < ops.size() && ops[j + 1].tail == b)) continue;
        if (sum + b > best) {
          best = sum + b;
          best_a = a;
          best_b = b;
        }
      }
    }
    if (!(best > now * (1 + kWindowViolation)) || best_a + best_b <= 0) return false;
    std::vector<Term> row{{total_, 1}};
    for (const WindowOp& op : ops) {
      if (op.head >= best_a && op.tail >= best_b && op.us > 0) row.push_back({x_[op.at], -op.us / unit_});
    }
    // The row holds only if T >= a + b, so a + b must not exceed a proven bound: while the window's devices
    // are empty the row is just that.
    milp_.at_least(std::move(row), (best_a + best_b) / unit_);
    return true;
  }

  // How many entries its rows have.
  double entries_of(const Gate& gate) const {
    const auto devices = static_cast<double>(std::count(gate.inside.begin(), gate.inside.end(), 1));
    return (gate.out + gate.in) * (2 * devices + 2) * static_cast<double>(flat_.num_reads());
  }
  // Transfers hold a gate one after another: for how long in total, at these values.
  double gate_load(const Gate& gate, std::span<const double> values) const {
    double sum = 0;
    each_passage(gate, [&](size_t t, bool out, double us) { sum += us * passing(t, gate, out, values); });
    for (size_t v = 0; v < n_; ++v) {
      for (size_t i = 0; i < k_; ++i)
        sum += params_[v] * gate.load_us_per_byte[i] * values[static_cast<size_t>(x(v, i).index)];
    }
    return sum / unit_;
  }
  // Calls `visit` for each tensor and direction in which it may hold the gate, and for how long.
  void each_passage(const Gate& gate, auto visit) const {
    for (size_t t = 0; t < flat_.num_tensors(); ++t) {
      const double us = gate.us(flat_.bytes(t));
      if (flat_.producer(t) == UINT32_MAX || flat_.readers(t).empty() || !(us > 0)) continue;
      for (const bool out : {true, false}) {
        if (out ? gate.out : gate.in) visit(t, out, us);
      }
    }
  }
  double passing(size_t t, const Gate& gate, bool out, std::span<const double> values) const {
    const auto& free = out ? gate.free_out : gate.free_in;
    double most = 0;
    for (const uint32_t w : flat_.readers(t)) {
      const size_t here = out ? flat_.producer(t) : w, there = out ? w : flat_.producer(t);
      double part = 0;
      for (size_t i = 0; i < k_; ++i) {
        if (gate.inside[i]) part += values[static_cast<size_t>(x(here, i).index)];
        if (free[i]) part -= values[static_cast<size_t>(x(there, i).index)];
      }
      most = std::max(most, part);
    }
    return most;
  }
  void add_gate(const Gate& gate) {
    std::vector<Term> row{{total_, 1}};
    each_passage(gate, [&](size_t t, bool out, double us) { add_passage(t, gate, out, us, row); });
    for (size_t v = 0; v < n_; ++v) {
      for (size_t i = 0; i < k_; ++i) {
        const double us = params_[v] * gate.load_us_per_byte[i];
        if (us > 0 && possible(v, i)) row.push_back({x(v, i), -us / unit_});
      }
    }
    if (row.size() > 1) milp_.at_least(std::move(row), 0);
  }
  // A new variable that is at least the part of the tensor that leaves (or enters), into the gate's row.
  void add_passage(size_t t, const Gate& gate, bool out, double us, std::vector<Term>& row) {
    const auto& free = out ? gate.free_out : gate.free_in;
    const Var moved = milp_.add_continuous(0, 1);
    bool moves = false;
    for (const uint32_t w : flat_.readers(t)) {
      const size_t here = out ? flat_.producer(t) : w, there = out ? w : flat_.producer(t);
      if (here == there) continue;
      std::vector<Term> terms{{moved, 1}};
      for (size_t i = 0; i < k_; ++i) {
        if (gate.inside[i]) terms.push_back({x(here, i), -1});
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
  const double known_us_;
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
  // Windows build on the bound that is known: what vouches for that one vouches for this one.
  Bound none{0, {"linear program", known.proof.claimed_by}};
  const auto k = static_cast<double>(flat.num_devices());
  if ((static_cast<double>(flat.num_reads()) * 8 + static_cast<double>(flat.num_ops()) * 5) * k >
      kMostEntries)
    return none;
  Program program(flat, relaxation, known.us);
  program.build();
  SolveOptions options;
  options.deadline = deadline;
  Bound best = none;
  for (int round = 0; round <= kRowRounds; ++round) {
    const auto solution = solve_relaxation(program.milp(), options);
    if (!solution.ok() || solution->status != SolveStatus::kOptimal) break;
    // T is at most `most` in the LP's optimum, and starts are at most T. If the optimum were above, `most` would
    // be a bound.
    const double most = 2 * solution->objective;
    const double least = std::min(most, lp_dual_bound(program.milp(), solution->duals, most));
    const double us = std::max(0.0, least * program.unit_us() * kRoundedDown);
    // A round that gains next to nothing is the last.
    const bool gains = us > best.us * (1 + kLeastGain);
    if (us > best.us)
      best = {us, {round > 0 ? "linear program with cuts" : "linear program", known.proof.claimed_by}};
    if (!gains || program.add_violated(solution->values) == 0) break;
  }
  return best;
}

}  // namespace heddle
