// What planners of stages share: from a problem to flat instances and from schedules back to plans.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/plan/stage_list.h"
#include "heddle/planners/planner.h"
#include "stage_schedule.h"

namespace heddle {

// The problem on these devices, numbered in the order given. Contention, memory limits and known segments of
// several ops are left out. Fails where StageInstance::make() does. O(V + E).
Result<StageInstance> stage_instance_of(const Problem& problem, const std::vector<DeviceId>& devices);

// The schedule's stages in an order that is topological and keeps every device's. The schedule must be
// feasible.
std::vector<ListedStage> list_stages(const StageInstance& instance, const StageSchedule& schedule,
                                     const std::vector<DeviceId>& devices);

// kInfeasible: some op can run nowhere beside the others.
Error no_stage_plan();

// Stages for an instance on these devices, in order; kCancelled when the deadline was cancelled before there
// are any.
using StageConstruct = std::function<Result<std::vector<ListedStage>>(
    const StageInstance&, const std::vector<DeviceId>& devices, const Deadline&)>;

// Planner of one request's latency: offers what `construct` gives on each configuration of devices and keeps
// the best.
class StagePlanner final : public Planner {
 public:
  StagePlanner(std::string name, StageConstruct construct)
      : name_(std::move(name)), construct_(std::move(construct)) {}
  // For algorithms whose stages hold single ops.
  StagePlanner(std::string name, Result<StageSchedule> (*schedule)(const StageInstance&, const Deadline&));
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) override;

 private:
  const std::string name_;
  const StageConstruct construct_;
};

}  // namespace heddle
