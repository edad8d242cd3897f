// Solving by HiGHS. Each solve runs on a thread of its own. HiGHS keeps its worker pool per calling thread
// (HighsTaskExecutor's handle is thread_local) and later rejects another number of workers there. A fresh
// thread has a fresh pool, so solves with different numbers of threads do not affect each other.
//
// Stopping: HiGHS calls its callbacks between simplex iterations, between nodes and between rounds of cuts.
// Presolve and the start of the root node call none and check time_limit only rarely: release 1.15.1 returned
// seconds late from either. So the caller does not wait: soon after the deadline it takes the solutions that
// callbacks received and abandons the thread, which owns all it needs and ends at HiGHS's next check.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>

#include "heddle/base/units.h"
#include "highs_model.h"
#include "solve_options.h"
#include "solver_threads.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;
// Iterations, weighted by the model's rows + columns + coefficients, per unit of work.
constexpr double kSizedIterationsPerWork = 7e6;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<double> rounded(const Milp& model, std::span<const double> values) {
  std::vector<double> exact(values.begin(), values.end());
  for (size_t i = 0; i < exact.size(); ++i) {
    const auto& v = model.variables()[i];
    if (v.kind != VarKind::kContinuous) exact[i] = std::round(exact[i]);
    // Values within the solver's tolerance of a bound are moved onto the bound.
    exact[i] = std::clamp(exact[i], v.lower, v.upper) + 0.0;
  }
  return exact;
}

// One solve. `given` is the caller's model; `flat` has no indicators (and, for a relaxation, no integers).
class HighsSolve {
 public:
  HighsSolve(std::shared_ptr<const Milp> given, std::shared_ptr<const Milp> flat, const SolveOptions& options)
      : given_(std::move(given)),
        flat_(std::move(flat)),
        options_(options),
        work_(options.work * kSizedIterationsPerWork),
        size_(size_of(*flat_)) {}

  // Runs on the solver thread.
  Result<Solution> run() {
    take_start();
    HEDDLE_ASSIGN_OR_RETURN(Solution solution, attempt(1e-6));
    // Rounded integers can violate a row with a large coefficient: retry with a smaller tolerance.
    if (!fault_.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(solution, attempt(1e-9));
    }
    // Only if there is no earlier solution to return.
    if (!fault_.empty() && !solution.has_values()) {
      return internal_error("its solution breaks the model: " + fault_ +
                            "; the coefficients may be too far apart: use other units")
          .with_context(solution.solver);
    }
    return solution;
  }

  // Runs on the caller's thread, which no longer waits for the solver: the best so far.
  Solution leave() {
    const std::lock_guard lock(mutex_);
    left_ = true;
    return finish(kHighsModelStatusInterrupt, -kInfinity);
  }

 private:
  static double size_of(const Milp& model) {
    size_t size = model.variables().size() + model.rows().size();
    for (const auto& row : model.rows()) size += row.terms.size();
    return static_cast<double>(size);
  }

  // Called by HiGHS after each iteration: true when the work is used up or the deadline has passed. One
  // thread at a time.
  bool enough() {
    done_work_ += size_;
    return done_work_ > work_ || options_.deadline.should_stop();
  }

  // Keeps a complete feasible start as an incumbent, even if the solver rejects it.
  void take_start() {
    const size_t n = flat_->variables().size();
    start_.assign(n, 0);
    std::vector<bool> given(n, false);
    for (const auto& [var, value] : flat_->start()) {
      start_[static_cast<size_t>(var.index)] = value;
      given[static_cast<size_t>(var.index)] = true;
    }
    for (size_t i = 0; i < n; ++i) {
      if (given[i]) start_vars_.push_back(static_cast<HighsInt>(i));
    }
    if (start_vars_.empty()) return;
    std::vector<double> values = rounded(*flat_, start_);
    if (start_vars_.size() < n && !complete(values)) return;
    const std::lock_guard lock(mutex_);
    if (!left_ && offer(std::move(values))) report(-kInfinity, best_);
  }

  // Completes a partial start by a small search. HiGHS would do so itself, but through the same callbacks,
  // where bounds of the restricted model cannot be told from the model's.
  bool complete(std::vector<double>& values) {
    Milp restricted = *flat_;
    for (const HighsInt i : start_vars_) {
      const double value = values[static_cast<size_t>(i)];
      restricted.set_bounds({i}, value, value);
    }
    const auto highs = make_highs(restricted, options_, 1e-6);
    if (!highs.ok()) return false;
    void* h = highs->get();
    listen(h);
    // Completing the start may take only a part of the time.
    Highs_setIntOptionValue(h, "mip_max_nodes", 500);
    Highs_setIntOptionValue(h, "mip_max_improving_sols", 3);
    const double left = options_.deadline.seconds_left();
    if (std::isfinite(left)) Highs_setDoubleOptionValue(h, "time_limit", left / 5);
    completing_ = true;
    Highs_run(h);
    completing_ = false;
    if (!is_feasible(h)) return false;
    Highs_getSolution(h, values.data(), nullptr, nullptr, nullptr);
    values = rounded(*flat_, values);
    return true;
  }

