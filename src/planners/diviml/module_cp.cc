// A module by CP-SAT: DiviML's decisions (section IV-A) with batches as optional intervals, so that equation
// 7 is a no-overlap constraint per device and equations 2, 3 hold where the literals of a placement are true.
#include <algorithm>
#include <cmath>

#include "heddle/solve/cp.h"
#include "module_problem.h"

namespace heddle {
namespace {

// Times are cut into this many parts of the start's value: fine enough that what rounding hides is far below
// a measurement's noise, small enough for the solver's arithmetic.
constexpr double kParts = 1 << 26;

class CpModule {
 public:
  CpModule(const ModuleProblem& module, double value_us)
      : m_(module),
        model_(*module.model),
        n_(module.tasks.size()),
        k_(model_.num_devices()),
        requests_(model_.num_requests()),
        unit_(std::max(value_us, 1e-6) / kParts),
        // Rounding down makes every schedule shorter, never longer.
        horizon_(static_cast<int64_t>(kParts) + 2),
        place_(model_.num_tasks(), -1) {
    for (size_t p = 0; p < n_; ++p) place_[m_.tasks[p]] = static_cast<int>(p);
    add_places();
    add_precedence();
    add_devices();
    add_end();
    if (requests_ > 1) break_symmetry();
  }

  const CpModel& cp() const { return cp_; }
  double unit() const { return unit_; }

  void hint(const std::vector<Batch>& batches, const std::vector<double>& starts) {
    for (size_t i = 0; i < batches.size(); ++i) {
      const Batch& b = batches[i];
      const auto p = static_cast<size_t>(place_[b.task]);
      for (size_t d = 0; d < k_; ++d) {
        if (!possible(p, d)) continue;
        for (size_t l = 0; l < requests_; ++l) {
          if (b.requests >> l & 1) cp_.hint(on(p, d, l).var(), d == b.device ? 1 : 0);
        }
      }
      cp_.hint(start(p, b.device), ticks(starts[i]));
    }
  }

  std::vector<Batch> read(const std::vector<double>& values) const {
    std::vector<std::pair<double, Batch>> found;
    for (size_t p = 0; p < n_; ++p) {
      for (size_t d = 0; d < k_; ++d) {
        if (!possible(p, d)) continue;
        Batch b{m_.tasks[p], static_cast<uint32_t>(d), 0};
        for (size_t l = 0; l < requests_; ++l) {
          if (values[static_cast<size_t>(on(p, d, l).var().index)] > 0.5) b.requests |= uint32_t{1} << l;
        }
        if (b.requests != 0) found.push_back({values[static_cast<size_t>(start(p, d).index)], b});
      }
    }
    // Ops without duration in whole ticks start together with their readers: places break the tie.
    std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : place_[a.second.task] < place_[b.second.task];
    });
    std::vector<Batch> batches;
    for (const auto& f : found) batches.push_back(f.second);
    return batches;
  }

 private:
  int64_t ticks(double us) const {
    return static_cast<int64_t>(std::clamp(std::floor(us / unit_), 0.0, kParts * 64));
  }
  bool possible(size_t p, size_t d) const {
    return m_.allows(p, d) && model_.us(m_.tasks[p], d, 1) < kImpossible;
  }
  CpLit on(size_t p, size_t d, size_t l) const { return x_[(p * k_ + d) * requests_ + l]; }
  CpLit batch(size_t p, size_t d, size_t count) const { return b_[(p * k_ + d) * requests_ + count - 1]; }
  // One start for all devices when there is one request: a task runs once.
  CpVar start(size_t p, size_t d) const { return s_[requests_ == 1 ? p : p * k_ + d]; }

  // Equations 1, 4 and 5.
  void add_places() {
    x_.resize(n_ * k_ * requests_);
    b_.resize(x_.size());
    s_.resize(requests_ == 1 ? n_ : n_ * k_);
    for (size_t p = 0; p < n_; ++p) {
      if (requests_ == 1) s_[p] = cp_.add_integer(0, horizon_);
      for (size_t l = 0; l < requests_; ++l) {
        std::vector<CpLit> one;
        for (size_t d = 0; d < k_; ++d) {
          if (!possible(p, d)) continue;
          CpLit& x = x_[(p * k_ + d) * requests_ + l];
          x = cp_.add_literal();
          one.push_back(x);
        }
        cp_.exactly_one(one);
      }
      for (size_t d = 0; d < k_; ++d) {
        if (!possible(p, d)) continue;
        if (requests_ == 1) {
          b_[p * k_ + d] = x_[p * k_ + d];
          continue;
        }
        s_[p * k_ + d] = cp_.add_integer(0, horizon_);
        CpExpr balance;
        std::vector<CpLit> sizes;
        for (size_t c = 1; c <= requests_; ++c) {
          CpLit& b = b_[(p * k_ + d) * requests_ + c - 1];
          b = cp_.add_literal();
          sizes.push_back(b);
          balance.add(b, -static_cast<int64_t>(c));
          balance.add(on(p, d, c - 1), 1);
        }
        cp_.at_most_one(sizes);
        cp_.linear(0, std::move(balance), 0);
      }
    }
  }

