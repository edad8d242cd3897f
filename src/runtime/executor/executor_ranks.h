// Additions to an executor whose plan runs on several ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "accelerators.h"
#include "heddle/runtime/executor.h"
#include "memory_plan.h"
#include "plan_buffers.h"
#include "program.h"
#include "task_runner.h"

namespace heddle {

// The memory of the model's inputs and outputs in one slot.
struct SlotPorts {
  std::vector<TensorView> inputs, outputs;
};

// Combines flags over all ranks: afterwards a flag is true if it was true on any rank. Called by all ranks.
Status share_flags(RankGroup& group, std::vector<bool>& flags);

// Tells all ranks the border types of each other's devices; a rank has kF32 for those of others. Called by all ranks.
Status share_border_types(RankGroup& group, std::vector<DType>& of_device);

// Tells all ranks which devices are accelerators, and numbers those of other ranks. Returns [device] true if
// messages may be in its memory, i.e. its rank's transport reaches it. Called by all ranks.
Result<std::vector<bool>> share_accelerators(RankGroup& group, const Cluster& cluster,
                                             Accelerators& accelerators);

struct MessageMemory {
  const std::vector<std::shared_ptr<const Graph>>& graphs;  // per lane
  const std::vector<Program>& programs;                     // per lane
  const std::vector<int>& slot_lane;                        // per slot
  const std::vector<MemoryPlan>& memory_plans;              // per lane; empty if no device moves data
  const PlanBuffers& buffers;
};
// Sets the memory of each message: that of its tensor. Messages of emulated devices have no meaningful
// contents; they use one block, which is returned. Unsupported if the transport has too few tags.
Result<std::shared_ptr<std::byte[]>> set_messages(Transport& transport, const MessageMemory& memory,
                                                  TaskRunnerSetup& setup);

// For requests that come one by one: sets the messages that bring the model's inputs from rank 0 to each rank
// which reads them, and its outputs from the ranks that make them. `views` has the tensors' memory per slot.
struct RequestTensors {
  const Plan& plan;
  const std::vector<SegmentPorts>& ports;  // per segment
  std::span<const TensorId> inputs, outputs;
  const std::vector<int>& slot_lane;
  const std::vector<SlotPorts>& views;  // empty lists if no device moves data
};
void set_request_messages(const RankOptions& ranks, const RequestTensors& tensors, TaskRunnerSetup& setup);

}  // namespace heddle
