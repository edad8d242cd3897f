// Fills the profile store with the times that plans and planners need, and the costs of what cannot run.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/progress.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/cost/cost_model.h"
#include "heddle/cost/measurer.h"
#include "heddle/cost/profile_store.h"
#include "heddle/graph/graph.h"
#include "heddle/plan/plan.h"

namespace heddle {

// Ops of `graph` (a model's or a coarsened one), as one segment on a device.
struct ProfileRequest {
  std::vector<OpId> ops;  // ascending
  DeviceId device;
};

struct ProfileOptions {
  Deadline deadline;
  ProgressSink* progress = nullptr;
  bool again = false;  // measure again what the store already has
  int batch = 1;
  std::string what = "profiling";  // for the progress line
};

struct ProfileSummary {
  int requested = 0, present = 0, measured = 0, unsupported = 0;
  int failed = 0;  // did not compile, or the device refused; first_failure keeps the first reason
  std::string first_failure;
  bool complete = false;  // false: stopped by the deadline or the user; the store has what was measured
};

// Every op of `graph` on every device of `cluster` that the measurer supports, once per target (devices of
// one target share their profile). The whole graph comes first.
std::vector<ProfileRequest> profile_requests(const Graph& graph, const Cluster& cluster,
                                             const SegmentMeasurer& measurer);
// The segments of a plan, so that its prediction rests on measurements of exactly these.
std::vector<ProfileRequest> profile_requests(const Plan& plan);

// Under which a measurement is kept; device.target is there.
ProfileKey profile_key(uint64_t signature, const Device& device, int batch,
                       const MeasureConditions& conditions = {});

// Skips what the store has under the same key, the measurer's conditions included, measures the rest in order
// and puts each at once. Fails only when the store does.
Result<ProfileSummary> profile(const Graph& graph, const Cluster& cluster,
                               std::span<const ProfileRequest> requests, const SignatureFn& signature,
                               SegmentMeasurer& measurer, ProfileStore& store,
                               const ProfileOptions& options = {});

// The ops of the model's own graph that make up these ops of a possibly coarsened graph, ascending.
std::vector<OpId> finest_ops(const Graph& graph, std::span<const OpId> ops);

class Model;
// Asks each device's backend about every op of the model. Each unit with a refused op gets the cost
// kImpossible on that device. `units` is the model's graph or a coarsening of it. Fails (unsupported) if no
// device can run some unit; the error names the unit and a backend's reason. Devices whose backend is not in
// this program are skipped. O(ops * backends + units * devices).
Status forbid_refused(const Model& model, const Graph& units, const Cluster& cluster,
                      std::span<const DeviceId> devices, CostTable& costs);

}  // namespace heddle
