#include "plan_store.h"

namespace heddle {
namespace {

// Solvers stop within a tolerance. What is further above the plan is a mistake, which the door reports.
constexpr double kTolerance = 1e-5;

}  // namespace

bool PlanStore::is_open_locked() const {
  return candidates_.empty() || !meets_bound(candidates_.value_us(), bound_.us);
}

bool PlanStore::offer(Plan plan, const std::string& who) {
  const std::lock_guard lock(mutex_);
  if (plan.lane_shares.size() > 1 && !candidates_.empty() && candidates_.plan().lane_shares.size() == 1)
    one_lane_ = candidates_.plan();
  const bool one_lane = plan.lane_shares.size() == 1;
  const bool better = candidates_.offer(std::move(plan), who);
  if (better && one_lane) one_lane_.reset();
  if (!is_open_locked()) closed_.cancel();
  return better;
}

bool PlanStore::offer(const Assignment& assignment, const std::string& who) {
  auto plan = build_plan(problem_, assignment);
  return plan.ok() && offer(std::move(*plan), who);
}

void PlanStore::offer_bound(const Bound& bound) {
  const std::lock_guard lock(mutex_);
  if (bound.us <= bound_.us) return;
  bound_ = bound;
  candidates_.note_bound(bound.us);
  if (!is_open_locked()) closed_.cancel();
}

bool PlanStore::empty() const {
  const std::lock_guard lock(mutex_);
  return candidates_.empty();
}

double PlanStore::value_us() const {
  const std::lock_guard lock(mutex_);
  return candidates_.value_us();
}

Bound PlanStore::bound() const {
  const std::lock_guard lock(mutex_);
  return bound_;
}

bool PlanStore::is_open() const {
  const std::lock_guard lock(mutex_);
  return is_open_locked();
}

std::string PlanStore::winner() const {
  const std::lock_guard lock(mutex_);
  return candidates_.winner();
}

std::optional<Plan> PlanStore::best() const {
  const std::lock_guard lock(mutex_);
  return candidates_.empty() ? std::nullopt : std::optional<Plan>(candidates_.plan());
}

std::optional<Plan> PlanStore::best_of_one_lane() const {
  const std::lock_guard lock(mutex_);
  if (one_lane_ || candidates_.empty()) return one_lane_;
  return candidates_.plan().lane_shares.size() == 1 ? std::optional<Plan>(candidates_.plan()) : std::nullopt;
}

Result<PlannerOutput> PlanStore::output(StopReason stop, const Deadline& deadline) {
  const std::lock_guard lock(mutex_);
  const double value = candidates_.value_us();
  HEDDLE_ASSIGN_OR_RETURN(auto out, candidates_.output(stop, deadline));
  if (bound_.us > value && bound_.us < value * (1 + kTolerance)) bound_.us = value;
  if (bound_.us > 0) out.bound = bound_;
  return out;
}

}  // namespace heddle
