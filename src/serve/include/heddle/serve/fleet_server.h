// A fleet's plan served by devices that are not here: each takes its planned time and computes nothing. Server,
// queues, decisions and links' bookings are the real ones.
#pragma once

#include <memory>

#include "heddle/base/cancel.h"
#include "heddle/serve/infer_service.h"
#include "heddle/serve/worker_pool.h"

namespace heddle {

// Whose devices a plan gets, and how long it waits for them. With kAll a device that no worker has by then is an error,
// and so is a `cancel` that ends the waiting but for kThere. The pool outlives the generation.
struct WorkerWait {
  WorkerPool& pool;
  double seconds = 30;
  WaitFor what = WaitFor::kAll;
  CancelToken cancel;
};

// `clock` stretches all times (SLOs too): 2 serves the fleet at half its speed, for machines that are too
// small for its load. `timed_by`: the same fleet with the times that the devices really take; null: those
// that are planned with. `workers`: the devices are those of workers, which load their partitions before this
// returns; null: they are timed here. Errors: a plan that check_fleet_plan() refuses, deploy()'s, a clock out
// of [0.01, 100], open_workers()'s.
Result<std::unique_ptr<Generation>> timed_generation(const Fleet& fleet, const FleetPlan& plan,
                                                     const LivePlaneOptions& options, double clock = 1,
                                                     const Fleet* timed_by = nullptr,
                                                     const WorkerWait* workers = nullptr);

// Has workers load the plan's partitions. Errors, with kAll: devices without a worker, and parts that a
// worker refuses. kCancelled.
Result<std::shared_ptr<RemoteDevices>> open_workers(const Fleet& fleet, const Deployment& deployment,
                                                    const WorkerWait& wait);

}  // namespace heddle
