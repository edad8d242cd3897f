#include "executor_ranks.h"

#include <algorithm>
#include <set>
#include <string>

#include "heddle/runtime/rank_group.h"
#include "rank_program.h"

namespace heddle {

Status share_flags(RankGroup& group, std::vector<bool>& flags) {
  std::string text(flags.size(), '0');
  for (size_t i = 0; i < flags.size(); ++i) text[i] = flags[i] ? '1' : '0';
  HEDDLE_ASSIGN_OR_RETURN(const auto all, group.exchange(text));
  for (const auto& theirs : all) {
    if (theirs.size() != flags.size())
      return internal_error("the ranks disagree about the plan: do all run the same Heddle?");
    for (size_t i = 0; i < flags.size(); ++i) flags[i] = flags[i] || theirs[i] == '1';
  }
  return {};
}

Status share_border_types(RankGroup& group, std::vector<DType>& of_device) {
  for (const DType type : {DType::kBF16, DType::kF16}) {
    std::vector<bool> has(of_device.size());
    for (size_t d = 0; d < has.size(); ++d) has[d] = of_device[d] == type;
    HEDDLE_RETURN_IF_ERROR(share_flags(group, has));
    for (size_t d = 0; d < has.size(); ++d)
      if (has[d]) of_device[d] = type;
  }
  return {};
}

Result<std::vector<bool>> share_accelerators(RankGroup& group, const Cluster& cluster,
                                             Accelerators& accelerators) {
  std::vector<bool> accelerated(cluster.num_devices(), false), direct(cluster.num_devices(), false);
  Status current;
  for (int32_t m = 1; m < accelerators.memories(); ++m) {
    const Accelerator& a = accelerators.of_memory(m);
    accelerated[a.device.index()] = true;
    if (!group.transport().reaches_memory_of(a.runtime->properties().family)) continue;
    direct[a.device.index()] = true;
    // The transport calls come from this thread.
    if (current.ok()) current = a.runtime->use_on_this_thread();
  }
  HEDDLE_RETURN_IF_ERROR(group.agree(current));
  HEDDLE_RETURN_IF_ERROR(share_flags(group, accelerated));
  HEDDLE_RETURN_IF_ERROR(share_flags(group, direct));
  accelerators.add_elsewhere(accelerated);
  return direct;
}

Result<std::shared_ptr<std::byte[]>> set_messages(Transport& transport, const MessageMemory& memory,
                                                  TaskRunnerSetup& setup) {
  setup.transport = &transport;
  // Start, inputs, outputs and end of each slot's request, and a call to the ranks.
  auto needed = static_cast<int64_t>(memory.slot_lane.size()) * 4 + 1;
  for (const int lane : memory.slot_lane) needed += memory.programs[static_cast<size_t>(lane)].messages;
  if (needed >= transport.max_tag())
    return unsupported("the plan needs " + std::to_string(needed) +
                       " messages between ranks, but this transport tells only " +
                       std::to_string(transport.max_tag()) + " apart; reduce --in-flight");
  std::shared_ptr<std::byte[]> scratch;
  if (memory.memory_plans.empty()) {
    int64_t widest = 0;
    for (size_t lane = 0; lane < memory.programs.size(); ++lane)
      widest = std::max(widest, widest_message(*memory.graphs[lane], memory.programs[lane]));
    scratch = allocate_aligned(widest);
    if (!scratch)
      return infeasible("no host memory for the largest tensor, " + std::to_string(widest) + " bytes");
  }
  for (size_t slot = 0; slot < memory.slot_lane.size(); ++slot) {
    const auto lane = static_cast<size_t>(memory.slot_lane[slot]);
    const auto spans = [&](const std::vector<Message>& messages) {
      std::vector<std::span<std::byte>> result;
      for (const Message& m : messages) {
        std::byte* data = scratch.get();
        if (m.tensor >= 0 && !scratch)
          data = memory.buffers.address(slot, memory.memory_plans[lane], TensorId(m.tensor), m.memory);
        result.emplace_back(data, static_cast<size_t>(message_bytes(*memory.graphs[lane], m)));
      }
      return result;
    };
    setup.send_memory.push_back(spans(memory.programs[lane].sends));
    setup.receive_memory.push_back(spans(memory.programs[lane].receives));
  }
  return scratch;
}

namespace {

// The ranks other than 0 whose segments of this lane have the tensor among these ports.
std::set<int> ranks_of(TensorId tensor, int lane, const RankOptions& ranks, const RequestTensors& tensors,
                       std::vector<TensorId> SegmentPorts::*list) {
  std::set<int> found;
  for (size_t s = 0; s < tensors.ports.size(); ++s) {
    const Segment& segment = tensors.plan.segments[s];
    const auto& port = tensors.ports[s].*list;
    const int rank = ranks.rank_of_device[segment.device.index()];
    if (segment.lane == lane && rank != 0 && std::binary_search(port.begin(), port.end(), tensor))
      found.insert(rank);
  }
  return found;
}

}  // namespace

void set_request_messages(const RankOptions& ranks, const RequestTensors& tensors, TaskRunnerSetup& setup) {
  const int self = ranks.group->rank();
  for (size_t slot = 0; slot < tensors.slot_lane.size(); ++slot) {
    const auto messages = [&](std::span<const TensorId> ids, const std::vector<TensorView>& views,
                              std::vector<TensorId> SegmentPorts::*list) {
      std::vector<PeerMemory> result;
      for (size_t i = 0; i < views.size(); ++i) {
        for (const int rank : ranks_of(ids[i], tensors.slot_lane[slot], ranks, tensors, list)) {
          if (self == 0 || self == rank)
            result.push_back({self == 0 ? rank : 0, {views[i].data, static_cast<size_t>(views[i].bytes)}});
        }
      }
      return result;
    };
    const SlotPorts& views = tensors.views[slot];
    setup.input_memory.push_back(messages(tensors.inputs, views.inputs, &SegmentPorts::inputs));
    setup.output_memory.push_back(messages(tensors.outputs, views.outputs, &SegmentPorts::outputs));
  }
}

}  // namespace heddle
