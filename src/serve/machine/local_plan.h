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
#include "heddle/fleet/simulator.h"
#include "heddle/serve/local_server.h"
#include "plan_runner.h"

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
  std::string reason;             // why this arrangement, for people; empty: there was nothing to choose
  double goodput_per_s = 0;       // of all models, by simulation; 0: not simulated
};

// Arranges the models on the devices. Candidates are, for each way to divide the cores:
//  - apart: each device is one model's, by the fleet planner, which gives the models the greatest least rate
//    over weight; where there are as many devices as models,
//  - shared: each device takes turns with all models; where there is more than one model,
//  - side by side, where no way has as many devices as models: all models on the way's devices at once, each
//    counted with the time that it takes when all are busy.
// kGoodput takes the candidate with the greatest goodput for Poisson arrivals in the proportion of the
// weights (goodput.h), the first of those within its precision; kRate the apart one with the greatest value,
// else the first side by side. The larger sets come first. The fleet and its plan describe the shared as side
// by side: what each model is sure of. `times` is [model]; a model without times for a target does not run
// there. Errors: a model whose SLO no device meets.
Result<LocalPlan> plan_locally(std::span<const std::shared_ptr<const LocalModel>> models,
                               const std::vector<std::vector<LocalTimes>>& times,
                               std::span<const DeviceSet> ways, const LocalServerOptions& options);

}  // namespace heddle
