// The plans that planners have tried: each is built and timed by plan/, and the best feasible one is kept.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "heddle/plan/bounds.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/evaluator.h"
#include "heddle/planners/planner.h"
#include "incumbents.h"
#include "lists/list_schedule.h"

namespace heddle {

// A plan this close to its bound is optimal: solvers' bounds are rounded down by up to this.
inline constexpr double kPlanMeetsBound = 2e-6;

// Thread-safe. Cancels `closed` when plan and bound meet.
class PlanStore {
 public:
  explicit PlanStore(const Problem& problem, CancelToken closed = {});

  // True when it is feasible and better than all before. `who` names it in detail().
  bool offer(const Assignment& assignment, const std::string& who);
  bool offer(const std::vector<Lane>& lanes, const std::string& who);
  bool offer(Plan plan, const std::string& who);
  // The output has this bound unless a higher one follows.
  void prove(const Bound& bound);

  bool empty() const { return best() == nullptr; }
  double value_us() const { return plans_.value(); }  // infinite while there is no plan
  Bound bound() const { return {plans_.bound(), plans_.proof()}; }
  bool is_open() const { return plans_.is_open(); }  // whether something is left to gain
  std::string winner() const { return plans_.winner(); }
  std::shared_ptr<const Plan> best() const { return plans_.best(); }  // null while there is none
  // The best plan of one lane, which local searches improve; null while there is none.
  std::shared_ptr<const Plan> best_of_one_lane() const;
  // Bytes above the limit of each pool in the plan offered last; all 0 when it fits. For stores that one
  // thread offers plans to.
  Reserve excess() const;
  bool last_fits() const;
  int offered() const;

  // The best plan, once all workers have ended. kInfeasible with the reason when there is none, which names the
  // deadline if that passed before any plan was tried; kCancelled when `deadline` was cancelled before.
  Result<PlannerOutput> output(StopReason stop, const Deadline& deadline) const;

 private:
  Error no_plan(bool late) const;

  const Problem& problem_;
  const bool limited_;
  Incumbents<Plan> plans_;
  mutable std::mutex mutex_;  // of all below
  Evaluator evaluator_;
  Timeline timeline_;
  std::shared_ptr<const Plan> one_lane_;
  Reserve excess_;
  bool any_too_large_ = false;
  int offered_ = 0;
  std::string last_error_;
};

}  // namespace heddle
