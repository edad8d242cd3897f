// How a plan's predicted time grows if its hardware is slower for a while than when it was measured.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

// The same plan, timed by the evaluator with slower hardware.
struct SlowedPlan {
  std::string what;     // the device or core whose loss costs most
  double value_us = 0;  // as objective_us()
};

struct Robustness {
  struct Loss {
    double share = 0;  // of its speed that a device loses: all its work takes 1/(1 - share) as long
    SlowedPlan worst;
  };
  double value_us = 0;         // at full speed
  std::array<Loss, 3> losses;  // of 10, 25 and 50 %
  // Devices that are sets of cores: another process keeps one core busy. Devices are then slower as measured
  // (CostTable::core_taken). Without a measurement a device of n cores loses 1/n of its speed, and one with that core
  // alone half of it. Empty if the plan uses no such device.
  struct CoreTaken {
    std::string what;  // the core
    double value_us = 0;
    bool measured = false;  // on all devices of the plan that have the core
  };
  std::optional<CoreTaken> core;
};

// Each device that the plan uses or that shares a core with one of them, and each of the cores used, in turn. Engines
// and precisions of one device slow down together, and so do sets of cores that share one. Fails as evaluate() does.
// O((devices + cores used) * evaluation).
Result<Robustness> robustness(const Problem& problem, const Plan& plan);

// The problem's costs if a device loses that share of its speed, from 0 up to below 1. Its variants and the sets of
// cores that share a core with it lose as much.
std::shared_ptr<const CostTable> costs_without(const Problem& problem, DeviceId device, double share);
// The device whose loss of that share costs the plan most, and the plan's value then. Where several cost as much, one
// that the plan uses. O(devices * evaluation).
struct WorstLoss {
  DeviceId device;
  double value_us = 0;  // as objective_us()
};
Result<WorstLoss> worst_loss(const Problem& problem, const Plan& plan, double share);

}  // namespace heddle
