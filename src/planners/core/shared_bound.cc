#include "heddle/planners/shared_bound.h"

#include <fmt/format.h>

#include "heddle/base/gap.h"
#include "heddle/base/hash.h"
#include "heddle/base/json.h"
#include "heddle/plan/plan_file.h"

namespace heddle {

Status SharedBound::add(const PlanResult& result) {
  if (result.bound.us > bound_.us) {
    bound_ = result.bound;
    bound_of_ = result.planner;
  }
  if (!least_ || result.value_us < least_->value_us) least_ = result;
  if (bound_.us <= least_->value_us * (1 + kSolverTolerance)) return {};
  return below_bound(*problem_, *least_, bound_, bound_of_);
}

Error below_bound(const Problem& problem, const PlanResult& plan, const Bound& bound,
                  const std::string& bound_of) {
  const PlanFile file{.problem = problem,
                      .plan = plan.plan,
                      .predicted = plan.timeline,
                      .bound = bound,
                      .planner = plan.planner};
  Hasher hash;
  hash.text(plan_to_json(file).dump());
  const std::string path = "below-bound-" + hex64(hash.value()) + ".json";
  const Status written = write_plan_file(path, file);
  return {
      Code::kInternal,
      fmt::format("planner {} returned a plan of {:.9g} us, below the bound of {:.9g} us ({}){}; one of the "
                  "two is wrong; {}",
                  plan.planner, plan.value_us, bound.us, bound.proof.text(),
                  bound_of == plan.planner ? "" : " that planner " + bound_of + " gives",
                  written.ok() ? "please report it with " + path + ", which has problem, plan and bound"
                               : "the plan could not be kept: " + written.error().to_string())};
}

}  // namespace heddle
