// A module by DiviML's mixed integer linear program, section IV-A, equations 1 to 7.
//
// Where the printed equations slip, what they must mean is written:
// - (3) runs over i in par(j). With several requests it must bind a pair of batches only if some request is
// in
//   both; printed, it orders all batches of i before all of j.
// - (5) says that b counts x; a row with at most one size per task and device says the same without a big M.
// - (7) is about one device u, and its second branch takes j's time.
// Equation 6 counts all tensors of a task as if they stayed in memory: where it could bind, it may refuse
// what the evaluator accepts, so it is left to the evaluator, which measures each plan's memory.
#include <algorithm>

#include "heddle/solve/milp.h"
#include "module_problem.h"

namespace heddle {
namespace {

// The start's value in the program's unit of time: keeps coefficients within the solver's tolerances.
constexpr double kHorizon = 1000;
// What the solver's feasibility and integrality tolerances (1e-6) may hide behind constants of size kHorizon.
constexpr double kMilpTolerance = 1e-5;

class MilpModule {
 public:
  MilpModule(const ModuleProblem& module, double value_us)
      : m_(module),
        model_(module.model),
        n_(model_.num_tasks()),
        k_(model_.num_devices()),
        requests_(model_.num_requests()),
        unit_(std::max(value_us * (1 + kMilpTolerance), 1e-6) / kHorizon) {
    find_paths();
    add_places();
    add_precedence();
    add_exclusion();
    add_end();
  }

  const Milp& model() const { return milp_; }
  double bound_us(double bound) const { return bound * unit_ * (1 - kMilpTolerance); }

  void start_from(const ModuleAnswer& start, const std::vector<double>& starts) {
    std::vector<double> begin(n_ * k_, 0);
    std::vector<uint32_t> requests(n_ * k_, 0);
    for (size_t i = 0; i < start.batches.size(); ++i) {
      const Batch& b = start.batches[i];
      // Equation 3 has a start for each task and device: unused ones keep up with the used one.
      if (requests_ == 1) std::fill_n(&begin[b.task * k_], k_, starts[i]);
      begin[b.task * k_ + b.device] = starts[i];
      requests[b.task * k_ + b.device] |= b.requests;
    }
    for (size_t p = 0; p < n_; ++p) {
      for (size_t d = 0; d < k_; ++d) {
        if (!m_.possible(p, d)) continue;
        const auto count = static_cast<size_t>(__builtin_popcount(requests[p * k_ + d]));
        for (size_t l = 0; l < requests_; ++l) {
          milp_.set_start(x_[index(p, d, l)], requests[p * k_ + d] >> l & 1);
          if (requests_ > 1) milp_.set_start(b_[index(p, d, l)], count == l + 1 ? 1 : 0);
        }
        milp_.set_start(s_[p * k_ + d], begin[p * k_ + d] / unit_);
      }
    }
    for (const Order& o : orders_)
      milp_.set_start(o.first_before, begin[o.p * k_ + o.device] <= begin[o.q * k_ + o.device] ? 1 : 0);
    milp_.set_start(end_, start.value_us / unit_);
  }

  std::vector<Batch> read(const std::vector<double>& values) const {
    std::vector<std::pair<double, Batch>> found;
    for (size_t p = 0; p < n_; ++p) {
      for (size_t d = 0; d < k_; ++d) {
        if (!m_.possible(p, d)) continue;
        Batch b{static_cast<uint32_t>(p), static_cast<uint32_t>(d), 0};
        for (size_t l = 0; l < requests_; ++l) {
          if (values[static_cast<size_t>(x_[index(p, d, l)].index)] > 0.5) b.requests |= uint32_t{1} << l;
        }
        if (b.requests != 0) found.push_back({values[static_cast<size_t>(s_[p * k_ + d].index)], b});
      }
    }
    std::stable_sort(found.begin(), found.end(),
                     [&](const auto& a, const auto& b) { return a.first < b.first; });
    return topological(std::move(found));
  }

 private:
  struct Order {
    size_t p, q, device;
    Var first_before;
  };

  size_t index(size_t p, size_t d, size_t l) const { return (p * k_ + d) * requests_ + l; }

  // Purdom's closure over the module's tasks, a bit per pair.
  void find_paths() {
    reach_.assign(n_ * n_, 0);
    for (size_t p = n_; p-- > 0;) {
      for (const TaskModel::Edge& e : model_.out(p)) {
        reach_[p * n_ + e.dst] = 1;
        for (size_t r = 0; r < n_; ++r) reach_[p * n_ + r] |= reach_[e.dst * n_ + r];
      }
    }
  }

