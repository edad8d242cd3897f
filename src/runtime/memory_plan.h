// Which tensors of a lane may share a buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "program.h"

namespace heddle {

struct MemoryPlan {
  std::vector<int32_t> buffer;  // per tensor of the graph; -1: never leaves a segment
  std::vector<int64_t> buffer_bytes;
  std::vector<DeviceId> buffer_device;  // whose memory pool holds it: the first tenant's producer
  int64_t total_bytes() const;
};

// A buffer goes to a new tensor when every reader of the last one is done before the new one's producer
// starts, by the program's own edges; so no run-time check is needed and nothing is allocated while requests
// run. Model inputs and outputs have buffers of their own. O(tasks^2 / 64 + tensors * buffers); above 16,384
// tasks nothing is shared.
MemoryPlan plan_memory(const Problem& problem, const Plan& plan, const Program& program,
                       const std::vector<SegmentPorts>& ports);

}  // namespace heddle
