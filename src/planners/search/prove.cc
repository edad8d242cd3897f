#include "prove.h"

#include <algorithm>

#include "bounds/cut_bound.h"
#include "bounds/lp_bound.h"
#include "cp_schedule.h"
#include "improve.h"

namespace heddle {
namespace {

// Of the time given: for the first search, at most for each of the bounds, and for the search after CP-SAT.
constexpr double kBefore = 0.25, kRelax = 0.05, kDestructive = 0.1, kCut = 0.1, kProgram = 0.15, kAfter = 0.1;
// CP-SAT's first attempt, of what is CP-SAT's; the second is without linear programs, which some schedules
// are solved faster without.
constexpr double kFirstAttempt = 0.4;

class Proving {
 public:
  Proving(const Problem& problem, const PlannerOptions& options, std::vector<Plan> starts,
          PlanStore& candidates)
      : problem_(problem),
        options_(options),
        starts_(std::move(starts)),
        candidates_(candidates),
        time_(options.deadline.seconds_left()) {}

  Result<PlannerOutput> run() {
    search(kBefore * time_);
    if (!candidates_.empty() && stop_ != StopReason::kOptimal && open()) prove();
    HEDDLE_ASSIGN_OR_RETURN(auto out, candidates_.output(stop_, options_.deadline));
    out.counters.merge(counters_);
    return out;
  }

 private:
  void search(double seconds) {
    PlannerOptions part = options_;
    part.deadline = options_.deadline.sooner(seconds);
    auto result = improve(problem_, part, starts_, "local-search", candidates_);
    stop_ = result.stop;
    for (const auto& [name, value] : result.counters) counters_[name] += value;
  }

  bool open() const { return candidates_.is_open() && !options_.deadline.should_stop(); }

  void prove() {
    const FlatProblem flat(problem_, problem_.usable_devices());
    const Relaxation relaxation = relax(problem_, options_.deadline.sooner(kRelax * time_));
    bound(flat, relaxation);
    const bool scheduled = open() && problem_.objective != Objective::kThroughput && cp_schedule_fits(flat) &&
                           schedule(flat, relaxation);
    if (!open()) return;
    starts_.assign(1, *candidates_.best());
    // What CP-SAT solved to the end leaves only contention and known segments to be searched.
    search(complete_ || !scheduled ? time_ : kAfter * time_);
  }

  void bound(const FlatProblem& flat, const Relaxation& relaxation) {
    const bool latency = problem_.objective != Objective::kThroughput;
    const Deadline brief = options_.deadline.sooner(kDestructive * time_);
    candidates_.prove(latency
                          ? destructive_bound(problem_, candidates_.bound(), candidates_.value_us(), brief)
                          : lower_bound(problem_, brief));
    if (!open()) return;
    candidates_.prove(
        cut_bound(flat, relaxation, candidates_.bound().us, options_.deadline.sooner(kCut * time_)));
    if (open())
      candidates_.prove(
          lp_bound(flat, relaxation, options_.deadline.sooner(kProgram * time_), candidates_.bound()));
  }

  bool schedule(const FlatProblem& flat, const Relaxation& relaxation) {
    const Deadline deadline = options_.deadline.sooner(options_.deadline.seconds_left() - kAfter * time_);
    if (!attempt(flat, relaxation, deadline.sooner(kFirstAttempt * deadline.seconds_left()), true))
      return false;
    if (!complete_ && open()) attempt(flat, relaxation, deadline, false);
    counters_["cp_sat_complete"] = complete_ ? 1 : 0;
    if (options_.deadline.expired()) stop_ = StopReason::kTimeLimit;
    return true;
  }

  bool attempt(const FlatProblem& flat, const Relaxation& relaxation, const Deadline& deadline, bool linear) {
    const auto hint = to_flat_plan(flat, assignment_of(problem_, *candidates_.best()));
    if (!hint) return false;
    CpScheduleOptions cp;
    cp.deadline = deadline;
    cp.threads = options_.threads;
    cp.seed = options_.seed;
    cp.linear_relaxation = linear;
    if (options_.progress != nullptr) {
      cp.on_progress = [this](double bound_us) {
        options_.progress->report({.what = "cp-sat",
                                   .done = 0,
                                   .total = 0,
                                   .best_us = candidates_.value_us(),
                                   .bound_us = std::max(candidates_.bound().us, bound_us)});
      };
    }
    const double before = candidates_.value_us();
    const auto result = solve_cp_schedule(flat, relaxation, *hint, cp);
    if (!result.ok()) return false;
    candidates_.offer(to_assignment(flat, result->plan), "cp-sat");
    complete_ = result->complete;
    candidates_.prove({result->bound_us, complete_ ? "CP-SAT, solved to the end" : "CP-SAT"});
    counters_["cp_sat_gain_us"] += before - candidates_.value_us();
    return true;
  }

  const Problem& problem_;
  const PlannerOptions& options_;
  std::vector<Plan> starts_;
  PlanStore& candidates_;
  const double time_;
  StopReason stop_ = StopReason::kFinished;
  bool complete_ = false;
  std::map<std::string, double> counters_;
};

}  // namespace

Result<PlannerOutput> search_and_prove(const Problem& problem, const PlannerOptions& options,
                                       std::vector<Plan> starts, PlanStore& candidates) {
  return Proving(problem, options, std::move(starts), candidates).run();
}

}  // namespace heddle
