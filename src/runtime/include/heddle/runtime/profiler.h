// Fills the profile store with what a plan or a planner needs to know.
#pragma once

#include <memory>
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

// Ops of `graph` (a model's or a coarsened one) as one segment on a device.
struct ProfileRequest {
  std::vector<OpId> ops;  // ascending
  DeviceId device;
};

struct ProfileOptions {
  Deadline deadline;
  ProgressSink* progress = nullptr;
  bool again = false;  // take also what is present
  int batch = 1;
  std::string what = "profiling";  // for the progress line
};

struct ProfileSummary {
  int requested = 0, present = 0, measured = 0, unsupported = 0;
  int failed = 0;  // compiled not, or the device refused; the first reason is kept
  std::string first_failure;
  bool complete = false;  // false: the deadline or the user stopped it; what was measured is in the store
};

// Every op of `graph` on every device of `cluster` that the measurer supports, one request per target
// (devices of one target share their profile), the whole graph first.
std::vector<ProfileRequest> profile_requests(const Graph& graph, const Cluster& cluster,
                                             const SegmentMeasurer& measurer);
// The segments of a plan, so that its prediction rests on what it runs.
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

// The ops of the model's own graph behind ops of a possibly coarsened graph, ascending.
std::vector<OpId> finest_ops(const Graph& graph, std::span<const OpId> ops);

}  // namespace heddle
