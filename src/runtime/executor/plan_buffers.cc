#include "plan_buffers.h"

#include <algorithm>

#include "heddle/base/units.h"

namespace heddle {
namespace {

// Rounds up to at least one piece, so that every buffer has its own address.
int64_t rounded_up(int64_t bytes) { return device_aligned(std::max<int64_t>(bytes, 1)); }

constexpr double kTickUs = 1e-6;

struct ParameterRange {
  int32_t segment = -1;
  int64_t begin = 0, end = 0;  // bytes
  int32_t run_step = -1;
  bool over = false;  // its place may be reused
};

// The first gap of `bytes` between the current ranges.
int64_t first_gap(const std::vector<ParameterRange>& ranges, int64_t bytes) {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const ParameterRange& s : ranges) {
    if (!s.over) taken.emplace_back(s.begin, s.end);
  }
  std::sort(taken.begin(), taken.end());
  int64_t at = 0;
  for (const auto& [begin, end] : taken) {
    if (begin - at >= bytes) break;
    at = std::max(at, end);
  }
  return at;
}

}  // namespace

ParameterLayout lay_out_parameters(const Plan& plan, const Timeline& timeline,
                                   const std::vector<ParameterNeed>& needs, int32_t memories) {
  const size_t count = plan.segments.size();
  std::vector<int32_t> run_step(count, -1), load_step(count, -1);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const size_t s = plan.steps[i].segment.index();
    if (plan.steps[i].kind == StepKind::kRun) run_step[s] = static_cast<int32_t>(i);
    if (plan.steps[i].kind == StepKind::kLoad) load_step[s] = static_cast<int32_t>(i);
  }
  ParameterLayout layout;
  layout.bytes.assign(static_cast<size_t>(memories), 0);
  layout.offset.assign(count, -1);
  const auto comes_and_goes = [&](size_t s) { return plan.segments[s].drops_params && load_step[s] >= 0; };
  for (size_t s = 0; s < count; ++s) {
    if (needs[s].bytes == 0 || comes_and_goes(s)) continue;
    int64_t& end = layout.bytes[static_cast<size_t>(needs[s].memory)];
    layout.offset[s] = end;
    end += device_aligned(needs[s].bytes);
  }
  const std::vector<int64_t> kept = layout.bytes;
  std::vector<std::vector<ParameterRange>> ranges(static_cast<size_t>(memories));
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const size_t s = plan.steps[i].segment.index();
    if (plan.steps[i].kind != StepKind::kLoad || needs[s].bytes == 0 || !comes_and_goes(s)) continue;
    const auto memory = static_cast<size_t>(needs[s].memory);
    for (ParameterRange& other : ranges[memory]) {
      const auto run = static_cast<size_t>(other.run_step);
      other.over = run < i && timeline.finish_us[run] <= timeline.start_us[i] + kTickUs;
    }
    const int64_t begin = first_gap(ranges[memory], device_aligned(needs[s].bytes));
    const int64_t end = begin + device_aligned(needs[s].bytes);
    for (const ParameterRange& other : ranges[memory]) {
      if (other.begin < end && begin < other.end)
        layout.reuses.emplace_back(other.segment, static_cast<int32_t>(s));
    }
    // Later loads wait for this range, which has already waited for those that it overwrites entirely.
    std::erase_if(ranges[memory],
                  [&](const ParameterRange& other) { return begin <= other.begin && other.end <= end; });
    ranges[memory].push_back({static_cast<int32_t>(s), begin, end, run_step[s], false});
    layout.offset[s] = kept[memory] + begin;
    layout.bytes[memory] = std::max(layout.bytes[memory], kept[memory] + end);
  }
  return layout;
}

Status PlanBuffers::add_slot(const MemoryPlan& plan, const Accelerators& accelerators) {
  std::vector<std::byte*> buffers(plan.buffers.size(), nullptr);
  for (size_t b = 0; b < buffers.size(); ++b) {
    if (plan.buffers[b].memory != 0) continue;
    std::shared_ptr<std::byte[]> memory;
    if (accelerators.empty()) {
      memory = allocate_aligned(plan.buffers[b].bytes);
    } else {
      HEDDLE_ASSIGN_OR_RETURN(memory,
                              accelerators.of_memory(1).runtime->allocate_pinned(plan.buffers[b].bytes));
    }
    if (!memory)
      return infeasible("no host memory for the plan's tensors: " + std::to_string(plan.total_bytes()) +
                        " bytes for each request in flight");
    buffers[b] = memory.get();
    memory_.push_back(std::move(memory));
  }
  // An accelerator's buffers are parts of one block, so the driver allocates once.
  for (int32_t m = 1; m < accelerators.memories(); ++m) {
    int64_t total = 0;
    for (const PlannedBuffer& buffer : plan.buffers) {
      if (buffer.memory == m) total += rounded_up(buffer.bytes);
    }
    if (total == 0) continue;
    const Accelerator& a = accelerators.of_memory(m);
    auto block = a.runtime->allocate(total);
    if (!block.ok())
      return std::move(block).error().with_context("the plan's tensors on device '" + a.name + "'");
    int64_t offset = 0;
    for (size_t b = 0; b < buffers.size(); ++b) {
      if (plan.buffers[b].memory != m) continue;
      buffers[b] = block->get() + offset;
      offset += rounded_up(plan.buffers[b].bytes);
    }
    memory_.push_back(std::move(block).value());
  }
  slots_.push_back(std::move(buffers));
  return {};
}

std::byte* PlanBuffers::address(size_t slot, const MemoryPlan& plan, TensorId tensor, int32_t memory) const {
  const int32_t buffer = plan.at(tensor, memory);
  return buffer < 0 ? nullptr : slots_[slot][static_cast<size_t>(buffer)];
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
                                           const std::vector<std::shared_ptr<CompiledSegment>>& compiled) {
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
    const std::vector<std::shared_ptr<CompiledSegment>>& compiled, const ParameterLayout& layout,
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
