// Plans as lists of stages, the form in which IOS and HIOS write schedules.
#pragma once

#include <span>
#include <vector>

#include "heddle/graph/ios_graph.h"
#include "heddle/plan/builder.h"

namespace heddle {

// Groups that run at once on one device; the ops of a group form one segment.
struct ListedStage {
  DeviceId device;
  std::vector<std::vector<OpId>> groups;  // none empty
};

// Converts stages to decisions for build_plan(). The list must be topological; stages of one device keep its
// order. Every op must be in one stage; build_plan() checks.
Assignment assignment_of_stages(size_t num_ops, std::span<const ListedStage> stages);

// The stages of a plan's first lane, in the order of its steps. A segment that runs alone is a stage with one
// group.
std::vector<ListedStage> stages_of(const Plan& plan);

// An IOS file's own schedule as a plan of `problem`, whose graph must be the file's. A stage without a device
// runs on the problem's only usable device. kInvalidInput when the file has no stages, names an unknown
// device, or leaves the device open although several are usable.
Result<Plan> plan_of_ios_stages(const Problem& problem, const std::vector<IosStage>& stages);
// The number of groups of the widest stage; 1 when there are no stages.
int stage_width_of(const std::vector<IosStage>& stages);

// A plan's stages for with_stages(). Blocks are 0; devices are named when the plan uses several.
std::vector<IosStage> ios_stages_of(const Problem& problem, const Plan& plan);

}  // namespace heddle
