// Decides which tensors of a lane share a buffer, and whether a plan fits into its devices' memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/plan/evaluator.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/executor.h"
#include "program.h"

namespace heddle {

struct PlannedBuffer {
  int64_t bytes = 0;
  int32_t memory = 0;
  DeviceId device;  // its pool counts the buffer: the device of the first producer
};

struct MemoryPlan {
  // [memory (ProgramInput::memory_of)][tensor]; -1: the tensor never leaves a segment in that memory.
  std::vector<int32_t> buffer;
  size_t tensors = 0;
  std::vector<PlannedBuffer> buffers;
  int64_t total_bytes() const;
  int32_t at(TensorId tensor, int32_t memory = 0) const {
    return buffer[static_cast<size_t>(memory) * tensors + tensor.index()];
  }
};

// A tensor may reuse a buffer if all readers of the previous tensor finish before the new tensor's producer
// starts. The program's edges guarantee this order, so no run-time check is needed, and requests allocate
// nothing. Model inputs and outputs have their own buffers in host memory. `graph` has the tensors' types in memory.
// O(tasks^2 / 64 + tensors * buffers); above 16,384 tasks no buffer is shared.
MemoryPlan plan_memory(const Graph& graph, const Plan& plan, const Program& program,
                       const std::vector<SegmentPorts>& ports, const std::vector<int32_t>& memory_of);

// Before anything is opened or loaded: infeasible where the evaluated peak of a device whose backend computes
// is over its memory; the error names the device and both sizes.
Status check_fit(const Problem& problem, const Plan& plan, const Timeline& timeline);
// The same of what was allocated, for the device's pool.
Status check_use(const Cluster& cluster, DeviceId device, std::span<const PoolUse> pools);

}  // namespace heddle
