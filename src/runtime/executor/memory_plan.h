// Which tensors of a lane may share a buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "program.h"

namespace heddle {

struct MemoryPlan {
  // Per memory (ProgramInput::memory_of) and tensor of the graph; -1: it never leaves a segment there.
  std::vector<int32_t> buffer;
  size_t tensors = 0;
  std::vector<int64_t> buffer_bytes;
  std::vector<int32_t> buffer_memory;
  std::vector<DeviceId> buffer_device;  // whose memory pool holds it: the first tenant's producer
  int64_t total_bytes() const;
  int32_t at(TensorId tensor, int32_t memory = 0) const {
    return buffer[static_cast<size_t>(memory) * tensors + tensor.index()];
  }
};

// A buffer goes to a new tensor when every reader of the last one is done before the new one's producer
// starts, by the program's own edges; so no run-time check is needed and nothing is allocated while requests
// run. Model inputs and outputs have buffers of their own in the host's memory. O(tasks^2 / 64 + tensors *
// buffers); above 16,384 tasks nothing is shared.
MemoryPlan plan_memory(const Problem& problem, const Plan& plan, const Program& program,
                       const std::vector<SegmentPorts>& ports, const std::vector<int32_t>& memory_of = {});

}  // namespace heddle
