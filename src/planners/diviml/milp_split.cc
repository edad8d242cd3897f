// MILP-SPLIT: DiviML, section IV-B. The network is cut at its channels, modules are solved one by one and put
// together: by the dynamic program over the devices at the channels where single channels lie between modules
// (optimal when every module was solved), else one after another.
//
// Minimises the latency of one request, or of a batch of requests where the problem's known segments are
// batches. K^2 modules per channel at worst, solved only where a best path may use them. "milp-split" solves
// modules as the paper does, by its MILP (HiGHS), and leaves it there. "cp-split" solves the same modules by
// CP-SAT, and goes beyond the paper: what is not optimal is annealed as a whole, which gets most of the time
// where a batch couples all modules, and decided anew in windows of two modules. Exploits unequal devices,
// transfer times and batches; ignores that transfers wait for each other (the evaluator does not) and memory
// limits, for which it falls back to the best constructive plan.
#include <numeric>

#include "module_planner.h"
#include "modules.h"
#include "split_bound.h"
#include "split_windows.h"

namespace heddle {
namespace {

// Larger modules are cut where several channels lead.
constexpr size_t kMostTasks = 48;
// A batch of requests makes a module as many times larger.
constexpr size_t kMostBatchedTasks = 24;
// Of the time, for the modules in order and for the bound; windows have the rest.
constexpr double kOrderShare = 0.2, kBoundShare = 0.35;
// Single channels: of the time, for the dynamic program; what follows repairs what it could not finish.
constexpr double kChainShare = 0.6;
// Otherwise: of the time, for annealing the whole; a batch couples all modules, so that more of it
// pays.
constexpr double kWholeShare = 0.2, kBatchedShare = 0.75;
constexpr size_t kWholeMoves = 15000;  // per task and request, without a deadline less
constexpr size_t kUntimedSplitMoves = 3000;

class Split {
 public:
  explicit Split(const PlannerOptions& options)
      : name_(options.is_set("solver", "cp-sat") ? "cp-split" : "milp-split"),
        solver_(options.is_set("solver", "cp-sat") ? solve_module_by_cp : solve_module_by_milp),
        improve_(options.is_set("improve", "yes")) {}

  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) {
    return plan_by_models(problem, options, name_,
                          [&](const TaskModel& model, const std::vector<Batch>& start,
                              const SolveOptions& limits) { return split(model, start, limits); });
  }

 private:
  Result<SplitResult> split(const TaskModel& model, const std::vector<Batch>& start,
                            const SolveOptions& limits) const {
    Modules modules = find_modules(model, model.num_requests() > 1 ? kMostBatchedTasks : kMostTasks);
    if (2 * modules.largest() > model.num_tasks() && modules.largest() <= kMostTasks) join(model, modules);
    const bool one_request = model.num_requests() == 1;
    SolveOptions part = limits;
    if (one_request && modules.single_channel()) {
      if (improve_) part.deadline = limits.deadline.sooner(kChainShare * limits.deadline.seconds_left());
      HEDDLE_ASSIGN_OR_RETURN(SplitResult result, split_chain(model, modules, solver_, part));
      if (!improve_ || result.optimal || result.batches.empty()) return result;
      anneal(model, start, limits, result);
      HEDDLE_RETURN_IF_ERROR(windows(model, modules, limits, result));
      return result;
    }
    const double order_share = improve_ ? kOrderShare : one_request ? 1 - kBoundShare : 1;
    part.deadline = limits.deadline.sooner(order_share * limits.deadline.seconds_left());
    HEDDLE_ASSIGN_OR_RETURN(SplitResult result, split_in_order(model, modules, solver_, part));
    if (improve_) anneal(model, start, limits, result);
    if (result.batches.empty()) return result;
    if (one_request) {
      part.deadline = limits.deadline;
      if (improve_) part.deadline = limits.deadline.sooner(kBoundShare * limits.deadline.seconds_left());
      HEDDLE_ASSIGN_OR_RETURN(const SplitBound bound, split_bound(model, modules, solver_, part));
      result.bound_us = bound.us;
      result.claimed_by = bound.claimed_by;
    }
    if (improve_) HEDDLE_RETURN_IF_ERROR(windows(model, modules, limits, result));
    return result;
  }

  // The whole network, from the better of the modules' schedule and the start.
  static void anneal(const TaskModel& model, const std::vector<Batch>& start, const SolveOptions& limits,
                     SplitResult& result) {
    const ModuleProblem whole = whole_problem(model);
    ModuleAnswer first;
    if (!start.empty()) first.batches = start, first.value_us = module_value(whole, start);
    if (result.value_us < first.value_us) first.batches = result.batches, first.value_us = result.value_us;
    const bool timed = limits.deadline.seconds_left() < kImpossible;
    first = module_start(whole, first, limits, model.num_requests() > 1 ? kBatchedShare : kWholeShare,
                         timed ? kWholeMoves : kUntimedSplitMoves);
    if (first.value_us < result.value_us) result.batches = first.batches, result.value_us = first.value_us;
  }

  Status windows(const TaskModel& model, const Modules& modules, const SolveOptions& limits,
                 SplitResult& result) const {
    HEDDLE_ASSIGN_OR_RETURN(const size_t solved, improve_windows(model, modules, solver_, limits, result));
    result.solved += solved;
    return {};
  }

  // Where one module is most of the network, solving it for each pair of devices costs more than it saves.
  static void join(const TaskModel& model, Modules& modules) {
    modules.tasks.assign(1, std::vector<uint32_t>(model.num_tasks()));
    std::iota(modules.tasks[0].begin(), modules.tasks[0].end(), 0U);
    modules.last.assign(1, -1);
  }

  const std::string name_;
  const ModuleSolver solver_;
  const bool improve_;  // what follows the modules, beyond the paper
};

}  // namespace

PlannerEntry milp_split_planner() {
  return {{.name = "milp-split",
           .description = "MILP-SPLIT: modules between channels solved by HiGHS and put together",
           .source = "DiviML, section IV-B",
           .objectives = {Objective::kLatency},
           .exploits = "modules, unequal devices, transfer times, batches of requests; proves a bound",
           .ignores = "contention, memory limits; the bound holds with both",
           .settings = {{"solver", {"highs", "cp-sat"}, "what solves the modules"},
                        {"improve", {"no", "yes"}, "whether annealing and windows follow the modules"}},
           .aliases = {{.name = "cp-split",
                        .settings = {{"solver", "cp-sat"}, {"improve", "yes"}},
                        .description = "MILP-SPLIT whose modules CP-SAT solves, then the whole improved by "
                                       "annealing and windows"}}},
          [](const Problem& problem, const PlannerOptions& options) {
            return Split(options).plan(problem, options);
          }};
}

}  // namespace heddle
