// Solving by HiGHS. Each solve runs on a thread of its own: HiGHS keeps its pool of workers per calling
// thread (HighsTaskExecutor's handle is thread_local) and refuses another number of workers on it later. A
// fresh thread has a fresh pool, so solves with different numbers of threads neither meet nor wait.
//
// Stopping: HiGHS asks its callbacks between simplex iterations, between nodes and between rounds of cuts,
// and looks at time_limit there and in presolve.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

#include "heddle/solve/milp.h"
#include "highs_model.h"
#include "milp_check.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr HighsInt kSolutionFeasible = 2;  // HiGHS's SolutionStatus::kFeasible

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<double> rounded(const Milp& model, std::span<const double> values) {
  std::vector<double> exact(values.begin(), values.end());
  for (size_t i = 0; i < exact.size(); ++i) {
    const auto& v = model.variables()[i];
    if (v.kind != VarKind::kContinuous) exact[i] = std::round(exact[i]);
    // Within the solver's tolerance of a bound is on the bound.
    exact[i] = std::clamp(exact[i], v.lower, v.upper) + 0.0;
  }
  return exact;
}

// One solve: the model as given, the same without indicators (and, for a relaxation, without integers).
class HighsSolve {
 public:
  HighsSolve(const Milp& given, const Milp& flat, const SolveOptions& options)
      : given_(given), flat_(flat), options_(options) {}

  Result<Solution> run() {
    take_start();
    Solution solution;
    HEDDLE_ASSIGN_OR_RETURN(solution, attempt(1e-6));
    // Integers off by the tolerance times a large coefficient: once more with less of it.
    if (!fault_.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(solution, attempt(1e-9));
    }
    if (!fault_.empty()) {
      return Error(Code::kInternal, "its solution breaks the model: " + fault_ +
                                        "; the coefficients may be too far apart: use other units")
          .with_context(name());
    }
    solution.solver = name();
    solution.seconds = seconds_since(begin_);
    return solution;
  }

 private:
  static std::string name() { return std::string("HiGHS ") + Highs_version(); }

  // A complete start that fits is an incumbent from the beginning, whatever the solver makes of it.
  void take_start() {
    const size_t n = flat_.variables().size();
    start_.assign(n, 0);
    std::vector<bool> given(n, false);
    for (const auto& [var, value] : flat_.start()) {
      start_[static_cast<size_t>(var.index)] = value;
      given[static_cast<size_t>(var.index)] = true;
    }
    for (size_t i = 0; i < n; ++i) {
      if (given[i]) start_vars_.push_back(static_cast<HighsInt>(i));
    }
    if (start_vars_.size() == n && n > 0) offer(rounded(flat_, start_));
  }

  // Keeps the values if they fit the model, are wanted and are better than the best. True: kept.
  bool offer(std::vector<double> values) {
    const double objective = given_.objective(values);
    if (!(objective < best_objective_) || objective >= options_.cutoff) return false;
    if (!violation(given_, values).empty()) return false;
    best_ = std::move(values);
    best_objective_ = objective;
    return true;
  }

  void report(double bound, std::span<const double> values) {
    if (std::isfinite(bound) && bound > best_bound_) best_bound_ = bound;
    if (!options_.on_progress) return;
    const bool due = last_report_ < 0 || seconds_since(begin_) - last_report_ > 0.05;
    if (values.empty() && (!due || best_bound_ <= reported_bound_)) return;
    last_report_ = seconds_since(begin_);
    reported_bound_ = best_bound_;
    options_.on_progress({last_report_, best_objective_, std::min(best_bound_, best_objective_), values});
  }

  static void callback(int type, const char*, const HighsCallbackDataOut* out, HighsCallbackDataIn* in,
                       void* self) {
    static_cast<HighsSolve*>(self)->called(type, out, in);
  }

