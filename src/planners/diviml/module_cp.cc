// A module by CP-SAT: DiviML's decisions (section IV-A) with batches as optional intervals, so that equation
// 7 is a no-overlap constraint per device and equations 2, 3 hold where the literals of a placement are true.
#include <algorithm>
#include <cmath>

#include "module_problem.h"
#include "search/schedule_model.h"

namespace heddle {
namespace {

// Times are cut into this many parts of the start's value: fine enough that what rounding hides is far below
// a measurement's noise, small enough for the solver's arithmetic.
constexpr double kParts = 1 << 26;
// No two times are further apart.
constexpr int64_t kFar = int64_t{1} << 40;

class CpModule {
 public:
  CpModule(const ModuleProblem& module, double value_us)
      : m_(module),
        model_(module.model),
        n_(model_.num_tasks()),
        k_(model_.num_devices()),
        requests_(model_.num_requests()),
        unit_(std::max(value_us, 1e-6) / kParts),
        // Rounding down makes every schedule shorter, never longer.
        horizon_(static_cast<int64_t>(kParts) + 2),
        schedule_(n_ * requests_, k_, kFar) {
    add_places();
    add_precedence();
    add_devices();
    add_end();
    if (requests_ > 1) break_symmetry();
  }

  const CpModel& model() const { return schedule_.cp; }
  double bound_us(double bound) const { return bound * unit_; }

  void start_from(const ModuleAnswer& known, const std::vector<double>& starts) {
    for (size_t i = 0; i < known.batches.size(); ++i) {
      const Batch& b = known.batches[i];
      for (size_t d = 0; d < k_; ++d) {
        if (!m_.possible(b.task, d)) continue;
        for (size_t l = 0; l < requests_; ++l) {
          if (b.requests >> l & 1) schedule_.hint(on(b.task, d, l), d == b.device);
        }
      }
      schedule_.cp.hint(start(b.task, b.device), ticks(starts[i]));
    }
  }

  std::vector<Batch> read(const std::vector<double>& values) const {
    std::vector<std::pair<int64_t, Batch>> found;
    for (size_t p = 0; p < n_; ++p) {
      for (size_t d = 0; d < k_; ++d) {
        if (!m_.possible(p, d)) continue;
        Batch b{static_cast<uint32_t>(p), static_cast<uint32_t>(d), 0};
        for (size_t l = 0; l < requests_; ++l) {
          if (ScheduleModel::is_true(on(p, d, l), values)) b.requests |= uint32_t{1} << l;
        }
        if (b.requests != 0) found.push_back({ScheduleModel::value(start(p, d), values), b});
      }
    }
    // Tasks without duration in whole ticks start together with their readers: their numbers break the tie.
    std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second.task < b.second.task;
    });
    std::vector<Batch> batches;
    for (const auto& f : found) batches.push_back(f.second);
    return batches;
  }

 private:
  int64_t ticks(double us) const {
    return static_cast<int64_t>(std::clamp(std::floor(us / unit_), 0.0, kParts * 64));
  }
  // The builder's ops are the tasks' requests.
  CpLit on(size_t p, size_t d, size_t l) const { return schedule_.on(p * requests_ + l, d); }
  CpLit batch(size_t p, size_t d, size_t count) const { return b_[(p * k_ + d) * requests_ + count - 1]; }
  // One start for all devices when there is one request: a task runs once.
  CpVar start(size_t p, size_t d) const { return s_[requests_ == 1 ? p : p * k_ + d]; }

  // Equations 1, 4 and 5.
  void add_places() {
    b_.resize(n_ * k_ * requests_);
    s_.resize(requests_ == 1 ? n_ : n_ * k_);
    for (size_t p = 0; p < n_; ++p) {
      if (requests_ == 1) s_[p] = schedule_.cp.add_integer(0, horizon_);
      for (size_t l = 0; l < requests_; ++l) {
        for (size_t d = 0; d < k_; ++d) {
          if (m_.possible(p, d)) schedule_.may_run(p * requests_ + l, d);
        }
        schedule_.choose_device(p * requests_ + l);
      }
      for (size_t d = 0; d < k_; ++d) {
        if (!m_.possible(p, d)) continue;
        if (requests_ == 1) {
          b_[p * k_ + d] = on(p, d, 0);
          continue;
        }
        s_[p * k_ + d] = schedule_.cp.add_integer(0, horizon_);
        CpExpr balance;
        std::vector<CpLit> sizes;
        for (size_t c = 1; c <= requests_; ++c) {
          CpLit& b = b_[(p * k_ + d) * requests_ + c - 1];
          b = schedule_.cp.add_literal();
          sizes.push_back(b);
          balance.add(b, -static_cast<int64_t>(c));
          balance.add(on(p, d, c - 1), 1);
        }
        schedule_.cp.at_most_one(sizes);
        schedule_.cp.linear(0, std::move(balance), 0);
      }
    }
  }

  // start + time of the batch there, as an expression.
  CpExpr end_on(size_t p, size_t d) const {
    CpExpr e(start(p, d));
    for (size_t c = 1; c <= requests_; ++c) e.add(batch(p, d, c), ticks(model_.us(p, d, c)));
    return e;
  }

  // Of a move; kNoWay where there is none.
  int64_t move_ticks(size_t from, size_t to, int64_t bytes) const {
    const double us = model_.transfer_us(from, to, bytes);
    return us < kImpossible ? ticks(us) : ScheduleModel::kNoWay;
  }

