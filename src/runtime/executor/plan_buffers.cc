#include "plan_buffers.h"

#include <algorithm>

#include "heddle/base/units.h"

namespace heddle {
namespace {

// Rounds up to at least one piece, so that every buffer has its own address.
int64_t rounded_up(int64_t bytes) { return whole_pieces(std::max<int64_t>(bytes, 1)); }

}  // namespace

Status PlanBuffers::add_slot(const MemoryPlan& plan, const Accelerators& accelerators) {
  Slot slot;
  slot.buffers.assign(plan.buffer_bytes.size(), nullptr);
  for (size_t b = 0; b < plan.buffer_bytes.size(); ++b) {
    if (plan.buffer_memory[b] != 0) continue;
    std::shared_ptr<std::byte[]> memory;
    if (accelerators.empty()) {
      memory = allocate_aligned(plan.buffer_bytes[b]);
    } else {
      HEDDLE_ASSIGN_OR_RETURN(memory,
                              accelerators.of_memory(1).runtime->allocate_pinned(plan.buffer_bytes[b]));
    }
    if (!memory)
      return Error(Code::kInfeasible,
                   "no host memory for the plan's tensors: " + std::to_string(plan.total_bytes()) +
                       " bytes for each request in flight");
    slot.buffers[b] = memory.get();
    memory_.push_back(std::move(memory));
  }
  // An accelerator's buffers are parts of one block, so the driver allocates once.
  for (int32_t m = 1; m < accelerators.memories(); ++m) {
    int64_t total = 0;
    for (size_t b = 0; b < plan.buffer_bytes.size(); ++b) {
      if (plan.buffer_memory[b] == m) total += rounded_up(plan.buffer_bytes[b]);
    }
    if (total == 0) continue;
    const Accelerator& a = accelerators.of_memory(m);
    auto block = a.runtime->allocate(total);
    if (!block.ok())
      return std::move(block).error().with_context("the plan's tensors on device '" + a.name + "'");
    int64_t offset = 0;
    for (size_t b = 0; b < plan.buffer_bytes.size(); ++b) {
      if (plan.buffer_memory[b] != m) continue;
      slot.buffers[b] = block->get() + offset;
      offset += rounded_up(plan.buffer_bytes[b]);
    }
    memory_.push_back(std::move(block).value());
  }
  slots_.push_back(std::move(slot));
  return {};
}

std::byte* PlanBuffers::address(size_t slot, const MemoryPlan& plan, TensorId tensor, int32_t memory) const {
  const int32_t buffer = plan.at(tensor, memory);
  return buffer < 0 ? nullptr : slots_[slot].buffers[static_cast<size_t>(buffer)];
}

Result<std::byte*> PlanBuffers::add_block(const Accelerator& accelerator, int64_t bytes) {
  auto memory = accelerator.runtime->allocate(bytes);
  if (!memory.ok())
    return std::move(memory).error().with_context("the plan's parameters on device '" + accelerator.name +
                                                  "'");
  memory_.push_back(std::move(memory).value());
  return memory_.back().get();
}

std::vector<ParameterNeed> parameter_needs(const Plan& plan, const Accelerators& accelerators,
                                           const std::vector<std::unique_ptr<CompiledSegment>>& compiled) {
  std::vector<ParameterNeed> needs(plan.segments.size());
  for (size_t s = 0; s < needs.size(); ++s) {
    const int32_t memory = accelerators.memory(plan.segments[s].device);
    if (memory == 0 || memory >= accelerators.memories() || !compiled[s]) continue;
    needs[s].memory = memory;
    if (!plan.segments[s].host_access)
      needs[s].bytes = static_cast<int64_t>(compiled[s]->host_parameters().size());
  }
  return needs;
}

Result<std::vector<ParameterBlock>> place_parameters(
    const Plan& plan, const Accelerators& accelerators,
    const std::vector<std::unique_ptr<CompiledSegment>>& compiled, const ParameterLayout& layout,
    PlanBuffers& buffers) {
  std::vector<ParameterBlock> blocks(plan.segments.size());
  std::vector<bool> loaded(plan.segments.size(), false);
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::kLoad) loaded[step.segment.index()] = true;
  }
  for (int32_t m = 1; m < accelerators.memories(); ++m) {
    const Accelerator& a = accelerators.of_memory(m);
    std::vector<size_t> copied;
    for (size_t s = 0; s < plan.segments.size(); ++s) {
      if (accelerators.memory(plan.segments[s].device) != m) continue;
      const auto host = compiled[s]->host_parameters();
      blocks[s] = {host.data(), nullptr, static_cast<int64_t>(host.size())};
      if (host.empty()) continue;
      if (plan.segments[s].host_access) {
        HEDDLE_ASSIGN_OR_RETURN(blocks[s].device, a.runtime->mapped_address(host.data()));
      } else {
        copied.push_back(s);
      }
    }
    if (const int64_t bytes = layout.bytes[static_cast<size_t>(m)]; bytes > 0) {
      HEDDLE_ASSIGN_OR_RETURN(std::byte* const block, buffers.add_block(a, bytes));
      for (const size_t s : copied) blocks[s].device = block + layout.offset[s];
    }
    for (const size_t s : copied) {
      if (loaded[s]) continue;
      HEDDLE_RETURN_IF_ERROR(
          a.to_device->copy(CopyKind::kHostToDevice, blocks[s].device, blocks[s].host, blocks[s].bytes));
    }
    HEDDLE_RETURN_IF_ERROR(a.to_device->synchronize());
    for (const size_t s : copied) {
      if (!loaded[s]) compiled[s]->drop_host_parameters();
      if (!loaded[s]) blocks[s].host = nullptr;
    }
    for (size_t s = 0; s < plan.segments.size(); ++s) {
      if (blocks[s].device == nullptr || accelerators.memory(plan.segments[s].device) != m) continue;
      HEDDLE_RETURN_IF_ERROR(compiled[s]->place_parameters(blocks[s].device));
    }
  }
  return blocks;
}

}  // namespace heddle