  // start + time of the batch there, as an expression.
  CpExpr end_on(size_t p, size_t d) const {
    CpExpr e(start(p, d));
    for (size_t c = 1; c <= requests_; ++c) e.add(batch(p, d, c), ticks(model_.us(m_.tasks[p], d, c)));
    return e;
  }

  static CpExpr minus(CpExpr a, const CpExpr& b) {
    for (const CpTerm& t : b.terms) a.add(t.var, -t.coefficient);
    a.constant -= b.constant;
    return a;
  }

  // Where all of `when` hold; what could only start after the value to be beaten does not happen there.
  void not_before(int64_t at, CpVar start, const std::vector<CpLit>& when) {
    if (at <= horizon_) {
      cp_.linear(at, CpExpr(start), horizon_, when);
      return;
    }
    std::vector<CpLit> no;
    for (const CpLit l : when) no.push_back(!l);
    cp_.any_of(no);
  }

  // Equation 3.
  void add_precedence() {
    for (const auto& s : m_.sources) {
      for (size_t d = 0; d < k_; ++d) {
        if (!possible(s.place, d)) continue;
        const double at = s.at_us + model_.transfer_us(s.device, d, s.bytes);
        const CpLit when = on(s.place, d, s.request);
        if (!(at < kImpossible)) {
          cp_.any_of(std::vector<CpLit>{!when});
        } else if (at > 0) {
          not_before(ticks(at), start(s.place, d), {when});
        }
      }
    }
    for (size_t q = 0; q < n_; ++q) {
      for (const TaskModel::Edge& e : model_.in(m_.tasks[q])) {
        if (place_[e.src] >= 0) add_edge(static_cast<size_t>(place_[e.src]), q, e.bytes);
      }
    }
  }

  void add_edge(size_t p, size_t q, int64_t bytes) {
    constexpr int64_t kFar = int64_t{1} << 40;
    if (requests_ == 1) {
      // Wherever both run, the reader starts after the end.
      CpExpr gap(start(q, 0));
      gap.add(start(p, 0), -1);
      for (size_t d = 0; d < k_; ++d) {
        if (possible(p, d)) gap.add(on(p, d, 0), -ticks(model_.us(m_.tasks[p], d, 1)));
      }
      cp_.linear(0, std::move(gap), kFar);
    }
    for (size_t u = 0; u < k_; ++u) {
      for (size_t v = 0; v < k_; ++v) {
        if (!possible(p, u) || !possible(q, v)) continue;
        const double move = model_.transfer_us(u, v, bytes);
        for (size_t l = 0; l < requests_; ++l) {
          const std::vector<CpLit> both{on(p, u, l), on(q, v, l)};
          if (!(move < kImpossible)) {
            cp_.any_of(std::vector<CpLit>{!both[0], !both[1]});
          } else if (requests_ > 1 || ticks(move) > 0) {
            CpExpr gap = minus(CpExpr(start(q, v)), CpExpr(start(p, u)));
            if (requests_ == 1) {
              cp_.linear(ticks(model_.us(m_.tasks[p], u, 1)) + ticks(move), std::move(gap), kFar, both);
            } else {
              cp_.linear(ticks(move), minus(CpExpr(start(q, v)), end_on(p, u)), kFar, both);
            }
          }
        }
      }
    }
  }

  // Equation 7.
  void add_devices() {
    for (size_t d = 0; d < k_; ++d) {
      std::vector<CpInterval> busy;
      for (size_t p = 0; p < n_; ++p) {
        if (!possible(p, d)) continue;
        for (size_t c = 1; c <= requests_; ++c) {
          const double us = model_.us(m_.tasks[p], d, c);
          const std::vector<CpLit> when{batch(p, d, c)};
          if (!(us < kImpossible)) {
            cp_.any_of(std::vector<CpLit>{!when[0]});
            continue;
          }
          CpExpr end(start(p, d));
          end.add(ticks(us));
          busy.push_back(cp_.interval(CpExpr(start(p, d)), CpExpr(ticks(us)), std::move(end), when));
          if (m_.free_at(d) > 0) not_before(ticks(m_.free_at(d)), start(p, d), when);
        }
      }
      cp_.no_overlap(busy);
    }
  }

