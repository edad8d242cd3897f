#include "heddle/plan/stage_list.h"

#include <algorithm>

#include "heddle/base/spelling.h"

namespace heddle {

Assignment assignment_of_stages(size_t num_ops, std::span<const ListedStage> stages) {
  Assignment a;
  a.device.resize(num_ops);
  a.segment.resize(num_ops, -1);
  a.stage.resize(num_ops, -1);
  int segments = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    for (const auto& group : stages[s].groups) {
      for (const OpId op : group) {
        a.device[op.index()] = stages[s].device;
        a.segment[op.index()] = segments;
        if (stages[s].groups.size() > 1) a.stage[op.index()] = static_cast<int>(s);
        a.order.push_back(op);
      }
      ++segments;
    }
  }
  return a;
}

std::vector<ListedStage> stages_of(const Plan& plan) {
  std::vector<ListedStage> stages;
  int32_t open = -1;  // stage number of the last step
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::kRun) continue;
    const Segment& segment = plan.segments[step.segment.index()];
    if (segment.lane != 0) continue;
    if (segment.stage < 0 || segment.stage != open) stages.push_back({segment.device, {}});
    open = segment.stage;
    stages.back().groups.push_back(segment.ops);
  }
  return stages;
}

Result<Plan> plan_of_ios_stages(const Problem& problem, const std::vector<IosStage>& stages) {
  if (stages.empty()) return invalid_input("the file has no stages; expected a schedule with \"stages\"");
  const Cluster& cluster = *problem.cluster;
  const auto usable = problem.usable_devices();
  std::vector<ListedStage> listed;
  for (size_t s = 0; s < stages.size(); ++s) {
    const std::string where = "$.stages[" + std::to_string(s) + "]";
    DeviceId device;
    if (!stages[s].device.empty()) {
      device = cluster.find_device(stages[s].device);
      if (!device.valid()) {
        std::vector<std::string> names;
        for (const auto& d : cluster.devices()) names.push_back(d.name);
        return invalid_input(where + ".device: the cluster has no device '" + stages[s].device +
                             "'; there are " + join_names(names));
      }
    } else if (usable.size() == 1) {
      device = usable[0];
    } else {
      return invalid_input(where + " names no device, and the problem has " + std::to_string(usable.size()) +
                           "; choose one, e.g. --devices " + cluster.device(usable[0]).name);
    }
    for (const auto& group : stages[s].groups) {
      for (const OpId op : group) {
        if (op.valid() && op.index() < problem.graph->num_ops()) continue;
        return invalid_input(where + " names op " + std::to_string(op.value) + "; the graph has " +
                             std::to_string(problem.graph->num_ops()) + " ops");
      }
    }
    listed.push_back({device, stages[s].groups});
  }
  return build_plan(problem, assignment_of_stages(problem.graph->num_ops(), listed));
}

int stage_width_of(const std::vector<IosStage>& stages) {
  size_t width = 1;
  for (const IosStage& stage : stages) width = std::max(width, stage.groups.size());
  return static_cast<int>(width);
}

std::vector<IosStage> ios_stages_of(const Problem& problem, const Plan& plan) {
  const auto listed = stages_of(plan);
  const bool several = std::any_of(listed.begin(), listed.end(),
                                   [&](const ListedStage& s) { return s.device != listed.front().device; });
  std::vector<IosStage> stages;
  for (const ListedStage& s : listed) {
    IosStage stage;
    stage.groups = s.groups;
    // Segments list their ops by id; groups list them in execution order.
    for (auto& group : stage.groups) {
      std::sort(group.begin(), group.end(), [&](OpId a, OpId b) {
        return problem.graph->topological_position(a) < problem.graph->topological_position(b);
      });
    }
    if (several) stage.device = problem.cluster->device(s.device).name;
    stages.push_back(std::move(stage));
  }
  return stages;
}

}  // namespace heddle
