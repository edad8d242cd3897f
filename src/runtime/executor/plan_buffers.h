// Memory for a plan's tensors and parameters, allocated once before the first request.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "accelerators.h"
#include "heddle/runtime/backend.h"
#include "memory_plan.h"
#include "parameter_layout.h"

namespace heddle {

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
  struct Slot {
    std::vector<std::byte*> buffers;  // by buffer number of MemoryPlan
  };
  std::vector<Slot> slots_;
  std::vector<std::shared_ptr<std::byte[]>> memory_;
};

// The parameter bytes of each compiled segment in the memory of its accelerator.
std::vector<ParameterNeed> parameter_needs(const Plan& plan, const Accelerators& accelerators,
                                           const std::vector<std::unique_ptr<CompiledSegment>>& compiled);

// Places every segment's parameters. Those with a load step in the plan are copied by each request, in the
// plan's order. Those read in place stay in mapped host memory. All others are copied here, before this
// returns. kInfeasible if a device has too little memory.
Result<std::vector<ParameterBlock>> place_parameters(
    const Plan& plan, const Accelerators& accelerators,
    const std::vector<std::unique_ptr<CompiledSegment>>& compiled, const ParameterLayout& layout,
    PlanBuffers& buffers);

}  // namespace heddle
