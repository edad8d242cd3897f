#include "stage_planner.h"

#include <queue>

#include "core/configurations.h"
#include "core/plan_store.h"
#include "heddle/base/units.h"
#include "hios.h"

namespace heddle {

StageInstance stage_instance_of(const Problem& problem, const std::vector<DeviceId>& devices) {
  const Graph& graph = *problem.graph;
  const CostTable& costs = *problem.costs;
  StageInput in;
  in.ops = graph.num_ops();
  in.devices = devices.size();
  in.width = static_cast<size_t>(problem.execution.stage_width);
  for (size_t v = 0; v < in.ops; ++v) {
    const OpId op(v);
    for (const DeviceId d : devices) {
      in.us.push_back(costs.segment({&op, 1}, d).us);
      in.utilization.push_back(costs.utilization(op, d));
    }
  }
  for (const DeviceId d : devices) in.sharing.push_back(costs.stage_model(d));
  for (const Tensor& tensor : graph.tensors()) {
    if (!tensor.producer.valid()) continue;
    for (const OpId reader : tensor.consumers) {
      in.edges.push_back({static_cast<uint32_t>(tensor.producer.index()),
                          static_cast<uint32_t>(reader.index()), static_cast<double>(tensor.bytes)});
    }
  }
  for (const DeviceId from : devices) {
    for (const DeviceId to : devices) {
      const Passage way = passage(*problem.cluster, from, to);
      const Route* route = way == Passage::kRoute ? problem.cluster->route(from, to) : nullptr;
      in.latency_us.push_back(way == Passage::kNone ? kNoTime : route != nullptr ? route->latency_us : 0);
      in.us_per_byte.push_back(route != nullptr ? kUsPerSecond / route->bytes_per_s : 0);
    }
  }
  return StageInstance(std::move(in));
}

std::vector<ListedStage> list_stages(const StageInstance& instance, const StageSchedule& schedule,
                                     const std::vector<DeviceId>& devices) {
  struct Entry {
    double start;
    uint32_t device, index;
    bool operator>(const Entry& o) const {
      if (start != o.start) return start > o.start;
      return device != o.device ? device > o.device : index > o.index;
    }
  };
  std::vector<ListedStage> stages;
  const auto timing = time_stages(instance, schedule);
  if (!timing.ok()) return stages;
  // By start, as far as what waits for what allows: ops without time start with what they read.
  std::vector<std::pair<uint32_t, uint32_t>> place(instance.num_ops());
  std::vector<std::vector<size_t>> waiting(schedule.devices.size());
  for (uint32_t d = 0; d < schedule.devices.size(); ++d) {
    for (uint32_t i = 0; i < schedule.devices[d].size(); ++i) {
      size_t count = i > 0 ? 1 : 0;
      for (const uint32_t v : schedule.devices[d][i]) {
        place[v] = {d, i};
        count += instance.inputs(v).size();
      }
      waiting[d].push_back(count);
    }
  }
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto push = [&](uint32_t d, uint32_t i) {
    ready.push({timing->start_us[schedule.devices[d][i][0]], d, i});
  };
  for (uint32_t d = 0; d < waiting.size(); ++d) {
    if (!waiting[d].empty() && waiting[d][0] == 0) push(d, 0);
  }
  while (!ready.empty()) {
    const auto [start, d, i] = ready.top();
    ready.pop();
    ListedStage& listed = stages.emplace_back(ListedStage{devices[d], {}});
    for (const uint32_t v : schedule.devices[d][i]) {
      listed.groups.push_back({OpId(static_cast<size_t>(v))});
      for (const auto& next : instance.outputs(v)) {
        const auto [e, j] = place[next.op];
        if (--waiting[e][j] == 0) push(e, j);
      }
    }
    if (i + 1 < waiting[d].size() && --waiting[d][i + 1] == 0) push(d, i + 1);
  }
  return stages;
}

Error no_stage_plan() {
  return infeasible(
      "an op has no device that can run it and get what it reads; allow more devices or give the "
      "cluster links between them");
}

Error stage_plan_cancelled() { return cancelled_error("planning was cancelled before there was a plan"); }

Result<PlannerOutput> plan_stages(const Problem& problem, const PlannerOptions& options,
                                  const std::string& name, const StageConstruct& construct) {
  PlanStore candidates(problem);
  std::optional<Error> failure;
  for (const auto& devices : configurations(problem)) {
    const auto instance = stage_instance_of(problem, devices);
    const auto stages = construct(instance, devices, options.deadline);
    if (!stages.ok()) {
      failure = stages.error();
      continue;
    }
    candidates.offer(assignment_of_stages(instance.num_ops(), *stages), name);
  }
  if (candidates.empty() && candidates.offered() == 0 && failure) return *failure;
  return candidates.output(StopReason::kFinished, options.deadline);
}

Result<PlannerOutput> plan_stages(const Problem& problem, const PlannerOptions& options,
                                  const std::string& name, const StageAlgorithm& schedule) {
  const StageConstruct construct = [&](const StageInstance& instance, const std::vector<DeviceId>& devices,
                                       const Deadline& deadline) -> Result<std::vector<ListedStage>> {
    HEDDLE_ASSIGN_OR_RETURN(const auto made, schedule(instance, deadline));
    return list_stages(instance, made, devices);
  };
  return plan_stages(problem, options, name, construct);
}

Result<PlannerOutput> plan_mapping(const Problem& problem, const PlannerOptions& options, std::string name,
                                   const StageAlgorithm& mapping) {
  const bool none = options.is_set("stages", "none"), ios = options.is_set("stages", "ios");
  name += none ? "-inter" : ios ? "-ios" : "";
  const StageAlgorithm staged = [&](const StageInstance& instance,
                                    const Deadline& deadline) -> Result<StageSchedule> {
    HEDDLE_ASSIGN_OR_RETURN(auto made, mapping(instance, deadline));
    if (none) return made;
    return ios ? hios_ios(instance, std::move(made), deadline)
               : hios_parallelize(instance, std::move(made), deadline);
  };
  return plan_stages(problem, options, name, staged);
}

PlannerSetting stages_setting() {
  return {"stages", {"window", "none", "ios"}, "how stages are formed once ops have devices"};
}

}  // namespace heddle
