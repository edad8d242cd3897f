// Memory for a plan's tensors and parameters, allocated once before the first request.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "accelerators.h"
#include "heddle/plan/evaluator.h"
#include "heddle/runtime/backend.h"
#include "memory_plan.h"

namespace heddle {

// One segment's memory, and the bytes of its parameters there (0: nothing is copied).
struct ParameterNeed {
  int32_t memory = 0;  // ProgramInput::memory_of
  int64_t bytes = 0;
};

struct ParameterLayout {
  std::vector<int64_t> bytes;   // [memory] size of the block for all parameters in it
  std::vector<int64_t> offset;  // [segment] position in its memory's block; -1: no parameters
  // (a, b): the load of segment b overwrites the parameters of a, so it follows the run of a.
  std::vector<std::pair<int32_t, int32_t>> reuses;
};

// Permanent parameters lie side by side. A segment that drops its parameters occupies a range from its load
// to its run: the first gap that is wide enough. A later load may overwrite it, after that run by the plan's
// times and order, so waiting for the run costs the plan nothing. Gaps between ranges may stay empty, so a
// plan that just fits may need more memory here. O(segments^2) per memory.
ParameterLayout lay_out_parameters(const Plan& plan, const Timeline& timeline,
                                   const std::vector<ParameterNeed>& needs, int32_t memories);

// The addresses of a segment's parameters.
struct ParameterBlock {
  std::byte* host = nullptr;    // pinned; null once only the device has them
  std::byte* device = nullptr;  // the device's copy, or the mapped address
  int64_t bytes = 0;
};

class PlanBuffers {
 public:
  // Allocates buffers for one more slot; with accelerators, host memory is pinned. They must outlive this.
  Status add_slot(const MemoryPlan& plan, const Accelerators& accelerators);
  std::byte* address(size_t slot, const MemoryPlan& plan, TensorId tensor, int32_t memory) const;
  // Allocates one block of an accelerator's memory for parameters.
  Result<std::byte*> add_block(const Accelerator& accelerator, int64_t bytes);

 private:
  std::vector<std::vector<std::byte*>> slots_;  // [slot][buffer number of MemoryPlan]
  std::vector<std::shared_ptr<std::byte[]>> memory_;
};

// The parameter bytes of each compiled segment in the memory of its accelerator.
std::vector<ParameterNeed> parameter_needs(const Plan& plan, const Accelerators& accelerators,
                                           const std::vector<std::shared_ptr<CompiledSegment>>& compiled);

// Places every segment's parameters. Those with a load step in the plan are copied by each request, in the
// plan's order. Those read in place stay in mapped host memory. All others are copied here, before this
// returns. kInfeasible if a device has too little memory.
Result<std::vector<ParameterBlock>> place_parameters(
    const Plan& plan, const Accelerators& accelerators,
    const std::vector<std::shared_ptr<CompiledSegment>>& compiled, const ParameterLayout& layout,
    PlanBuffers& buffers);

}  // namespace heddle