  // Starts may be equal up to the solver's tolerance: readers still come after what they read.
  std::vector<Batch> topological(std::vector<std::pair<double, Batch>> found) const {
    std::vector<Batch> batches;
    std::vector<uint8_t> taken(found.size(), 0);
    while (batches.size() < found.size()) {
      for (size_t i = 0; i < found.size(); ++i) {
        if (taken[i]) continue;
        const Batch& b = found[i].second;
        bool waits = false;
        for (size_t j = 0; j < found.size() && !waits; ++j) {
          const Batch& other = found[j].second;
          waits = !taken[j] && reach_[other.task * n_ + b.task] != 0 && (other.requests & b.requests) != 0;
        }
        if (waits) continue;
        taken[i] = 1;
        batches.push_back(b);
        break;
      }
    }
    return batches;
  }

  // Equations 1, 4, 5.
  void add_places() {
    x_.resize(n_ * k_ * requests_);
    s_.resize(n_ * k_);
    for (size_t p = 0; p < n_; ++p) {
      for (size_t d = 0; d < k_; ++d) {
        if (!m_.possible(p, d)) continue;
        s_[p * k_ + d] = milp_.add_continuous(0, kHorizon);
        for (size_t l = 0; l < requests_; ++l) {
          const Var x = x_[index(p, d, l)] = milp_.add_binary();
          if (m_.free_at(d) > 0)
            milp_.at_most({{x, m_.free_at(d) / unit_}, {s_[p * k_ + d], -1}}, 0, "device_free");
        }
      }
      for (size_t l = 0; l < requests_; ++l) {
        std::vector<Term> one;
        for (size_t d = 0; d < k_; ++d) {
          if (m_.possible(p, d)) one.push_back({x_[index(p, d, l)], 1});
        }
        milp_.equal(std::move(one), 1, "one_device");
      }
    }
    b_ = x_;
    if (requests_ == 1) return;
    for (size_t p = 0; p < n_; ++p) {
      for (size_t d = 0; d < k_; ++d) {
        if (!m_.possible(p, d)) continue;
        std::vector<Term> count, sizes;
        for (size_t l = 0; l < requests_; ++l) {
          const Var b = b_[index(p, d, l)] = milp_.add_binary();
          if (!(model_.us(p, d, l + 1) < kImpossible)) milp_.set_bounds(b, 0, 0);
          count.push_back({x_[index(p, d, l)], 1});
          count.push_back({b, -static_cast<double>(l + 1)});
          sizes.push_back({b, 1});
        }
        milp_.equal(std::move(count), 0, "batch_size");
        milp_.at_most(std::move(sizes), 1, "one_batch");
      }
    }
  }

  // sign * (start + time of the batch).
  void add_end_terms(std::vector<Term>& terms, size_t p, size_t d, double sign) const {
    terms.push_back({s_[p * k_ + d], sign});
    add_time_terms(terms, p, d, sign);
  }
  void add_time_terms(std::vector<Term>& terms, size_t p, size_t d, double sign) const {
    for (size_t c = 1; c <= requests_; ++c) {
      const double us = model_.us(p, d, c);
      if (us < kImpossible) terms.push_back({b_[index(p, d, c - 1)], sign * us / unit_});
    }
  }

  // Equation 3.
  void add_precedence() {
    for (const auto& s : m_.sources) {
      for (size_t d = 0; d < k_; ++d) {
        if (!m_.possible(s.task, d)) continue;
        const double at = (s.at_us + model_.transfer_us(s.device, d, s.bytes)) / unit_;
        const Var x = x_[index(s.task, d, s.request)];
        if (at > kHorizon) {
          milp_.set_bounds(x, 0, 0);
        } else if (at > 0) {
          milp_.at_most({{x, at}, {s_[s.task * k_ + d], -1}}, 0, "source");
        }
      }
    }
    for (size_t q = 0; q < n_; ++q) {
      for (const TaskModel::Edge& e : model_.in(q)) {
        for (size_t u = 0; u < k_; ++u) {
          for (size_t v = 0; v < k_; ++v) {
            if (!m_.possible(e.src, u) || !m_.possible(q, v)) continue;
            for (size_t l = 0; l < requests_; ++l) add_dependency(e.src, u, q, v, l, e.bytes);
          }
        }
      }
    }
  }