  static bool is_feasible(void* h) {
    HighsInt primal = 0;
    Highs_getIntInfoValue(h, "primal_solution_status", &primal);
    return primal == kHighsSolutionStatusFeasible;
  }

  // Requires the lock. Keeps the values if they are feasible and better than the best.
  // True: kept.
  bool offer(std::vector<double> values) {
    const double objective = given_->objective(values);
    if (!(objective < best_objective_)) return false;
    if (!violation(*given_, values).empty()) return false;
    best_ = std::move(values);
    best_objective_ = objective;
    return true;
  }

  // Requires the lock.
  void report(double bound, std::span<const double> values) {
    if (std::isfinite(bound) && bound > best_bound_) best_bound_ = bound;
    if (!options_.on_progress) return;
    const bool due = last_report_ < 0 || seconds_since(begin_) - last_report_ > 0.05;
    if (values.empty() && (!due || best_bound_ <= reported_bound_)) return;
    last_report_ = seconds_since(begin_);
    reported_bound_ = best_bound_;
    options_.on_progress({last_report_, best_objective_, std::min(best_bound_, best_objective_), values});
  }

  // Has HiGHS call `called` between iterations, nodes and rounds of cuts, and with each solution.
  void listen(void* h) {
    const auto callback = [](int type, const char*, const HighsCallbackDataOut* out, HighsCallbackDataIn* in,
                             void* self) { static_cast<HighsSolve*>(self)->called(type, out, in); };
    Highs_setCallback(h, callback, this);
    for (const HighsInt type : {kHighsCallbackSimplexInterrupt, kHighsCallbackIpmInterrupt,
                                kHighsCallbackMipImprovingSolution, kHighsCallbackMipInterrupt}) {
      Highs_startCallback(h, type);
    }
  }

  void called(int type, const HighsCallbackDataOut* out, HighsCallbackDataIn* in) {
    const std::lock_guard lock(mutex_);
    if (left_) {
      if (in != nullptr) in->user_interrupt = 1;
      return;
    }
    const bool has_solution = type == kHighsCallbackMipImprovingSolution;
    if (out != nullptr && !completing_) {
      const auto n = static_cast<HighsInt>(flat_->variables().size());
      if (has_solution && out->mip_solution != nullptr && out->mip_solution_size == n) {
        const std::span<const double> values(out->mip_solution, static_cast<size_t>(n));
        if (offer(rounded(*flat_, values))) report(out->mip_dual_bound, best_);
      } else if (type == kHighsCallbackMipInterrupt) {
        report(out->mip_dual_bound, {});
      }
    }
    if (in != nullptr && !has_solution && enough()) in->user_interrupt = 1;
  }

  Result<Solution> attempt(double tolerance) {
    std::vector<double> first;
    {
      const std::lock_guard lock(mutex_);
      fault_.clear();
      if (options_.deadline.should_stop() || done_work_ > work_)
        return finish(kHighsModelStatusInterrupt, -kInfinity);
      first = best_;
    }
    HEDDLE_ASSIGN_OR_RETURN(const HighsPtr highs, make_highs(*flat_, options_, tolerance));
    void* h = highs.get();
    listen(h);
    if (!first.empty()) Highs_setSolution(h, first.data(), nullptr, nullptr, nullptr);
    const double left = options_.deadline.seconds_left();
    if (std::isfinite(left)) Highs_setDoubleOptionValue(h, "time_limit", left);
    Highs_run(h);
    return read(h);
  }

  bool is_mip() const {
    return std::any_of(flat_->variables().begin(), flat_->variables().end(),
                       [](const auto& v) { return v.kind != VarKind::kContinuous; });
  }

  Solution read(void* h) {
    const HighsInt status = Highs_getModelStatus(h);
    int64_t nodes = 0;
    Highs_getInt64InfoValue(h, "mip_node_count", &nodes);
    const bool proven = status == kHighsModelStatusOptimal;
    double bound = -kInfinity;
    if (is_mip()) {
      Highs_getDoubleInfoValue(h, "mip_dual_bound", &bound);
    } else if (proven) {
      bound = Highs_getObjectiveValue(h);
    }
    if (is_feasible(h) && status != kHighsModelStatusInfeasible) {
      std::vector<double> values(flat_->variables().size());
      std::vector<double> duals(is_mip() ? 0 : flat_->rows().size());
      Highs_getSolution(h, values.data(), nullptr, nullptr, duals.empty() ? nullptr : duals.data());
      take(values, proven);
      if (proven) {
        const std::lock_guard lock(mutex_);
        duals_ = std::move(duals);
      }
    }
    const std::lock_guard lock(mutex_);
    nodes_ = std::max<int64_t>(0, nodes);
    return finish(status, bound);
  }