  // Equation 2, and that no device works longer than until the end.
  void add_end() {
    constexpr int64_t kFar = int64_t{1} << 40;
    end_ = cp_.add_integer(ticks(module_bound(m_)), horizon_);
    const ModulePaths paths = module_paths(m_);
    for (size_t p = 0; p < n_; ++p) {
      for (size_t d = 0; d < k_; ++d) {
        if (!possible(p, d)) continue;
        for (size_t l = 0; l < requests_; ++l) {
          CpExpr gap(end_);
          const int64_t tail = ticks(m_.tail(p, l, d));
          if (requests_ == 1) {
            // Implied by the other rows, but not seen by the solver before all devices on a path are chosen:
            // what must come before and after on the best devices. Real schedules rounded down keep them.
            const std::vector<CpLit> here{on(p, d, 0)};
            const int64_t least =
                std::max(ticks(model_.us(m_.tasks[p], d, 1)) + tail, ticks(paths.rest[p * k_ + d]) - 1);
            gap.add(start(p, d), -1);
            cp_.linear(least, std::move(gap), kFar, here);
            const int64_t head = ticks(paths.head[p * k_ + d]) - 1;
            if (head > 0) not_before(head, start(p, d), here);
          } else {
            cp_.linear(tail, minus(std::move(gap), end_on(p, d)), kFar, std::vector<CpLit>{on(p, d, l)});
          }
        }
      }
    }
    for (size_t d = 0; d < k_; ++d) {
      CpExpr work(end_);
      for (size_t p = 0; p < n_; ++p) {
        if (!possible(p, d)) continue;
        for (size_t c = 1; c <= requests_; ++c) {
          const double us = model_.us(m_.tasks[p], d, c);
          if (us < kImpossible) work.add(batch(p, d, c), -ticks(us));
        }
      }
      // A device without work has no tail of this module's making.
      cp_.linear(0, std::move(work), kFar);
    }
    cp_.minimise(CpExpr(end_));
  }

  // Requests are alike when nothing outside tells them apart: their devices at the first task may ascend.
  void break_symmetry() {
    if (!m_.sources.empty() || !m_.tail_us.empty() || n_ == 0) return;
    for (size_t l = 0; l + 1 < requests_; ++l) {
      CpExpr gap;
      for (size_t d = 0; d < k_; ++d) {
        if (!possible(0, d)) continue;
        gap.add(on(0, d, l + 1), static_cast<int64_t>(d));
        gap.add(on(0, d, l), -static_cast<int64_t>(d));
      }
      cp_.linear(0, std::move(gap), static_cast<int64_t>(k_));
    }
  }

  const ModuleProblem& m_;
  const TaskModel& model_;
  const size_t n_, k_, requests_;
  const double unit_;
  const int64_t horizon_;
  std::vector<int> place_;
  CpModel cp_;
  std::vector<CpLit> x_, b_;
  std::vector<CpVar> s_;
  CpVar end_;
};

}  // namespace

Result<ModuleAnswer> solve_module_by_cp(const ModuleProblem& m, const ModuleAnswer& start,
                                        const ModuleLimits& limits) {
  ModuleAnswer answer = module_start(m, start, limits);
  // Without a start there is no scale of times.
  if (!(answer.value_us < kImpossible) || answer.optimal || limits.deadline.should_stop()) return answer;
  CpModule module(m, answer.value_us);
  std::vector<double> starts;
  module_value(m, answer.batches, &starts);
  module.hint(answer.batches, starts);
  SolveOptions options;
  options.deadline = limits.deadline;
  options.seed = limits.seed;
  options.threads = limits.threads;
  auto solved = solve(module.cp(), options);
  // Builds in which the library cannot be loaded have HiGHS still.
  if (!solved.ok() && solved.error().code() == Code::kUnsupported)
    return solve_module_by_milp(m, answer, limits);
  HEDDLE_ASSIGN_OR_RETURN(const Solution solution, std::move(solved));
  const auto found = solution.has_values() ? module.read(solution.values) : std::vector<Batch>{};
  adopt(m, found, solution.bound * module.unit(), solution.status == SolveStatus::kOptimal, answer);
  return answer;
}

}  // namespace heddle
