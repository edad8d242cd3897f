// Decides which tensors of a lane share a buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "program.h"

namespace heddle {

struct MemoryPlan {
  // [memory (ProgramInput::memory_of)][tensor]; -1: the tensor never leaves a segment in that memory.
  std::vector<int32_t> buffer;
  size_t tensors = 0;
  std::vector<int64_t> buffer_bytes;
  std::vector<int32_t> buffer_memory;
  std::vector<DeviceId> buffer_device;  // its pool counts the buffer: the device of the first producer
  int64_t total_bytes() const;
  int32_t at(TensorId tensor, int32_t memory = 0) const {
    return buffer[static_cast<size_t>(memory) * tensors + tensor.index()];
  }
};

// A tensor may reuse a buffer if all readers of the previous tensor finish before the new tensor's producer
// starts. The program's edges guarantee this order, so no run-time check is needed, and requests allocate
// nothing. Model inputs and outputs have their own buffers in host memory. O(tasks^2 / 64 + tensors *
// buffers); above 16,384 tasks no buffer is shared.
MemoryPlan plan_memory(const Problem& problem, const Plan& plan, const Program& program,
                       const std::vector<SegmentPorts>& ports, const std::vector<int32_t>& memory_of = {});

}  // namespace heddle
