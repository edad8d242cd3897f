// The baselines of PPipe, ATC'25, section 7. NP (no partitioning): pools of whole devices run whole models;
// the same optimisation divides the devices among the models. DART-r: units of one device per class, each
// with its own partition. A model has its devices from NP's plan and an equal part of the unused ones.
#include "baselines.h"

#include <algorithm>

namespace heddle {
namespace {

FleetTask restricted(const FleetTask& task, const Fleet& fleet, std::vector<std::vector<Column>> columns,
                     FleetGoal goal) {
  auto needs = device_needs(fleet, columns);
  auto bound = best_price_bound(fleet, needs, goal, task.options.deadline);
  return {fleet, std::move(goal), std::move(columns), std::move(needs), std::move(bound), task.options};
}

// The best plan of one model on one device of each of these classes; empty when none meets the deadline.
Result<ModelPlan> best_on_one_each(const FleetTask& task, size_t model, const std::vector<bool>& classes) {
  Fleet one = task.fleet;
  one.models = {task.fleet.models[model]};
  for (size_t k = 0; k < one.classes.size(); ++k) one.classes[k].count = classes[k] ? 1 : 0;
  auto columns = columns_of(one, 0, {one.max_partitions, 1, {}}, task.options.deadline);
  if (!columns.ok()) {
    if (columns.error().code() == Code::kInfeasible) return ModelPlan{};
    return std::move(columns).error();
  }
  std::vector<std::vector<Column>> all;
  all.push_back(std::move(*columns));
  const auto sub = restricted(task, one, std::move(all), {FleetObjective::kMaxMin, {1.0}});
  HEDDLE_ASSIGN_OR_RETURN(auto answer, plan_by_columns(sub));
  return std::move(answer.models[0]);
}

}  // namespace

Result<FleetAnswer> plan_np(const FleetTask& task) {
  HEDDLE_ASSIGN_OR_RETURN(auto columns, all_columns(task.fleet, {1, 1, {}}, task.options.deadline));
  const auto sub = restricted(task, task.fleet, std::move(columns), task.goal);
  HEDDLE_ASSIGN_OR_RETURN(auto answer, plan_by_columns(sub));
  // Its bound holds for unpartitioned plans only.
  answer.bound.reset();
  answer.optimal = false;
  return answer;
}

Result<std::vector<ModelPlan>> dart_r_from(const FleetTask& task, const std::vector<ModelPlan>& np) {
  const auto classes = task.fleet.classes.size();
  const auto models = task.fleet.models.size();
  std::vector<std::vector<int64_t>> devices(models, std::vector<int64_t>(classes, 0));
  std::vector<int64_t> unused;
  for (const auto& c : task.fleet.classes) unused.push_back(c.count);
  for (size_t m = 0; m < models; ++m)
    for (const auto& p : np[m].pipelines)
      for (const auto& q : p.partitions) {
        devices[m][static_cast<size_t>(q.device_class)] += q.count;
        unused[static_cast<size_t>(q.device_class)] -= q.count;
      }
  std::vector<ModelPlan> plans(models);
  for (size_t m = 0; m < models; ++m) {
    for (size_t k = 0; k < classes; ++k) devices[m][k] += unused[k] / static_cast<int64_t>(models);
    // Units of one device of each remaining class, as many as the scarcest class allows. With two classes
    // these are pairs, then single devices of the more numerous class.
    while (true) {
      std::vector<bool> some(classes, false);
      int64_t times = 0;
      for (size_t k = 0; k < classes; ++k) {
        some[k] = devices[m][k] > 0;
        if (some[k]) times = times == 0 ? devices[m][k] : std::min(times, devices[m][k]);
      }
      if (times == 0) break;
      HEDDLE_ASSIGN_OR_RETURN(auto unit, best_on_one_each(task, m, some));
      for (auto& p : unit.pipelines) {
        for (auto& q : p.partitions) q.count *= times;
        plans[m].pipelines.push_back(std::move(p));
      }
      for (size_t k = 0; k < classes; ++k)
        if (some[k]) devices[m][k] -= times;
    }
    merge_pipelines(plans[m].pipelines);
  }
  return plans;
}

Result<FleetAnswer> plan_dart_r(const FleetTask& task) {
  if (task.goal.objective != FleetObjective::kMaxMin)
    return unsupported("dart-r plans for max-min only; use auto, ppipe-dp or ppipe-columns");
  HEDDLE_ASSIGN_OR_RETURN(const auto np, plan_np(task));
  FleetAnswer answer;
  HEDDLE_ASSIGN_OR_RETURN(answer.models, dart_r_from(task, np.models));
  return answer;
}

}  // namespace heddle
