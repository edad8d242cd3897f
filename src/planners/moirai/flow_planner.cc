#include "heddle/planners/flow_planner.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "flow_anneal.h"
#include "flow_blocks.h"
#include "flow_construct.h"
#include "flow_cp.h"
#include "flow_timer.h"
#include "heddle/plan/gap.h"
#include "lists/construction.h"

namespace heddle {
namespace {

constexpr double kFirstShare = 0.15;     // of the time, for annealing before anything is proven
constexpr double kFirstSeconds = 0.03;   // at least
constexpr double kProofShare = 0.8;      // of what is left then, for blocks or the constraint program
constexpr size_t kMostCpTasks = 700;     // beyond, the program takes longer to build than to be useful
constexpr int64_t kMovesPerTask = 2000;  // without a deadline
constexpr double kNoDeadlineProof_s = 60;

class FlowPlanner {
 public:
  FlowPlanner(const FlowWorkload& w, const PlannerOptions& options) : w_(w), options_(options) {}

  Result<FlowPlan> run() {
    HEDDLE_RETURN_IF_ERROR(construct());
    plan_.bound = std::min(flow_bound(w_), plan_.schedule.makespan);
    plan_.bound_reason = "heaviest path with transfers, or area";
    note();
    anneal(kFirstShare);
    // Without the solver there is still the search, and the bound that needs none.
    auto proved = prove();
    if (!proved.ok() && proved.error().code() != Code::kUnsupported) return std::move(proved).error();
    if (!plan_.optimal() && !options_.deadline.should_stop()) anneal(1);
    const auto wrong = check_flows(w_, plan_.schedule);
    if (!wrong.empty())
      return Error(Code::kInternal,
                   "workload '" + w_.name + "': the schedule found is wrong: " + wrong.front());
    const auto bound = static_cast<double>(plan_.bound), value = static_cast<double>(plan_.schedule.makespan);
    plan_.gap = relative_gap(value, bound);
    plan_.stop = plan_.optimal()                   ? StopReason::kOptimal
                 : options_.deadline.cancelled()   ? StopReason::kCancelled
                 : options_.deadline.should_stop() ? StopReason::kTimeLimit
                                                   : StopReason::kFinished;
    plan_.detail = "best by " + winner_;
    note();
    plan_.seconds = plan_.trajectory.back().seconds;
    return std::move(plan_);
  }

 private:
  void offer(FlowSchedule schedule, const std::string& who) {
    if (!winner_.empty() && schedule.makespan >= plan_.schedule.makespan) return;
    plan_.schedule = std::move(schedule);
    winner_ = who;
    note();
  }
  // Plan and bound of now, on the trajectory.
  void note() {
    plan_.trajectory.push_back(
        {std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(),
         w_.in_units(plan_.schedule.makespan), w_.in_units(plan_.bound)});
  }
  void report(double done) {
    const auto us = [&](int64_t ticks) {
      return w_.in_units(ticks) * (w_.time_unit.starts_with("ms") ? 1e3 : 1);
    };
    report_progress(options_, "workload " + w_.name, done, 1, us(plan_.schedule.makespan), us(plan_.bound));
  }

  Status construct() {
    for (const auto& d : construct_flows(w_)) {
      HEDDLE_ASSIGN_OR_RETURN(auto schedule, evaluate_flows(w_, d));
      offer(std::move(schedule), "construction");
    }
    if (winner_.empty())
      return Error(Code::kInfeasible,
                   "workload '" + w_.name +
                       "': no placement was found that fits the devices' memory; use devices "
                       "with more memory or fewer ops");
    plan_.counters["constructed"] = w_.in_units(plan_.schedule.makespan);
    return {};
  }

