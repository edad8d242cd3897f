// The memory of a plan's tensors and parameters: planned, and allocated once before the first request.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "accelerators.h"
#include "heddle/runtime/backend.h"
#include "memory_plan.h"
#include "parameter_layout.h"

namespace heddle {

// Where a segment's parameters are.
struct ParameterBlock {
  std::byte* host = nullptr;    // pinned; null once they are the device's alone
  std::byte* device = nullptr;  // a copy there, or the mapped address
  int64_t bytes = 0;
};

class PlanBuffers {
 public:
  // One request in flight more. `accelerators` outlives this. Host memory is pinned where there are any.
  Status add_slot(const MemoryPlan& plan, const Accelerators& accelerators);
  std::byte* address(size_t slot, const MemoryPlan& plan, TensorId tensor, int32_t memory) const;
  // One block of an accelerator's memory, for parameters.
  Result<std::byte*> add_block(const Accelerator& accelerator, int64_t bytes);

 private:
  struct Slot {
    std::vector<std::byte*> buffers;  // as MemoryPlan numbers them
  };
  std::vector<Slot> slots_;
  std::vector<std::shared_ptr<std::byte[]>> memory_;
};

// What the compiled segments' parameters take in the memories of accelerators.
std::vector<ParameterNeed> parameter_needs(const Plan& plan, const Accelerators& accelerators,
                                           const std::vector<std::unique_ptr<CompiledSegment>>& compiled);

// Puts every segment's parameters where it will find them. Those that a load step of the plan brings are
// copied by each request, in the plan's order; those read in place stay in mapped host memory; all others are
// copied here, and are there when this returns. kInfeasible when a device has too little memory.
Result<std::vector<ParameterBlock>> place_parameters(
    const Plan& plan, const Accelerators& accelerators,
    const std::vector<std::unique_ptr<CompiledSegment>>& compiled, const ParameterLayout& layout,
    PlanBuffers& buffers);

}  // namespace heddle