  void called(int type, const HighsCallbackDataOut* out, HighsCallbackDataIn* in) {
    const std::lock_guard lock(mutex_);
    const auto n = static_cast<HighsInt>(flat_.variables().size());
    if (type == kHighsCallbackMipImprovingSolution && out != nullptr && out->mip_solution != nullptr &&
        out->mip_solution_size == n) {
      const std::span<const double> values(out->mip_solution, static_cast<size_t>(n));
      if (offer(rounded(flat_, values))) report(out->mip_dual_bound, best_);
    } else if (type == kHighsCallbackMipInterrupt && out != nullptr) {
      report(out->mip_dual_bound, {});
    }
    if (in != nullptr && type != kHighsCallbackMipImprovingSolution && options_.deadline.should_stop()) {
      in->user_interrupt = 1;
    }
  }

  Result<Solution> attempt(double tolerance) {
    fault_.clear();
    Solution solution;
    if (options_.deadline.should_stop()) return finish(solution, kHighsModelStatusInterrupt, -kInfinity);
    HighsSetup setup;
    setup.threads = options_.threads;
    setup.seed = options_.seed;
    setup.rel_gap = options_.rel_gap;
    setup.abs_gap = options_.abs_gap;
    setup.feasibility_tolerance = tolerance;
    HEDDLE_ASSIGN_OR_RETURN(const HighsPtr highs, make_highs(flat_, setup));
    void* h = highs.get();
    Highs_setCallback(h, callback, this);
    for (const HighsInt type : {kHighsCallbackSimplexInterrupt, kHighsCallbackIpmInterrupt,
                                kHighsCallbackMipImprovingSolution, kHighsCallbackMipInterrupt}) {
      Highs_startCallback(h, type);
    }
    if (std::isfinite(options_.cutoff)) Highs_setDoubleOptionValue(h, "objective_bound", options_.cutoff);
    if (!best_.empty()) {
      Highs_setSolution(h, best_.data(), nullptr, nullptr, nullptr);
    } else if (!start_vars_.empty() && start_vars_.size() < start_.size()) {
      std::vector<double> values;
      for (const HighsInt i : start_vars_) values.push_back(start_[static_cast<size_t>(i)]);
      Highs_setSparseSolution(h, static_cast<HighsInt>(values.size()), start_vars_.data(), values.data());
    }
    const double left = options_.deadline.seconds_left();
    if (std::isfinite(left)) Highs_setDoubleOptionValue(h, "time_limit", left);
    Highs_run(h);
    return read(h, solution);
  }

  bool is_mip() const {
    return std::any_of(flat_.variables().begin(), flat_.variables().end(),
                       [](const auto& v) { return v.kind != VarKind::kContinuous; });
  }

  Result<Solution> read(void* h, Solution& solution) {
    const HighsInt status = Highs_getModelStatus(h);
    HighsInt primal = 0;
    Highs_getIntInfoValue(h, "primal_solution_status", &primal);
    int64_t nodes = 0;
    if (Highs_getInt64InfoValue(h, "mip_node_count", &nodes) == kHighsStatusOk && nodes > 0) {
      solution.nodes = nodes;
    }
    const bool proven = status == kHighsModelStatusOptimal;
    double bound = -kInfinity;
    if (is_mip()) {
      Highs_getDoubleInfoValue(h, "mip_dual_bound", &bound);
    } else if (proven) {
      bound = Highs_getObjectiveValue(h);
    }
    if (primal == kSolutionFeasible && status != kHighsModelStatusInfeasible) {
      std::vector<double> values(flat_.variables().size());
      Highs_getSolution(h, values.data(), nullptr, nullptr, nullptr);
      take(values, proven);
    }
    return finish(solution, status, bound);
  }

  // The solver's final values: as they are, or with the continuous variables fitted to the rounded integers.
  void take(std::span<const double> values, bool proven) {
    std::vector<double> exact = rounded(flat_, values);
    const double objective = given_.objective(exact);
    if (objective >= options_.cutoff || objective > best_objective_) return;
    std::string fault = violation(given_, exact);
    if (!fault.empty()) {
      HighsSetup setup;
      setup.fixed = exact;
      setup.feasibility_tolerance = 1e-9;
      if (const auto lp = make_highs(flat_, setup); lp.ok()) {
        Highs_run(lp->get());
        if (Highs_getModelStatus(lp->get()) == kHighsModelStatusOptimal) {
          Highs_getSolution(lp->get(), exact.data(), nullptr, nullptr, nullptr);
          exact = rounded(flat_, exact);
          fault = violation(given_, exact);
        }
      }
    }
    if (fault.empty()) {
      offer(std::move(exact));
    } else if (proven) {
      fault_ = std::move(fault);
    }
  }