  void anneal(double share) {
    FlowAnnealOptions o;
    const double left = options_.deadline.seconds_left();
    if (std::isfinite(left))
      o.deadline =
          options_.deadline.sooner(std::max(share * left, std::min(kFirstSeconds, kProofShare * left)));
    else
      o.moves = static_cast<int64_t>(share * static_cast<double>(kMovesPerTask) *
                                     static_cast<double>(w_.num_tasks()));
    if (!std::isfinite(left)) o.deadline = options_.deadline;
    o.seed = options_.seed + static_cast<uint64_t>(plan_.counters["annealings"]++);
    o.target = plan_.bound;
    o.on_round = [&](int64_t, double) { report(0.5); };
    auto result = anneal_flows(w_, decisions_of(w_, plan_.schedule), o);
    plan_.counters["moves"] += static_cast<double>(result.moves);
    if (auto timed = evaluate_flows(w_, result.best); timed.ok()) offer(std::move(*timed), "annealing");
    plan_.counters["annealed"] = w_.in_units(plan_.schedule.makespan);
    report(0.2);
  }

  Deadline proof_deadline() const {
    const double left = options_.deadline.seconds_left();
    return options_.deadline.sooner(std::isfinite(left) ? kProofShare * left : kNoDeadlineProof_s);
  }

  Status prove() {
    if (plan_.optimal() || options_.deadline.should_stop()) return {};
    FlowBlockOptions blocks;
    blocks.deadline = proof_deadline();
    blocks.seed = options_.seed;
    blocks.threads = options_.threads;
    blocks.on_progress = [&](int64_t, int64_t bound) {
      const int64_t better = std::min(bound, plan_.schedule.makespan);
      if (better > plan_.bound) {
        plan_.bound = better;
        note();
      }
      report(0.5);
    };
    HEDDLE_ASSIGN_OR_RETURN(auto found, solve_by_blocks(w_, plan_.schedule, blocks));
    if (found) {
      plan_.counters["blocks"] = static_cast<double>(found->blocks);
      plan_.counters["block_solves"] = static_cast<double>(found->solves);
      plan_.counters["block_proofs"] = static_cast<double>(found->proven);
      if (found->schedule) offer(std::move(*found->schedule), "blocks");
      raise(found->bound, "shortest path over blocks solved exactly");
      return {};
    }
    if (w_.num_tasks() > kMostCpTasks) return {};
    FlowCpOptions cp;
    cp.deadline = blocks.deadline;
    cp.seed = options_.seed;
    cp.threads = options_.threads;
    cp.at_least = plan_.bound;
    const FlowSchedule hint = plan_.schedule;
    cp.hint = &hint;
    HEDDLE_ASSIGN_OR_RETURN(auto solved, solve_flows(w_, cp));
    if (solved.schedule) offer(std::move(*solved.schedule), "the constraint program");
    raise(solved.bound, "constraint program");
    return {};
  }
  void raise(int64_t bound, const std::string& reason) {
    bound = std::min(bound, plan_.schedule.makespan);
    if (bound < plan_.bound) return;
    const bool higher = bound > plan_.bound;
    plan_.bound = bound;
    plan_.bound_reason = reason;
    if (higher) note();
  }

  const FlowWorkload& w_;
  const PlannerOptions& options_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  FlowPlan plan_;
  std::string winner_;
};

}  // namespace

int64_t flow_bound(const FlowWorkload& w) {
  const size_t k = w.num_devices();
  const auto heads = least_heads(w, std::vector<int32_t>(w.num_ops(), kAnyDevice));
  const auto remaining = least_remaining(w);
  int64_t path = 0, work = 0;
  for (size_t v = 0; v < w.num_ops(); ++v) {
    int64_t least = kNever;
    for (size_t i = 0; i < k; ++i) least = std::min(least, heads[v * k + i] + remaining[v * k + i]);
    path = std::max(path, least);
    work += *std::min_element(w.ops[v].ticks.begin(), w.ops[v].ticks.end());
  }
  const auto devices = static_cast<int64_t>(k);
  return std::max(path, (work + devices - 1) / devices);
}

Result<FlowPlan> plan_flows(const FlowWorkload& workload, const PlannerOptions& options) {
  if (workload.num_ops() == 0)
    return Error(Code::kInvalidInput, "workload '" + workload.name + "': there are no ops to place");
  return FlowPlanner(workload, options).run();
}

}  // namespace heddle