  // Equation 3.
  void add_precedence() {
    for (const auto& s : m_.sources) {
      for (size_t d = 0; d < k_; ++d) {
        if (!m_.possible(s.task, d)) continue;
        const double at = s.at_us + model_.transfer_us(s.device, d, s.bytes);
        const CpLit when[] = {on(s.task, d, s.request)};
        if (at > 0)
          schedule_.after(start(s.task, d), CpExpr(0), at < kImpossible ? ticks(at) : ScheduleModel::kNoWay,
                          when);
      }
    }
    for (size_t q = 0; q < n_; ++q) {
      for (const TaskModel::Edge& e : model_.in(q)) add_edge(e.src, q, e.bytes);
    }
  }

  void add_edge(size_t p, size_t q, int64_t bytes) {
    if (requests_ == 1) {
      const auto us = [&](size_t d) { return ticks(model_.us(p, d, 1)); };
      // Wherever both run, the reader starts after the end.
      schedule_.after(start(q, 0), schedule_.end_of(p, start(p, 0), us), 0);
      schedule_.transfer(p, start(p, 0), q, start(q, 0), [&](size_t u, size_t v) {
        const int64_t move = move_ticks(u, v, bytes);
        return move > 0 ? us(u) + move : 0;
      });
      return;
    }
    for (size_t u = 0; u < k_; ++u) {
      for (size_t v = 0; v < k_; ++v) {
        if (!m_.possible(p, u) || !m_.possible(q, v)) continue;
        for (size_t l = 0; l < requests_; ++l) {
          const CpLit both[] = {on(p, u, l), on(q, v, l)};
          schedule_.after(start(q, v), end_on(p, u), move_ticks(u, v, bytes), both);
        }
      }
    }
  }

  // Equation 7.
  void add_devices() {
    for (size_t d = 0; d < k_; ++d) {
      for (size_t p = 0; p < n_; ++p) {
        if (!m_.possible(p, d)) continue;
        for (size_t c = 1; c <= requests_; ++c) {
          const double us = model_.us(p, d, c);
          const CpLit when[] = {batch(p, d, c)};
          if (!(us < kImpossible)) {
            schedule_.forbid(when);
            continue;
          }
          schedule_.hold(d, start(p, d), ticks(us), when);
          if (m_.free_at(d) > 0) schedule_.after(start(p, d), CpExpr(0), ticks(m_.free_at(d)), when);
        }
      }
    }
    schedule_.add_resources();
  }

  // Equation 2, and that no device works longer than until the end.
  void add_end() {
    end_ = schedule_.cp.add_integer(ticks(module_bound(m_)), horizon_);
    const ModulePaths paths = module_paths(m_);
    for (size_t p = 0; p < n_; ++p) {
      for (size_t d = 0; d < k_; ++d) {
        if (!m_.possible(p, d)) continue;
        for (size_t l = 0; l < requests_; ++l) {
          const CpLit here[] = {on(p, d, l)};
          const int64_t tail = ticks(m_.tail(p, l, d));
          if (requests_ == 1) {
            // Implied by the other rows, but not seen by the solver before all devices on a path are chosen:
            // what must come before and after on the best devices. Real schedules rounded down keep them.
            const int64_t least =
                std::max(ticks(model_.us(p, d, 1)) + tail, ticks(paths.rest[p * k_ + d]) - 1);
            schedule_.after(end_, start(p, d), least, here);
            const int64_t head = ticks(paths.head[p * k_ + d]) - 1;
            if (head > 0) schedule_.after(start(p, d), CpExpr(0), head, here);
          } else {
            schedule_.after(end_, end_on(p, d), tail, here);
          }
        }
      }
    }
    for (size_t d = 0; d < k_; ++d) {
      CpExpr work(end_);
      for (size_t p = 0; p < n_; ++p) {
        if (!m_.possible(p, d)) continue;
        for (size_t c = 1; c <= requests_; ++c) {
          const double us = model_.us(p, d, c);
          if (us < kImpossible) work.add(batch(p, d, c), -ticks(us));
        }
      }
      // A device without work has no tail of this module's making.
      schedule_.cp.linear(0, std::move(work), kFar);
    }
    schedule_.cp.minimise(CpExpr(end_));
  }

  // Requests are alike when nothing outside tells them apart: their devices at the first task may ascend.
  void break_symmetry() {
    if (!m_.sources.empty() || !m_.tail_us.empty() || n_ == 0) return;
    for (size_t l = 0; l + 1 < requests_; ++l) {
      CpExpr gap;
      for (size_t d = 0; d < k_; ++d) {
        if (!m_.possible(0, d)) continue;
        gap.add(on(0, d, l + 1), static_cast<int64_t>(d));
        gap.add(on(0, d, l), -static_cast<int64_t>(d));
      }
      schedule_.cp.linear(0, std::move(gap), static_cast<int64_t>(k_));
    }
  }

  const ModuleProblem& m_;
  const TaskModel& model_;
  const size_t n_, k_, requests_;
  const double unit_;
  const int64_t horizon_;
  ScheduleModel schedule_;
  std::vector<CpLit> b_;
  std::vector<CpVar> s_;
  CpVar end_;
};

}  // namespace

Result<ModuleAnswer> solve_module_by_cp(const ModuleProblem& m, const ModuleAnswer& start,
                                        const SolveOptions& limits) {
  auto answer = solve_module<CpModule>(m, start, limits);
  // Builds in which the library cannot be loaded have HiGHS still.
  const bool loaded = answer.ok() || answer.error().code() != Code::kUnsupported;
  return loaded ? std::move(answer) : solve_module_by_milp(m, start, limits);
}

}  // namespace heddle
