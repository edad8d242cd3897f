// The plans that follow_load() chooses among: the fewest devices for rates in fixed steps, tried in the simulator.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "heddle/fleet/fleet_planner.h"
#include "heddle/fleet/follow.h"

namespace heddle {

inline constexpr double kRateStep = 1.02;  // of a model's rate from one level to the next
inline constexpr int kMostHeadRoom = 60;   // levels above the rates
inline constexpr size_t kTried = 20'000;   // requests of one trial

using Levels = std::vector<int>;  // [model] rate = kRateStep ^ level

Levels levels_of(std::span<const double> rates, double least_rate);
Levels raised(Levels levels, int by);
double rate_of(int level);
int64_t count_of(const Fleet& fleet, const FleetPlan& plan);  // devices of all classes

class FollowPlans {
 public:
  // `fleet` gets a cost of 1 for each device.
  FollowPlans(Fleet fleet, const FollowOptions& options);

  const Fleet& fleet() const { return fleet_; }
  // The fleet and the objective for these rates.
  Fleet fleet_at(const Levels& levels) const;
  FleetPlanOptions options_at(const Levels& levels) const;
  // The fewest devices for these rates; null: no plan serves them.
  Result<const FleetPlan*> fewest(const Levels& levels);
  // The plan of greatest rate on all devices for this mix.
  Result<FleetPlan> greatest(const Levels& mix) const;
  // Every model reaches the share. `lenient`: of few arrivals as many more may miss as chance makes likely, the
  // standard deviation of the allowed misses.
  Result<bool> reaches(const FleetPlan& plan, std::span<const Arrival> arrivals, double share,
                       bool lenient) const;
  Result<SimulationResult> play(const FleetPlan& plan, std::span<const Arrival> arrivals) const;
  // How many levels above `levels` the fewest devices must be planned for to reach the share, if more
  // devices never serve less. The search begins at `from`. nullopt: no plan does.
  Result<std::optional<int>> head_room(const Levels& levels, std::span<const Arrival> arrivals, double share,
                                       bool lenient, int from);

 private:
  Fleet fleet_;
  const FollowOptions& options_;
  std::map<Levels, std::optional<FleetPlan>> known_;
};

double worst_attainment(const SimulationResult& result);

}  // namespace heddle
