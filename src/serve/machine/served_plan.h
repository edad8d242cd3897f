// A plan file as it is served: the executor runs the plan, several requests at once where the plan has lanes
// or pipelines, and each request in flight is one of the data plane's devices.
#pragma once

#include <memory>

#include "heddle/base/cancel.h"
#include "heddle/base/progress.h"
#include "heddle/base/status.h"
#include "heddle/fleet/deployment.h"
#include "heddle/fleet/fleet.h"
#include "heddle/fleet/fleet_plan.h"
#include "heddle/serve/model_source.h"
#include "heddle/serve/opened_plan.h"
#include "local_model.h"
#include "plan_runner.h"

namespace heddle {

struct ServedPlan {
  std::shared_ptr<LocalModel> model;
  std::shared_ptr<PlanRunner> runner;
  Deployment deployment;         // a pipeline for each lane, a virtual device for each of its slots
  std::vector<int> slot_of;      // [virtual device]
  std::string cluster, planner;  // for people
};

struct ServedPlanOptions {
  int in_flight = 0;      // requests at once; 0: one, for throughput enough to keep each lane's devices busy
  double measure_s = .1;  // with all slots in use
  Deadline deadline;
  ProgressSink* progress = nullptr;
  const OpenedPlan* on_ranks = nullptr;  // the plan, opened by open_plan_on_ranks(); null: it runs here
};

// Reads source.plan, loads its model, compiles the segments, holds the outputs of each slot against the
// unsplit model's on random inputs, and measures what a request takes with all slots in use. Where devices
// are emulated nothing is computed, and the plan's times are taken. Errors: a model file that is gone or is
// another one than was planned for, devices that are not here, real devices on several hosts, outputs that
// differ, Executor::create()'s.
Result<ServedPlan> open_served_plan(const ModelSource& source, const ServedPlanOptions& options);

// One runner for each virtual device of the deployment.
std::vector<std::shared_ptr<DeviceRunner>> plan_runners(const ServedPlan& plan);

}  // namespace heddle
