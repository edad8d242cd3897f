// The plans that a planner has tried: each is built and timed by plan/, and the best feasible one is kept.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "heddle/plan/builder.h"
#include "heddle/plan/evaluator.h"
#include "heddle/planners/planner.h"
#include "lists/list_schedule.h"

namespace heddle {

// A plan this close to its bound is optimal: solvers' bounds are rounded down by up to this.
inline bool meets_bound(double value_us, double bound_us) { return value_us <= bound_us * (1 + 2e-6); }

class Candidates {
 public:
  explicit Candidates(const Problem& problem);

  // True when it is feasible and better than all before. `who` names it in detail().
  bool offer(const Assignment& assignment, const std::string& who);
  bool offer(const std::vector<Lane>& lanes, const std::string& who);
  bool offer(Plan plan, const std::string& who);

  bool empty() const { return !plan_.has_value(); }
  double value_us() const { return value_us_; }
  const Plan& plan() const { return *plan_; }
  const std::string& winner() const { return winner_; }
  // Bytes above the limit of each pool in the plan offered last; all 0 when it fits.
  const Reserve& excess() const { return excess_; }
  bool last_fits() const;
  bool any_too_large() const { return any_too_large_; }
  int offered() const { return offered_; }

  // A bound that was proven on the way, for the trajectory.
  void note_bound(double bound_us);

  // The best plan; kInfeasible with the reason when there is none, kCancelled when `deadline` was cancelled
  // before.
  Result<PlannerOutput> output(StopReason stop, const Deadline& deadline);

 private:
  Error no_plan() const;
  void note();

  const Problem& problem_;
  const bool limited_;
  Evaluator evaluator_;
  Timeline timeline_;
  std::optional<Plan> plan_;
  double value_us_ = kImpossible;
  std::string winner_;
  Reserve excess_;
  bool any_too_large_ = false;
  int offered_ = 0;
  std::string last_error_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double bound_us_ = 0;
  std::vector<Incumbent> trajectory_;
};

}  // namespace heddle
