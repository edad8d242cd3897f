#include "follow_plans.h"

#include <algorithm>
#include <cmath>

namespace heddle {

Levels levels_of(std::span<const double> rates, double least_rate) {
  Levels levels;
  for (const double r : rates)
    levels.push_back(
        static_cast<int>(std::ceil(std::log(std::max(r, least_rate)) / std::log(kRateStep) - 1e-9)));
  return levels;
}

Levels raised(Levels levels, int by) {
  for (int& level : levels) level += by;
  return levels;
}

double rate_of(int level) { return std::pow(kRateStep, level); }

int64_t count_of(const Fleet& fleet, const FleetPlan& plan) {
  int64_t sum = 0;
  for (const int64_t n : devices_used(fleet, plan)) sum += n;
  return sum;
}

double worst_attainment(const SimulationResult& result) {
  double worst = 1;
  for (const auto& m : result.models) worst = std::min(worst, m.requests.attainment());
  return worst;
}

FollowPlans::FollowPlans(Fleet fleet, const FollowOptions& options)
    : fleet_(std::move(fleet)), options_(options) {
  for (auto& c : fleet_.classes) c.cost_per_hour = 1;
}

Fleet FollowPlans::fleet_at(const Levels& levels) const {
  Fleet fleet = fleet_;
  for (size_t m = 0; m < levels.size(); ++m) fleet.models[m].weight = rate_of(levels[m]);
  return fleet;
}

FleetPlanOptions FollowPlans::options_at(const Levels& levels) const {
  FleetPlanOptions o;
  o.objective = FleetObjective::kCost;
  for (const int level : levels) o.load_per_s += rate_of(level);
  o.deadline = Deadline::never(options_.simulation.cancel);
  return o;
}

Result<const FleetPlan*> FollowPlans::fewest(const Levels& levels) {
  auto found = known_.find(levels);
  if (found == known_.end()) {
    auto plan = plan_fleet(fleet_at(levels), "auto", options_at(levels));
    if (!plan.ok() && plan.error().code() != Code::kInfeasible) return std::move(plan).error();
    found = known_.emplace(levels, plan.ok() ? std::optional(std::move(*plan)) : std::nullopt).first;
  }
  return found->second ? &*found->second : nullptr;
}

Result<FleetPlan> FollowPlans::greatest(const Levels& mix) const {
  FleetPlanOptions o;
  o.deadline = Deadline::never(options_.simulation.cancel);
  return plan_fleet(mix.empty() ? fleet_ : fleet_at(mix), "auto", o);
}

Result<SimulationResult> FollowPlans::play(const FleetPlan& plan, std::span<const Arrival> arrivals) const {
  HEDDLE_ASSIGN_OR_RETURN(const auto deployment, deploy(fleet_, plan));
  SimulationOptions o;
  o.scheduler = options_.simulation.scheduler;
  o.dispatch = options_.simulation.dispatch;
  o.seed = options_.simulation.seed;
  o.cancel = options_.simulation.cancel;
  return simulate(deployment, arrivals, o);
}

Result<bool> FollowPlans::reaches(const FleetPlan& plan, std::span<const Arrival> arrivals, double share,
                                  bool lenient) const {
  if (arrivals.empty()) return true;
  HEDDLE_ASSIGN_OR_RETURN(const auto result, play(plan, arrivals));
  for (const auto& m : result.models) {
    const auto all = static_cast<double>(m.requests.arrivals);
    const double allowed = all * (1 - share);
    if (all - static_cast<double>(m.requests.in_time) > allowed + (lenient ? std::sqrt(allowed) : 0))
      return false;
  }
  return true;
}

Result<std::optional<int>> FollowPlans::head_room(const Levels& levels, std::span<const Arrival> arrivals,
                                                  double share, bool lenient, int from) {
  enum class Trial { kReached, kMissed, kNoPlan };
  const auto tried = [&](int by) -> Result<Trial> {
    HEDDLE_ASSIGN_OR_RETURN(const auto* plan, fewest(raised(levels, by)));
    if (plan == nullptr) return Trial::kNoPlan;
    HEDDLE_ASSIGN_OR_RETURN(const bool enough, reaches(*plan, arrivals, share, lenient));
    return enough ? Trial::kReached : Trial::kMissed;
  };
  // Widens the steps until one end misses and the other does not, then halves.
  int missed = -1, other = -1;  // `other` reaches the share or has no plan
  bool reached = false;
  for (int by = std::clamp(from, 0, kMostHeadRoom), step = 1; missed < 0 || other < 0; step *= 2) {
    HEDDLE_ASSIGN_OR_RETURN(const Trial trial, tried(by));
    if (trial == Trial::kMissed) {
      if (by == kMostHeadRoom) return std::optional<int>();
      missed = by;
      by = std::min(kMostHeadRoom, by + step);
    } else {
      other = by;
      reached = trial == Trial::kReached;
      if (by == 0) break;
      by = std::max(0, by - step);
    }
  }
  while (other > missed + 1 && missed >= 0) {
    const int middle = missed + (other - missed) / 2;
    HEDDLE_ASSIGN_OR_RETURN(const Trial trial, tried(middle));
    if (trial == Trial::kMissed) {
      missed = middle;
    } else {
      other = middle;
      reached = trial == Trial::kReached;
    }
  }
  return reached ? std::optional(other) : std::optional<int>();
}

}  // namespace heddle
