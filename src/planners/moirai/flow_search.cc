// The search on problems with given transfer times, as Moirai's public workloads state them (equations 4 to 8):
// first schedules, annealing, exact blocks, a constraint program, and a proven bound beside the plan.
//
// Minimises the latency. Without a deadline: a fixed amount of annealing and of work for the proof. Deterministic
// for a seed and thread count, deadlines apart.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/incumbents.h"
#include "core/portfolio.h"
#include "flow_methods.h"
#include "flow_timer.h"
#include "heddle/planners/planner.h"
#include "heddle/solve/solution.h"
#include "lists/construction.h"

namespace heddle {
namespace {

constexpr double kFirstShare = 0.15;     // of the time at most, for annealing before anything is proven
constexpr double kFirstSeconds = 0.03;   // at least
constexpr int kIdleRounds = 6;           // that end it earlier: three lengths, mild and hot
constexpr double kProofShare = 0.8;      // of what is left then, for blocks or the constraint program
constexpr size_t kMostCpTasks = 700;     // beyond, the program takes longer to build than to be useful
constexpr int64_t kMovesPerTask = 2000;  // without a deadline
constexpr double kProofWork = 60;        // without a deadline

class FlowMethods {
 public:
  FlowMethods(const Problem& problem, const FlowInstance& instance, const PlannerOptions& options)
      : problem_(problem), instance_(instance), w_(instance.workload), options_(options) {}

  Result<PlannerOutput> run() {
    run_steps(steps(), {.deadline = options_.deadline, .open = [this] { return is_open(); }});
    HEDDLE_RETURN_IF_ERROR(status_);
    PlannerOutput out;
    out.plan = instance_.plan_of(problem_, decisions_of(w_, best()));
    out.bound = Bound{w_.in_us(bound()), store_.proof()};
    out.stop = !store_.is_open()                 ? StopReason::kOptimal
               : options_.deadline.cancelled()   ? StopReason::kCancelled
               : options_.deadline.should_stop() ? StopReason::kTimeLimit
                                                 : StopReason::kFinished;
    out.detail = "best by " + store_.winner();
    out.counters = std::move(counters_);
    out.trajectory = store_.trajectory();
    for (Incumbent& seen : out.trajectory) {
      seen.value_us = us(seen.value_us);
      seen.bound_us = us(seen.bound_us);
    }
    return out;
  }

 private:
  PortfolioSteps steps() {
    return {
        {"constructions", {}, {}, [this](const Deadline&) { construct(); }},
        {"annealing", {}, {}, [this](const Deadline& d) { anneal(kFirstShare, kIdleRounds, d); }},
        // Without the solver there is still the search, and the bound that needs none.
        {"proof", of_left(kProofShare), {}, [this](const Deadline& d) { fail_unless_unsupported(prove(d)); }},
        {"annealing", {}, {}, [this](const Deadline& d) { anneal(1, 0, d); }},
    };
  }
  // On until there is a schedule, then until the deadline or the bound.
  bool is_open() const {
    if (!status_.ok()) return false;
    return store_.best() == nullptr || (store_.is_open() && !options_.deadline.should_stop());
  }
  void fail_unless_unsupported(const Status& status) {
    if (!status.ok() && status.error().code() != Code::kUnsupported) status_ = status;
  }

  FlowSchedule best() const { return *store_.best(); }
  int64_t bound() const { return static_cast<int64_t>(store_.bound()); }
  void offer(FlowSchedule schedule, const std::string& who) {
    const auto ticks = static_cast<double>(schedule.makespan);
    store_.offer(ticks, std::move(schedule), who);
  }
  void raise(int64_t bound, const Proof& proof) {
    store_.prove(std::min(static_cast<double>(bound), store_.value()), proof);
  }
  double us(double ticks) const {
    return std::isfinite(ticks) ? w_.in_us(static_cast<int64_t>(ticks)) : ticks;
  }
  void report(double done) {
    report_progress(options_, "workload " + w_.name, done, 1, us(store_.value()), us(store_.bound()));
  }

  void construct() {
    for (const auto& d : construct_flows(w_)) offer(time_flows(w_, d), "construction");
    if (store_.best() == nullptr) {
      status_ = infeasible("workload '" + w_.name +
                           "': no placement was found that fits the devices' memory; use "
                           "devices with more memory or fewer ops");
      return;
    }
    counters_["constructed_us"] = us(store_.value());
    raise(flow_bound(w_), "heaviest path with transfers, or area");
  }

  void anneal(double share, int idle_rounds, const Deadline& deadline) {
    FlowAnnealOptions o;
    const double left = deadline.seconds_left();
    if (std::isfinite(left))
      o.deadline = deadline.sooner(std::max(share * left, std::min(kFirstSeconds, kProofShare * left)));
    else
      o.moves = static_cast<int64_t>(share * static_cast<double>(kMovesPerTask) *
                                     static_cast<double>(w_.num_tasks()));
    if (!std::isfinite(left)) o.deadline = deadline;
    o.seed = options_.seed + static_cast<uint64_t>(counters_["annealings"]++);
    o.target = bound();
    o.idle_rounds = idle_rounds;
    o.on_round = [&] { report(0.5); };
    auto result = anneal_flows(w_, decisions_of(w_, best()), o);
    counters_["moves"] += static_cast<double>(result.moves);
    offer(time_flows(w_, result.best), "annealing");
    counters_["annealed_us"] = us(store_.value());
    report(0.2);
  }

  Status prove(const Deadline& deadline) {
    constexpr const char* kByBlocks = "shortest path over blocks solved exactly";
    const bool timed = std::isfinite(deadline.seconds_left());
    const double work = timed ? std::numeric_limits<double>::infinity() : kProofWork;
    FlowBlockOptions blocks;
    blocks.deadline = deadline;
    blocks.work = work;
    blocks.seed = options_.seed;
    blocks.threads = options_.threads;
    blocks.on_progress = [&](int64_t, int64_t bound, const std::string& claimed_by) {
      raise(bound, {kByBlocks, claimed_by});
      report(0.5);
    };
    HEDDLE_ASSIGN_OR_RETURN(auto found, solve_by_blocks(w_, best(), blocks));
    if (found) {
      counters_["blocks"] = static_cast<double>(found->blocks);
      counters_["block_solves"] = static_cast<double>(found->solves);
      counters_["block_proofs"] = static_cast<double>(found->proven);
      if (found->schedule) offer(std::move(*found->schedule), "blocks");
      raise(found->bound, {kByBlocks, found->claimed_by});
      return {};
    }
    if (w_.num_tasks() > kMostCpTasks) return {};
    FlowCpOptions cp;
    cp.deadline = deadline;
    cp.work = work;
    cp.seed = options_.seed;
    cp.threads = options_.threads;
    cp.at_least = bound();
    const FlowSchedule hint = best();
    cp.hint = &hint;
    HEDDLE_ASSIGN_OR_RETURN(auto solved, solve_flows(w_, cp));
    if (solved.schedule) offer(std::move(*solved.schedule), "the constraint program");
    raise(solved.bound, {"constraint program", cp_sat_name()});
    return {};
  }

  const Problem& problem_;
  const FlowInstance& instance_;
  const FlowWorkload& w_;
  const PlannerOptions& options_;
  Incumbents<FlowSchedule> store_{0};  // in ticks
  std::map<std::string, double> counters_;
  Status status_;
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
