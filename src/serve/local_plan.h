// A plan for serving whole models on this machine: its core sets (and what else OpenVINO finds) as a fleet.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/progress.h"
#include "heddle/fleet/deployment.h"
#include "heddle/fleet/fleet_plan.h"
#include "local_runner.h"

namespace heddle {

// Devices that may work at the same time: no core is in two of them.
using DeviceSet = std::vector<Device>;

// The ways to divide the machine's cores among the cluster's core sets, each core in one, ways that differ
// only in which cores alike sets have counted once; the largest sets first, at most `most` ways. Devices
// without cores (GPU, NPU) are in all of them.
std::vector<DeviceSet> ways_to_divide(std::span<const Device> devices, size_t most);

// Times of a model on a target (Device::target), [batch - 1], in us.
struct LocalTimes {
  std::string target;
  std::vector<double> us;
};

struct LocalPlan {
  Fleet fleet;
  FleetPlan plan;
  Deployment deployment;
  std::vector<Device> device_of;  // [virtual device]
  bool shared = false;            // there are fewer devices than models: they take turns on all cores
};

// The way to divide and the plan with the greatest least rate over weight; of equal ones that with the larger
// sets. Where every way has fewer devices than there are models, they share all cores, each counted with the
// time that it takes when all are busy. `times` is [model]; a model without times for a target does not run
// there. Errors: a model whose SLO no device meets.
Result<LocalPlan> plan_locally(std::span<const std::shared_ptr<const LocalModel>> models,
                               const std::vector<std::vector<LocalTimes>>& times,
                               std::span<const DeviceSet> ways, const Deadline& deadline);

}  // namespace heddle
