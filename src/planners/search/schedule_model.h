// A schedule as a constraint program: where ops may run, precedence with transfers, exclusive resources and
// memory, and how a solution is read back. The planners that ask CP-SAT for schedules build their models with
// it; what only one of them knows it adds to `cp` itself. Times are whole ticks.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/param_use.h"
#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "heddle/solve/cp.h"

namespace heddle {

class ScheduleModel {
 public:
  // A delay that never ends.
  static constexpr int64_t kNoWay = INT64_MAX / 4;

  // No two times are further apart than `reach`.
  ScheduleModel(size_t num_ops, size_t num_devices, int64_t reach);

  CpModel cp;

  // Where ops run. At first none may run anywhere.
  CpLit may_run(size_t op, size_t device, std::optional<bool> hint = {});
  void runs_if(size_t op, size_t device, CpLit literal) { x_[op * k_ + device] = literal; }
  void runs(size_t op, size_t device) { runs_if(op, device, always_); }
  // Exactly one of the devices on which the op may run.
  void choose_device(size_t op);
  // Always the same literal, true or false, where there is nothing to decide.
  CpLit on(size_t op, size_t device) const { return x_[op * k_ + device]; }
  bool possible(size_t op, size_t device) const { return on(op, device).ref != (!always_).ref; }
  CpLit always() const { return always_; }

  // Those of the literals that something must be decided for.
  std::vector<CpLit> all(std::initializer_list<CpLit> literals) const;
  // Not all of them at once.
  void forbid(std::span<const CpLit> literals);
  // `then` is true where all of them are.
  void implies(std::span<const CpLit> literals, CpLit then);
  void hint(CpLit literal, bool value);
  // `both` is true where, and only where, a and b are.
  void both(CpLit both, CpLit a, CpLit b);
  // to - from >= gap where all of `when` are true. A gap beyond the reach forbids them.
  void after(CpExpr to, const CpExpr& from, int64_t gap, std::span<const CpLit> when = {});

  // start + length(i) on the device i where the op runs: propagates before devices are known.
  template <class Length>
  CpExpr end_of(size_t op, CpVar start, const Length& length) const;
  // to >= from + delay(i, j) where op u runs on i and op w on another device j.
  template <class Delay>
  void transfer(size_t u, const CpExpr& from, size_t w, CpVar to, const Delay& delay);

  // From `start` on the resource is held for `length` where all of `when` are true.
  void hold(size_t resource, CpVar start, int64_t length, std::span<const CpLit> when);
  void hold(size_t resource, CpInterval interval) { held_[resource].push_back(interval); }
  // After the last hold(): no resource is held twice at a time.
  void add_resources();
  // Ops exclude each other on these devices: op v holds them for length(v, i) from start[v] on. The work of
  // all of them fits before `end`.
  template <class Length>
  void exclude(std::span<const uint32_t> devices, const std::vector<CpVar>& start, const Length& length,
               CpVar end);
  // The sum of bytes(v, i) over ops and their devices is at most the limit.
  template <class Bytes>
  void limit_memory(const Bytes& bytes, int64_t limit);
  // The parameters of the model's ops within what each pool has room for. Those that several of them share count for
  // each: too much rather than too little. `ops`: the problem's number of each; `device`: of all ops in the plan as it
  // is, which stays possible.
  void limit_params(const FlatProblem& flat, const ParamRoom& room, std::span<const uint32_t> ops,
                    std::span<const uint32_t> device);

  // Of a solution.
  static int64_t value(CpVar var, std::span<const double> values);
  static bool is_true(CpLit literal, std::span<const double> values);
  uint32_t device(size_t op, std::span<const double> values) const;
  // All ops by the first of these times, those of equal ones by the next; in the end by `position`.
  static std::vector<uint32_t> order(std::initializer_list<const std::vector<CpVar>*> times,
                                     std::span<const double> values, std::span<const uint32_t> position);

 private:
  const size_t n_, k_;
  const int64_t reach_;
  const CpLit always_;
  std::vector<CpLit> x_;
  std::map<size_t, std::vector<CpInterval>> held_;
};

struct CpScheduleOptions {
  Deadline deadline;
  int threads = 1;
  uint64_t seed = 1;
  bool linear_relaxation = true;                     // SolveOptions
  std::function<void(double bound_us)> on_progress;  // the proven bound so far; may be empty
};

struct CpScheduleAnswer {
  std::vector<double> values;  // of the best solution; empty: none
  double bound_us = 0;         // no plan is below
  bool complete = false;       // the model was solved to the end
};

// Solves a model whose times are a relaxation's, rounded down to ticks, and which some plan satisfies.
// kUnsupported when CP-SAT cannot be loaded.
Result<CpScheduleAnswer> solve_relaxed(const CpModel& model, double tick_us, size_t num_ops,
                                       const CpScheduleOptions& options);

template <class Length>
CpExpr ScheduleModel::end_of(size_t op, CpVar start, const Length& length) const {
  CpExpr end(start);
  for (size_t i = 0; i < k_; ++i) {
    if (!possible(op, i)) continue;
    if (on(op, i).ref == always_.ref)
      end.add(length(i));
    else
      end.add(on(op, i), length(i));
  }
  return end;
}

template <class Delay>
void ScheduleModel::transfer(size_t u, const CpExpr& from, size_t w, CpVar to, const Delay& delay) {
  for (size_t i = 0; i < k_; ++i) {
    for (size_t j = 0; j < k_; ++j) {
      if (i == j || !possible(u, i) || !possible(w, j)) continue;
      if (const int64_t ticks = delay(i, j); ticks > 0)
        after(CpExpr(to), from, ticks, all({on(u, i), on(w, j)}));
    }
  }
}

template <class Length>
void ScheduleModel::exclude(std::span<const uint32_t> devices, const std::vector<CpVar>& start,
                            const Length& length, CpVar end) {
  std::vector<CpInterval> busy;
  CpExpr work(end);
  for (size_t v = 0; v < n_; ++v) {
    for (const uint32_t i : devices) {
      const int64_t ticks = possible(v, i) ? length(v, i) : 0;
      if (ticks == 0) continue;
      const auto when = all({on(v, i)});
      busy.push_back(cp.interval(CpExpr(start[v]), CpExpr(ticks), CpExpr(start[v]).add(ticks), when));
      work.add(on(v, i), -ticks);
    }
  }
  if (busy.size() < 2) return;
  cp.no_overlap(busy);
  cp.linear(0, std::move(work), reach_);
}

template <class Bytes>
void ScheduleModel::limit_memory(const Bytes& bytes, int64_t limit) {
  CpExpr sum;
  for (size_t v = 0; v < n_; ++v) {
    for (size_t i = 0; i < k_; ++i) {
      const int64_t own = possible(v, i) ? bytes(v, i) : 0;
      if (own != 0) sum.add(on(v, i), own);
    }
  }
  if (!sum.terms.empty()) cp.linear(0, std::move(sum), limit);
}

}  // namespace heddle