  void add_dependency(size_t p, size_t u, size_t q, size_t v, size_t l, int64_t bytes) {
    const Var xp = x_[index(p, u, l)], xq = x_[index(q, v, l)];
    const double move = model_.transfer_us(u, v, bytes) / unit_;
    if (move > kHorizon) {
      milp_.at_most({{xp, 1}, {xq, 1}}, 1, "no_way");
      if (requests_ > 1) return;
    }
    const double extra = move > kHorizon ? 0 : move;
    // One request: x are 0 or 1 and unused starts cost nothing, so that the transfer's own factor is enough.
    const double big = requests_ == 1 ? extra : kHorizon + extra;
    std::vector<Term> terms{{s_[q * k_ + v], -1}, {xp, big}, {xq, big}};
    add_end_terms(terms, p, u, 1);
    milp_.at_most(std::move(terms), requests_ == 1 ? extra : 2 * big - extra, "dependency");
  }

  // Equation 7, for pairs that no path orders.
  void add_exclusion() {
    for (size_t p = 0; p < n_; ++p) {
      for (size_t q = p + 1; q < n_; ++q) {
        if (requests_ == 1 && (reach_[p * n_ + q] || reach_[q * n_ + p])) continue;
        Var order;
        for (size_t d = 0; d < k_; ++d) {
          if (!m_.possible(p, d) || !m_.possible(q, d)) continue;
          // Tasks run once when there is one request: one order for all devices.
          if (order.index < 0 || requests_ > 1) {
            order = milp_.add_binary();
            orders_.push_back({p, q, d, order});
          }
          add_branch(p, q, d, order, true);
          add_branch(q, p, d, order, false);
        }
      }
    }
  }

  void add_branch(size_t first, size_t second, size_t d, Var order, bool when) {
    // end(first) - start(second) <= H (order is not `when`) + H (first not here) + H (second not here)
    std::vector<Term> terms{{s_[second * k_ + d], -1}};
    add_end_terms(terms, first, d, 1);
    double limit = 2 * kHorizon;
    for (size_t c = 0; c < requests_; ++c) {
      terms.push_back({b_[index(first, d, c)], kHorizon});
      terms.push_back({b_[index(second, d, c)], kHorizon});
    }
    terms.push_back({order, when ? kHorizon : -kHorizon});
    if (when) limit += kHorizon;
    milp_.at_most(std::move(terms), limit, "exclusion");
  }

  // Equation 2. The sum of each device's times is implied by 7 for whole numbers, not for the relaxation.
  void add_end() {
    end_ = milp_.add_continuous(0, kHorizon, "C");
    milp_.add_cost(end_, 1);
    for (size_t p = 0; p < n_; ++p) {
      for (size_t d = 0; d < k_; ++d) {
        if (!m_.possible(p, d)) continue;
        for (size_t l = 0; l < requests_; ++l) {
          const double tail = m_.tail(p, l, d) / unit_;
          if (l > 0 && !(tail > 0)) continue;
          const Var x = x_[index(p, d, l)];
          if (tail > kHorizon) {
            milp_.set_bounds(x, 0, 0);
            continue;
          }
          std::vector<Term> terms{{end_, -1}};
          add_end_terms(terms, p, d, 1);
          if (tail > 0) terms.push_back({x, tail});
          milp_.at_most(std::move(terms), 0, "end");
        }
      }
    }
    for (size_t d = 0; d < k_; ++d) {
      std::vector<Term> terms{{end_, -1}};
      for (size_t p = 0; p < n_; ++p) {
        if (m_.possible(p, d)) add_time_terms(terms, p, d, 1);
      }
      if (terms.size() > 1) milp_.at_most(std::move(terms), 0, "work");
    }
  }

  const ModuleProblem& m_;
  const TaskModel& model_;
  const size_t n_, k_, requests_;
  const double unit_;
  std::vector<uint8_t> reach_;
  Milp milp_;
  std::vector<Var> x_, b_, s_;
  std::vector<Order> orders_;
  Var end_;
};

}  // namespace

Result<ModuleAnswer> solve_module_by_milp(const ModuleProblem& m, const ModuleAnswer& start,
                                          const SolveOptions& limits) {
  return solve_module<MilpModule>(m, start, limits);
}

}  // namespace heddle