  // Takes the solver's final values, rounded; if infeasible, refits the continuous variables to the integers.
  void take(std::span<const double> values, bool proven) {
    std::vector<double> exact = rounded(*flat_, values);
    {
      const std::lock_guard lock(mutex_);
      if (given_->objective(exact) > best_objective_) return;
    }
    std::string fault = violation(*given_, exact);
    if (!fault.empty()) {
      if (const auto lp = make_highs(*flat_, {}, 1e-9, /*fixed=*/exact); lp.ok()) {
        Highs_run(lp->get());
        if (Highs_getModelStatus(lp->get()) == kHighsModelStatusOptimal) {
          Highs_getSolution(lp->get(), exact.data(), nullptr, nullptr, nullptr);
          exact = rounded(*flat_, exact);
          fault = violation(*given_, exact);
        }
      }
    }
    if (fault.empty()) {
      const std::lock_guard lock(mutex_);
      if (offer(std::move(exact)) && !left_) report(-kInfinity, best_);
    } else if (proven) {
      const std::lock_guard lock(mutex_);
      fault_ = std::move(fault);
    }
  }

  // Requires the lock.
  Solution finish(HighsInt status, double bound) {
    Solution solution;
    solution.solver = highs_name();
    solution.nodes = nodes_;
    // A final bound replaces all bounds reported during the search.
    if (std::isfinite(bound)) best_bound_ = bound;
    const bool infeasible =
        status == kHighsModelStatusInfeasible || status == kHighsModelStatusObjectiveBound;
    if (best_.empty() && fault_.empty() && infeasible) {
      solution.status = SolveStatus::kInfeasible;
      solution.bound = kInfinity;
      return solution;
    }
    if (best_.empty()) {
      const bool unbounded =
          status == kHighsModelStatusUnbounded || status == kHighsModelStatusUnboundedOrInfeasible;
      solution.status = unbounded ? SolveStatus::kUnbounded : SolveStatus::kUnknown;
      solution.bound = unbounded ? -kInfinity : best_bound_;
      return solution;
    }
    if (status == kHighsModelStatusUnbounded) {
      solution.status = SolveStatus::kUnbounded;
      return solution;
    }
    // Infeasible below the incumbent: nothing is better, so the incumbent is optimal.
    if (infeasible) best_bound_ = best_objective_;
    solution.values = best_;
    solution.duals = duals_;
    solution.objective = best_objective_;
    solution.bound = std::min(best_bound_, best_objective_);
    // HiGHS's own tolerance is added to the gap.
    const double gap = std::max(options_.abs_gap, options_.rel_gap * std::fabs(solution.objective)) +
                       1e-6 * std::max(1.0, std::fabs(solution.objective));
    const bool close = solution.objective - solution.bound <= gap;
    solution.status = close ? SolveStatus::kOptimal : SolveStatus::kFeasible;
    return solution;
  }

  // Owned: the thread may outlive the call.
  const std::shared_ptr<const Milp> given_, flat_;
  const SolveOptions options_;
  const double work_, size_;  // work limit, and work per iteration
  const Clock::time_point begin_ = Clock::now();
  std::vector<double> start_;
  std::vector<HighsInt> start_vars_;
  std::string fault_;
  // While HiGHS completes the start, its solutions and bounds are not the model's.
  std::atomic<bool> completing_ = false;
  // The members below are shared by the caller, the solver thread and HiGHS's workers.
  std::mutex mutex_;
  int64_t nodes_ = 0;
  double done_work_ = 0;
  std::vector<double> best_, duals_;
  double best_objective_ = kInfinity;
  double best_bound_ = -kInfinity;
  double last_report_ = -1, reported_bound_ = -kInfinity;
  bool left_ = false;  // the caller no longer waits for the answer
};

// HiGHS treats a model without variables as empty and ignores its rows.
Solution without_variables(const Milp& model) {
  Solution solution;
  solution.solver = highs_name();
  const bool fits = violation(model, {}).empty();
  solution.status = fits ? SolveStatus::kOptimal : SolveStatus::kInfeasible;
  if (fits) solution.objective = model.constant();
  solution.bound = fits ? model.constant() : kInfinity;
  return solution;
}

Result<Solution> solve_flat(const std::shared_ptr<const Milp>& given, const std::shared_ptr<const Milp>& flat,
                            const SolveOptions& options) {
  HEDDLE_RETURN_IF_ERROR(check_options(options));
  if (flat->variables().empty()) return without_variables(*given);
  const auto solve = std::make_shared<HighsSolve>(given, flat, options);
  auto answer = run_on_solver_thread<Solution>(
      [solve] {
        auto result = solve->run();
        // Waits for this thread's worker pool to end, so that nothing of the solve remains.
        Highs_resetGlobalScheduler(1);
        return result;
      },
      options.deadline);
  return answer ? std::move(*answer) : solve->leave();
}

}  // namespace

Result<Solution> solve(const Milp& model, const SolveOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(Milp plain, model.without_indicators());
  const auto flat = std::make_shared<const Milp>(std::move(plain));
  const auto given = model.indicators().empty() ? flat : std::make_shared<const Milp>(model);
  return solve_flat(given, flat, options);
}

Result<Solution> solve_relaxation(const Milp& model, const SolveOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(Milp plain, model.without_indicators());
  plain.make_continuous();
  const auto flat = std::make_shared<const Milp>(std::move(plain));
  return solve_flat(flat, flat, options);
}

}  // namespace heddle
