// Fleets whose models have files: pipelines really run. Each part of a model runs on the devices that its class names
// here, or in workers.
#pragma once

#include <memory>

#include "heddle/base/cancel.h"
#include "heddle/base/progress.h"
#include "heddle/cluster/cluster.h"
#include "heddle/serve/fleet_server.h"
#include "heddle/serve/infer_service.h"

namespace heddle {

// Whether a model has a file, so that it runs on real devices.
bool has_model_files(const Fleet& fleet);

struct MachineFleetOptions {
  LivePlaneOptions plane;
  std::shared_ptr<const Cluster> cluster;  // whose devices classes name; null: this machine's, as it is found
  Deadline deadline;                       // of the first generation
  ProgressSink* progress = nullptr;
};

// Keeps what is loaded and compiled from one generation to the next.
class MachineFleet {
 public:
  static std::unique_ptr<MachineFleet> create(const MachineFleetOptions& options);
  virtual ~MachineFleet() = default;

  // Models without a file are served by timed devices, as timed_generation() does. Each pipeline with a file
  // is run once beside the whole model, on random rows: what its outputs differ by stands in
  // ServedModel::note. Errors: a plan that check_fleet_plan() refuses, files that are gone or have changed,
  // devices that are not here or share cores, rows of a batch that depend on each other, a cut through a
  // tensor without rows, outputs that differ from the whole model's. O(parts * batch sizes) compilations.
  //
  // With `workers`, each of them loads its parts of the files from its own host before this returns. Every
  // chain of devices that a request may take at its pools' same places is run once beside the whole model,
  // which this process loads for that alone. Where a device has no worker yet (see WaitFor) the
  // note says that its chain was not compared. Errors also: workers that refuse a part (the file is missing
  // there, or another one), open_workers()'s.
  virtual Result<std::unique_ptr<Generation>> generation(const Fleet& fleet, const FleetPlan& plan,
                                                         const WorkerWait* workers = nullptr) = 0;
};

}  // namespace heddle
