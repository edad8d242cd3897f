// The search on problems with given transfer times, as Moirai's public workloads state them (equations 4 to 8):
// first schedules, annealing, exact blocks, a constraint program, and a proven bound beside the plan.
//
// Minimises the latency. Without a deadline: a fixed amount of annealing. Deterministic for a seed and thread
// count, deadlines apart.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "flow_anneal.h"
#include "flow_blocks.h"
#include "flow_construct.h"
#include "flow_cp.h"
#include "flow_instance.h"
#include "flow_timer.h"
#include "heddle/planners/planner.h"
#include "lists/construction.h"

namespace heddle {
namespace {

constexpr double kFirstShare = 0.15;     // of the time, for annealing before anything is proven
constexpr double kFirstSeconds = 0.03;   // at least
constexpr double kProofShare = 0.8;      // of what is left then, for blocks or the constraint program
constexpr size_t kMostCpTasks = 700;     // beyond, the program takes longer to build than to be useful
constexpr int64_t kMovesPerTask = 2000;  // without a deadline
constexpr double kNoDeadlineProof_s = 60;

class FlowMethods {
 public:
  FlowMethods(const Problem& problem, const FlowInstance& instance, const PlannerOptions& options)
      : problem_(problem), instance_(instance), w_(instance.workload), options_(options) {}

  Result<PlannerOutput> run() {
    HEDDLE_RETURN_IF_ERROR(construct());
    bound_ = std::min(flow_bound(w_), best_.makespan);
    bound_reason_ = "heaviest path with transfers, or area";
    note();
    anneal(kFirstShare);
    // Without the solver there is still the search, and the bound that needs none.
    auto proved = prove();
    if (!proved.ok() && proved.error().code() != Code::kUnsupported) return std::move(proved).error();
    if (!is_optimal() && !options_.deadline.should_stop()) anneal(1);
    note();
    out_.plan = instance_.plan_of(problem_, decisions_of(w_, best_));
    out_.bound = Bound{w_.in_us(bound_), bound_reason_};
    out_.stop = is_optimal()                      ? StopReason::kOptimal
                : options_.deadline.cancelled()   ? StopReason::kCancelled
                : options_.deadline.should_stop() ? StopReason::kTimeLimit
                                                  : StopReason::kFinished;
    out_.detail = "best by " + winner_;
    return std::move(out_);
  }

 private:
  bool is_optimal() const { return best_.makespan == bound_; }
  void offer(FlowSchedule schedule, const std::string& who) {
    if (!winner_.empty() && schedule.makespan >= best_.makespan) return;
    best_ = std::move(schedule);
    winner_ = who;
    note();
  }
  // Plan and bound of now, on the trajectory.
  void note() {
    out_.trajectory.push_back(
        {std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(),
         w_.in_us(best_.makespan), w_.in_us(bound_)});
  }
  void report(double done) {
    report_progress(options_, "workload " + w_.name, done, 1, w_.in_us(best_.makespan), w_.in_us(bound_));
  }

  Status construct() {
    for (const auto& d : construct_flows(w_)) offer(time_flows(w_, d), "construction");
    if (winner_.empty())
      return Error(Code::kInfeasible,
                   "workload '" + w_.name +
                       "': no placement was found that fits the devices' memory; use devices "
                       "with more memory or fewer ops");
    out_.counters["constructed_us"] = w_.in_us(best_.makespan);
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
    o.seed = options_.seed + static_cast<uint64_t>(out_.counters["annealings"]++);
    o.target = bound_;
    o.on_round = [&](int64_t, double) { report(0.5); };
    auto result = anneal_flows(w_, decisions_of(w_, best_), o);
    out_.counters["moves"] += static_cast<double>(result.moves);
    offer(time_flows(w_, result.best), "annealing");
    out_.counters["annealed_us"] = w_.in_us(best_.makespan);
    report(0.2);
  }

  Deadline proof_deadline() const {
    const double left = options_.deadline.seconds_left();
    return options_.deadline.sooner(std::isfinite(left) ? kProofShare * left : kNoDeadlineProof_s);
  }

  Status prove() {
    if (is_optimal() || options_.deadline.should_stop()) return {};
    FlowBlockOptions blocks;
    blocks.deadline = proof_deadline();
    blocks.seed = options_.seed;
    blocks.threads = options_.threads;
    blocks.on_progress = [&](int64_t, int64_t bound) {
      const int64_t better = std::min(bound, best_.makespan);
      if (better > bound_) {
        bound_ = better;
        note();
      }
      report(0.5);
    };
    HEDDLE_ASSIGN_OR_RETURN(auto found, solve_by_blocks(w_, best_, blocks));
    if (found) {
      out_.counters["blocks"] = static_cast<double>(found->blocks);
      out_.counters["block_solves"] = static_cast<double>(found->solves);
      out_.counters["block_proofs"] = static_cast<double>(found->proven);
      if (found->schedule) offer(std::move(*found->schedule), "blocks");
      raise(found->bound, "shortest path over blocks solved exactly");
      return {};
    }
    if (w_.num_tasks() > kMostCpTasks) return {};
    FlowCpOptions cp;
    cp.deadline = blocks.deadline;
    cp.seed = options_.seed;
    cp.threads = options_.threads;
    cp.at_least = bound_;
    const FlowSchedule hint = best_;
    cp.hint = &hint;
    HEDDLE_ASSIGN_OR_RETURN(auto solved, solve_flows(w_, cp));
    if (solved.schedule) offer(std::move(*solved.schedule), "the constraint program");
    raise(solved.bound, "constraint program");
    return {};
  }
  void raise(int64_t bound, const std::string& reason) {
    bound = std::min(bound, best_.makespan);
    if (bound < bound_) return;
    const bool higher = bound > bound_;
    bound_ = bound;
    bound_reason_ = reason;
    if (higher) note();
  }

  const Problem& problem_;
  const FlowInstance& instance_;
  const FlowWorkload& w_;
  const PlannerOptions& options_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  FlowSchedule best_;
  int64_t bound_ = 0;
  std::string bound_reason_, winner_;
  PlannerOutput out_;
};

Result<PlannerOutput> plan_flows(const Problem& problem, const PlannerOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const auto instance, FlowInstance::make(problem));
  return FlowMethods(problem, instance, options).run();
}

}  // namespace

PlannerEntry flow_search_planner() {
  return {{.name = "flow-search",
           .description = "annealing, exact blocks and CP-SAT on flows with given times; proves a bound",
           .source = "Heddle; the problem is Moirai's, section III-D, equations 4 to 8",
           .objectives = {Objective::kLatency},
           .exploits = "a time for each flow and pair of devices, one flow out of and into a device, memory",
           .ignores = "links",
           .transfers = {Transfers::kGiven}},
          plan_flows};
}

}  // namespace heddle
