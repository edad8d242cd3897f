// Keeping the best of several decisions, as the one evaluator sees them.
#pragma once

#include <optional>
#include <vector>

#include "heddle/plan/builder.h"
#include "heddle/plan/evaluator.h"
#include "heddle/planners/planner.h"

namespace heddle {

// A plan's objective; kImpossible when it needs more memory than there is. Fails when the plan is malformed.
class Judge {
 public:
  explicit Judge(const Problem& problem) : problem_(problem), evaluator_(problem) {}
  Result<double> value_us(const Plan& plan);

 private:
  const Problem& problem_;
  Evaluator evaluator_;
  Timeline timeline_;
};

class BestPlan {
 public:
  explicit BestPlan(const Problem& problem) : problem_(problem), judge_(problem) {}

  // Builds and judges; keeps it when it is better (ties: the first stays). The value, or kImpossible.
  double offer(const Assignment& assignment, const std::string& how);
  double offer(const std::vector<Lane>& lanes, const std::string& how);
  double offer(Plan plan, const std::string& how);

  bool found() const { return value_us_ < kImpossible; }
  double value_us() const { return value_us_; }
  const Plan& plan() const { return plan_; }
  const std::string& how() const { return how_; }
  // The best plan, or an error: why the last offer failed, or that nothing fits into memory.
  Result<PlannerOutput> output(StopReason stop = StopReason::kFinished) const;

 private:
  const Problem& problem_;
  Judge judge_;
  Plan plan_;
  double value_us_ = kImpossible;
  std::string how_;
  std::optional<Error> last_error_;
};

// Every op in one segment on one device.
Assignment all_on(const Problem& problem, DeviceId device, bool one_segment);

}  // namespace heddle
