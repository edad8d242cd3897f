// Cost models: one interface, several sources; the most trusted source that knows a time wins.
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

// The graph's shapes, FLOPs, bytes and given times already include the batch: here it only selects
// measurements.
struct CostContext {
  int batch = 1;
  double share = 1;  // of the device (0.25 for a virtual GPU 1/4)
};

// Stateless after construction; safe to share between threads.
class CostModel {
 public:
  virtual ~CostModel() = default;
  // Time of a set of ops (ascending) as one segment; nullopt if this model does not know it.
  virtual std::optional<Cost> segment(const Graph& graph, std::span<const OpId> ops, const Device& device,
                                      const CostContext& context) const = 0;
};

// Times that come with the graph, by device class; times for "*" are divided by the device's speed. Answers
// if every op of the segment has one. A share below 1 divides the time and makes its origin "scaled".
std::unique_ptr<CostModel> given_cost_model();

// max(flops / peak, bytes / bandwidth) / speed + op_overhead, with efficiency factors per op type
// (docs/cost-model.md). Answers if the device's peak rates are known. Several ops: their sum, with one
// overhead.
std::unique_ptr<CostModel> roofline_cost_model();

class ProfileStore;
// The key of a segment in the profile store (Model::signature over the finest ops).
using SignatureFn = std::function<uint64_t(std::span<const OpId> finest_ops)>;
// Times measured on the device's target. Between two measured batch sizes linear in the batch, between two
// measured shares linear in 1/share; never extrapolated. Ops of a coarsened graph stand for their members. A
// store that fails to read counts as one without the record.
std::unique_ptr<CostModel> measured_cost_model(std::shared_ptr<const ProfileStore> store,
                                               SignatureFn signature);

// Times measured on `from`, scaled to other devices by the ratio of the roofline times of the same segment.
std::unique_ptr<CostModel> scaled_cost_model(std::shared_ptr<const CostModel> measured, Device from);

// The first model that answers.
std::unique_ptr<CostModel> first_of(std::vector<std::shared_ptr<const CostModel>> models);

// Every op's time on every device. Fails, naming op and device class, if no model knows an op on any device.
Result<CostTable> build_cost_table(const Graph& graph, const Cluster& cluster, const CostModel& model,
                                   const CostContext& context);

}  // namespace heddle
