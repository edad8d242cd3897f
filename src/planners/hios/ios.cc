// IOS. Ding et al., "IOS: Inter-Operator Scheduler for CNN Acceleration", MLSys 2021, section 4: the dynamic
// program over endings, on the one device where it gives the least time.
//
// Minimises the makespan of one request without a second device. Groups of up to three ops (r), as many at
// once as the problem allows (s); the program itself is ios_program.cc. Where it is exact the plan is the
// best on one device under that pruning. Exploits stages; ignores all other devices and memory limits.
#include "ios.h"

#include <algorithm>

#include "hios.h"
#include "stage_planner.h"

namespace heddle {
namespace {

// Whether an earlier device runs everything alike.
bool seen_before(const StageInstance& instance, size_t device) {
  for (size_t d = 0; d < device; ++d) {
    bool same = instance.sharing(d) == instance.sharing(device);
    for (size_t v = 0; same && v < instance.num_ops(); ++v) {
      same = instance.us(v, d) == instance.us(v, device) &&
             instance.busy_us(v, d) == instance.busy_us(v, device);
    }
    if (same) return true;
  }
  return false;
}

Result<std::vector<ListedStage>> best_device(const StageInstance& instance,
                                             const std::vector<DeviceId>& devices, const Deadline& deadline) {
  const auto order = hios_priorities(instance).order;
  const IosPruning pruning{.groups = instance.width()};
  IosResult best;
  best.us = kNoTime;
  size_t where = 0;
  for (size_t d = 0; d < instance.num_devices(); ++d) {
    const bool runs_all =
        std::all_of(order.begin(), order.end(), [&](uint32_t v) { return instance.us(v, d) < kNoTime; });
    if (!runs_all || seen_before(instance, d)) continue;
    auto result = ios_schedule(instance, d, order, pruning, deadline);
    if (result.us >= best.us) continue;
    best = std::move(result);
    where = d;
  }
  if (deadline.cancelled()) return stage_plan_cancelled();
  if (best.us == kNoTime) {
    return infeasible("no device can run every op; IOS plans for one device: choose another planner");
  }
  std::vector<ListedStage> stages;
  for (const IosGroups& groups : best.stages) {
    ListedStage& stage = stages.emplace_back(ListedStage{devices[where], {}});
    for (const auto& group : groups) {
      auto& ops = stage.groups.emplace_back();
      for (const uint32_t v : group) ops.push_back(OpId(static_cast<size_t>(v)));
    }
  }
  return stages;
}

}  // namespace

PlannerEntry ios_planner() {
  return {{.name = "ios",
           .description = "stages of groups on one device by a dynamic program over endings",
           .source = "IOS (Ding et al., MLSys 2021), section 4; HIOS's baseline",
           .objectives = {Objective::kLatency},
           .exploits = "stages, unequal devices",
           .ignores = "all other devices, memory limits"},
          [](const Problem& problem, const PlannerOptions& options) {
            return plan_stages(problem, options, "ios", best_device);
          }};
}

}  // namespace heddle
