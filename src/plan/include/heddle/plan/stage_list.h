// Plans as lists of stages, the form in which IOS and HIOS write schedules.
#pragma once

#include <span>
#include <vector>

#include "heddle/graph/ios_graph.h"
#include "heddle/plan/builder.h"

namespace heddle {

// Groups that run at once on a device; the ops of a group are one segment.
struct ListedStage {
  DeviceId device;
  std::vector<std::vector<OpId>> groups;  // none empty
};

// Stages in the order in which they run (on one device that order holds, and it must be topological) as
// decisions for build_plan(). Every op must be in one stage; build_plan() checks.
Assignment assignment_of_stages(size_t num_ops, std::span<const ListedStage> stages);

// The stages of a plan's first lane in the order of its steps; a segment that runs alone is a stage with one
// group.
std::vector<ListedStage> stages_of(const Plan& plan);

// An IOS file's own schedule as a plan of `problem`, whose graph must be the file's. A stage that names no
// device runs on the problem's only usable device. kInvalidInput when the file has no stages, names a device
// that the cluster does not have, or leaves the device open where there are several.
Result<Plan> plan_of_ios_stages(const Problem& problem, const std::vector<IosStage>& stages);
// The widest stage; 1 when there is none.
int stage_width_of(const std::vector<IosStage>& stages);

// A plan's stages for with_stages(). Blocks are 0; devices are named when the plan uses several.
std::vector<IosStage> ios_stages_of(const Problem& problem, const Plan& plan);

}  // namespace heddle
