// Cost models: one interface, several sources, combined by asking the most trusted first.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/cost/cost.h"
#include "heddle/graph/graph.h"

namespace heddle {

// The batch is already in the graph's shapes, FLOPs, bytes and given times: here it only selects
// measurements.
struct CostContext {
  int batch = 1;
  double share = 1;  // of the device (a virtual GPU 1/4 has 0.25)
};

// Stateless after construction; safe to share between threads.
class CostModel {
 public:
  virtual ~CostModel() = default;
  // Time of a set of ops (ascending) as one segment; nullopt when this model does not know.
  virtual std::optional<Cost> segment(const Graph& graph, std::span<const OpId> ops, const Device& device,
                                      const CostContext& context) const = 0;
};

// Times that come with the graph, by device class (or "*", divided by the device's speed). Answers when every
// op of the segment has one. At a share below 1 the time is divided by the share and its origin is "scaled".
std::unique_ptr<CostModel> given_cost_model();

// max(flops / peak, bytes / bandwidth) / speed + op_overhead, with per-type efficiency factors documented in
// docs/cost-model.md. Answers whenever the device's peak rates are known. Several ops: their sum with one
// overhead.
std::unique_ptr<CostModel> roofline_cost_model();

class ProfileStore;
// The key of a segment in the profile store (Model::signature over the finest ops).
using SignatureFn = std::function<uint64_t(std::span<const OpId> finest_ops)>;
// Measured on the device's target; between two measured batch sizes linear in the batch, between two measured
// shares linear in 1/share, never beyond what was measured. Ops of a coarsened graph stand for their members.
// A store that fails while it is read counts as one that does not know.
std::unique_ptr<CostModel> measured_cost_model(std::shared_ptr<const ProfileStore> store,
                                               SignatureFn signature);

// A table measured on `from`, scaled to other devices by the ratio of their roofline times for the same
// segment.
std::unique_ptr<CostModel> scaled_cost_model(std::shared_ptr<const CostModel> measured, Device from);

// The first model that answers.
std::unique_ptr<CostModel> first_of(std::vector<std::shared_ptr<const CostModel>> models);

// Every op on every device. Fails, naming op and device class, when no model knows an op on any device.
Result<CostTable> build_cost_table(const Graph& graph, const Cluster& cluster, const CostModel& model,
                                   const CostContext& context);

}  // namespace heddle