  Result<Solution> finish(Solution& solution, HighsInt status, double bound) {
    if (std::isfinite(bound)) best_bound_ = std::max(best_bound_, bound);
    const bool cut = std::isfinite(options_.cutoff);
    const bool infeasible =
        status == kHighsModelStatusInfeasible || status == kHighsModelStatusObjectiveBound ||
        (best_.empty() && cut && (status == kHighsModelStatusOptimal || best_bound_ >= options_.cutoff));
    if (best_.empty() && fault_.empty() && infeasible) {
      solution.status = SolveStatus::kInfeasible;
      solution.bound = options_.cutoff;
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
    // Infeasible below the incumbent: the solver knew the incumbent and finds nothing better.
    if (status == kHighsModelStatusInfeasible || status == kHighsModelStatusObjectiveBound) {
      best_bound_ = best_objective_;
    }
    solution.values = best_;
    solution.objective = best_objective_;
    solution.bound = std::min(best_bound_, best_objective_);
    // HiGHS's own tolerance comes on top of the gap.
    const double gap = std::max(options_.abs_gap, options_.rel_gap * std::fabs(solution.objective)) +
                       1e-6 * std::max(1.0, std::fabs(solution.objective));
    const bool close = solution.objective - solution.bound <= gap;
    solution.status = close ? SolveStatus::kOptimal : SolveStatus::kFeasible;
    return solution;
  }

  const Milp& given_;
  const Milp& flat_;
  const SolveOptions& options_;
  const Clock::time_point begin_ = Clock::now();
  std::vector<double> start_;
  std::vector<HighsInt> start_vars_;
  std::vector<double> best_;
  double best_objective_ = kInfinity;
  double best_bound_ = -kInfinity;
  double last_report_ = -1, reported_bound_ = -kInfinity;
  std::string fault_;
  std::mutex mutex_;  // callbacks come from HiGHS's workers too
};

Status check_options(const SolveOptions& options) {
  if (options.threads < 1 || options.threads > 1024) {
    return Error(Code::kInvalidInput,
                 "the number of threads is " + std::to_string(options.threads) + ", expected 1 to 1024");
  }
  if (std::isnan(options.cutoff) || !(options.rel_gap >= 0) || !(options.abs_gap >= 0)) {
    return Error(Code::kInvalidInput, "gaps and cutoff are numbers, gaps not below 0");
  }
  return {};
}

// HiGHS calls a model without variables empty, whatever its rows say.
Solution without_variables(const Milp& model, const SolveOptions& options) {
  Solution solution;
  solution.solver = std::string("HiGHS ") + Highs_version();
  const bool fits = violation(model, {}).empty() && model.constant() < options.cutoff;
  solution.status = fits ? SolveStatus::kOptimal : SolveStatus::kInfeasible;
  if (fits) solution.objective = model.constant();
  solution.bound = fits ? model.constant() : options.cutoff;
  return solution;
}

Result<Solution> solve_flat(const Milp& given, const Milp& flat, const SolveOptions& options) {
  HEDDLE_RETURN_IF_ERROR(check_options(options));
  if (flat.variables().empty()) return without_variables(given, options);
  Result<Solution> result = Solution{};
  std::thread worker([&] {
    try {
      result = HighsSolve(given, flat, options).run();
    } catch (const std::exception& e) {
      result = Error(Code::kInternal, e.what()).with_context("HiGHS");
    }
    // Waits for the pool of this thread to end, so that nothing of the solve stays behind.
    Highs_resetGlobalScheduler(1);
  });
  worker.join();
  return result;
}

}  // namespace

Result<Solution> solve(const Milp& model, const SolveOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const Milp flat, model.without_indicators());
  return solve_flat(model, flat, options);
}

Result<Solution> solve_relaxation(const Milp& model, const SolveOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(Milp flat, model.without_indicators());
  flat.make_continuous();
  return solve_flat(flat, flat, options);
}

}  // namespace heddle
