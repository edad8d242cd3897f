#include "heddle/session/robust.h"

#include <fmt/format.h>

#include <set>

#include "heddle/planners/planner.h"
#include "heddle/planners/shared_bound.h"
#include "session_parts.h"

namespace heddle {
namespace {

class RobustPlanning {
 public:
  RobustPlanning(Session& session, const PlannerEntry& entry, const SearchSettings& search, double share,
                 const Control& control)
      : session_(session),
        entry_(entry),
        options_(planner_options(search, control)),
        control_(control),
        share_(share) {}

  Result<RobustPlan> run(PlanResult fastest) {
    best_.share = share_;
    best_.result = std::move(fastest);
    const Plan first = best_.result.plan;
    HEDDLE_RETURN_IF_ERROR(evaluate_best());
    while (planned_for_.insert(best_.worst.device).second && !options_.deadline.should_stop())
      HEDDLE_RETURN_IF_ERROR(plan_for(best_.worst.device));
    HEDDLE_ASSIGN_OR_RETURN(best_.of_fastest, worst_loss(session_.problem, first, share_));
    if (session_.may_measure) best_.bound = bound_now();
    HEDDLE_RETURN_IF_ERROR(hold_bound());
    return std::move(best_);
  }

 private:
  // Plans for the device's loss, and keeps the plan if its worst value is lower.
  Status plan_for(DeviceId device) {
    PlannerOptions options = options_;
    options.start = &best_.result.plan;
    // Half of what is left, since the next device may be worse.
    options.deadline = options_.deadline.sooner(options_.deadline.seconds_left() / 2);
    auto found = run_planner(entry_, without(device), options);
    if (!found.ok() && found.error().code() == Code::kInternal) return found.error();
    if (!found.ok()) return {};  // there was no time for a plan
    best_.result.planning_s += found->planning_s;
    if (found->bound.us > best_.bound.us) {
      best_.bound = found->bound;
      bound_device_ = device;
    }
    HEDDLE_ASSIGN_OR_RETURN(found->plan, with_united_segments(session_.problem, found->plan));
    HEDDLE_ASSIGN_OR_RETURN(const bool holds, measured(found->plan));
    if (!holds) return {};
    HEDDLE_ASSIGN_OR_RETURN(const WorstLoss worst, worst_loss(session_.problem, found->plan, share_));
    if (worst.value_us >= best_.worst.value_us * (1 - 1e-9)) return {};
    found->detail = fmt::format("planned for {} at {:.0f} % of its speed",
                                session_.problem.cluster->device(device).name, 100 * (1 - share_));
    found->planning_s = best_.result.planning_s;
    found->bound = best_.result.bound;
    best_.result = std::move(*found);
    return evaluate_best();
  }

  Problem without(DeviceId device) const {
    Problem slowed = session_.problem;
    slowed.costs = costs_without(session_.problem, device, share_);
    return slowed;
  }

  // Times the best plan under the present costs, which change when segments are measured.
  Status evaluate_best() {
    std::optional<Bound> bound;
    if (!session_.may_measure) bound = best_.result.bound;
    HEDDLE_ASSIGN_OR_RETURN(best_.result, verified_again(session_.problem, std::move(best_.result), bound));
    HEDDLE_ASSIGN_OR_RETURN(best_.worst, worst_loss(session_.problem, best_.result.plan, share_));
    return {};
  }

  // Measures the plan's segments. False if the plan does not keep to the error budget.
  Result<bool> measured(const Plan& plan) {
    const auto wanted = unknown_segments(session_.problem, plan);
    HEDDLE_RETURN_IF_ERROR(
        measure_segments(session_, wanted, kSegmentSeconds, "measuring the plan's segments", control_));
    if (!wanted.empty()) HEDDLE_RETURN_IF_ERROR(evaluate_best());
    if (!session_.samples) return true;
    const auto before = session_.problem.precision;
    HEDDLE_RETURN_IF_ERROR(measure_error(session_, plan, control_));
    const bool holds = session_.problem.precision->holds();
    if (!holds) session_.problem.precision = before;
    return holds;
  }

  // Bounds that were proven while planning may be above plans whose segments were measured since.
  Bound bound_now() {
    Bound best;
    for (const DeviceId device : planned_for_) {
      const Bound bound = lower_bound(without(device));
      if (bound.us <= best.us) continue;
      best = bound;
      bound_device_ = device;
    }
    return best;
  }

  // The plan keeps the bound where that was proven.
  Status hold_bound() const {
    if (!bound_device_.valid()) return {};
    const Problem slowed = without(bound_device_);
    PlanResult result = best_.result;
    HEDDLE_ASSIGN_OR_RETURN(result.timeline, evaluate(slowed, result.plan));
    result.value_us = objective_us(slowed, result.timeline);
    result.bound = {};
    SharedBound shared(slowed);
    HEDDLE_RETURN_IF_ERROR(shared.add(result));
    result.bound = best_.bound;
    return shared.add(result);
  }

  Session& session_;
  const PlannerEntry& entry_;
  const PlannerOptions options_;
  const Control& control_;
  const double share_;
  RobustPlan best_;
  std::set<DeviceId> planned_for_;
  DeviceId bound_device_;  // the device whose loss has the bound
};

}  // namespace

Result<RobustPlan> make_robust_plan(Session& session, const std::string& planner,
                                    const SearchSettings& search, double share, const Control& control) {
  if (!(share > 0 && share <= kMostRobustShare))
    return invalid_input(
        fmt::format("a device can lose more than 0 and at most {:.0f} % of its speed, not {} %",
                    100 * kMostRobustShare, 100 * share));
  SearchSettings half = search;
  half.time_limit_s /= 2;
  HEDDLE_ASSIGN_OR_RETURN(auto fastest, make_plan(session, planner, half, control));
  HEDDLE_ASSIGN_OR_RETURN(const auto* entry, planner_named(planner));
  return RobustPlanning(session, *entry, half, share, control).run(std::move(fastest));
}

}  // namespace heddle
