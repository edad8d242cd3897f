// What an executor needs besides when its plan runs on several ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "accelerators.h"
#include "engine.h"
#include "heddle/runtime/executor.h"
#include "memory_plan.h"
#include "plan_buffers.h"
#include "program.h"

namespace heddle {

// Ranks learn from each other, per rank in a text of its own, what holds of each thing: afterwards a flag
// says whether it holds on any rank. Called by all ranks.
Status share_flags(RankGroup& group, std::vector<bool>& flags);

// Tells all ranks which devices are accelerators, and numbers those of other ranks. Returns per device
// whether messages may be in its memory: where its rank's transport reaches it. Called by all ranks.
Result<std::vector<bool>> share_accelerators(RankGroup& group, const Cluster& cluster,
                                             Accelerators& accelerators);

struct MessageMemory {
  const Graph& graph;
  const std::vector<Program>& programs;         // per lane
  const std::vector<int>& slot_lane;            // per slot
  const std::vector<MemoryPlan>& memory_plans;  // per lane; empty where no device moves data
  const PlanBuffers& buffers;
};
// The memory of each message is its tensor's; what emulated devices send means nothing and comes from one
// place, which is returned. Unsupported where the transport cannot tell so many messages apart.
Result<std::shared_ptr<std::byte[]>> set_messages(Transport& transport, const MessageMemory& memory,
                                                  EngineSetup& setup);

}  // namespace heddle
