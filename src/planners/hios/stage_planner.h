// What planners of stages share: from a problem to flat instances and from schedules back to plans.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/plan/stage_list.h"
#include "heddle/planners/planner.h"
#include "stage_schedule.h"

namespace heddle {

// The problem on these devices, numbered in the order given. Contention, memory limits and known segments of
// several ops are left out. O(V + E).
StageInstance stage_instance_of(const Problem& problem, const std::vector<DeviceId>& devices);

// The schedule's stages in an order that is topological and keeps every device's. The schedule must be
// feasible.
std::vector<ListedStage> list_stages(const StageInstance& instance, const StageSchedule& schedule,
                                     const std::vector<DeviceId>& devices);

// kInfeasible: some op can run nowhere beside the others. kCancelled: while there was no plan.
Error no_stage_plan();
Error stage_plan_cancelled();

// Stages for an instance on these devices, in order; kCancelled when the deadline was cancelled before there
// are any.
using StageConstruct = std::function<Result<std::vector<ListedStage>>(
    const StageInstance&, const std::vector<DeviceId>& devices, const Deadline&)>;

// Plans one request's latency: offers what `construct` gives on each configuration of devices and keeps the
// best.
Result<PlannerOutput> plan_stages(const Problem& problem, const PlannerOptions& options,
                                  const std::string& name, const StageConstruct& construct);

using StageAlgorithm = std::function<Result<StageSchedule>(const StageInstance&, const Deadline&)>;
// The same for algorithms whose groups hold single ops.
Result<PlannerOutput> plan_stages(const Problem& problem, const PlannerOptions& options,
                                  const std::string& name, const StageAlgorithm& schedule);
// The same for algorithms that only map ops to devices: stages_setting() says how stages are formed then, by
// Algorithm 2 (hios_parallelize), not at all or by hios_ios().
Result<PlannerOutput> plan_mapping(const Problem& problem, const PlannerOptions& options, std::string name,
                                   const StageAlgorithm& mapping);
PlannerSetting stages_setting();

}  // namespace heddle
