// Reads and writes plan files of fleets; the format is in docs/fleet.md.
#include <cmath>

#include "fleet_file.h"
#include "heddle/base/spelling.h"
#include "heddle/fleet/fleet_plan.h"

namespace heddle {
namespace {

constexpr double kMostPlanValue = 1e18;
constexpr size_t kMaxPipelines = 100'000;

Result<int> named(const JsonCursor& at, std::string_view key, const std::vector<std::string>& names,
                  const char* kind) {
  HEDDLE_ASSIGN_OR_RETURN(const auto name_at, at.at(key));
  HEDDLE_ASSIGN_OR_RETURN(const auto name, name_at.as_string());
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<int>(i);
  return name_at.error(std::string("the fleet has no ") + kind + " " + quote_text(name) +
                       did_you_mean(name, names) + "; it has " + join_names(names));
}

Result<FleetPartition> read_partition(const JsonCursor& at, const Fleet& fleet, const FleetModel& model) {
  HEDDLE_RETURN_IF_ERROR(at.check_keys({"blocks", "class", "share", "count"}));
  FleetPartition p;
  HEDDLE_ASSIGN_OR_RETURN(const auto blocks_at, at.at("blocks"));
  HEDDLE_ASSIGN_OR_RETURN(const auto blocks, blocks_at.as_ints(0, model.blocks));
  if (blocks.size() != 2 || blocks[0] >= blocks[1])
    return blocks_at.error("expected [from, to] with from < to: the blocks from..to-1");
  p.block_from = static_cast<int>(blocks[0]);
  p.block_to = static_cast<int>(blocks[1]);
  std::vector<std::string> names;
  for (const auto& c : fleet.classes) names.push_back(c.name);
  HEDDLE_ASSIGN_OR_RETURN(p.device_class, named(at, "class", names, "class"));
  HEDDLE_ASSIGN_OR_RETURN(const auto share, at.int_or("share", 1, 1, kMaxShare));
  p.share = static_cast<int>(share);
  HEDDLE_ASSIGN_OR_RETURN(const auto count, at.at("count"));
  HEDDLE_ASSIGN_OR_RETURN(p.count, count.as_int(1, kMaxFleetDevices * kMaxShare));
  return p;
}

Result<FleetPipeline> read_pipeline(const JsonCursor& at, const Fleet& fleet, const FleetModel& model) {
  HEDDLE_RETURN_IF_ERROR(at.check_keys({"batch", "rate_per_s", "partitions"}));
  FleetPipeline p;
  HEDDLE_ASSIGN_OR_RETURN(const auto batch, at.int_or("batch", 1, 1, kMaxFleetBatch));
  p.batch = static_cast<int>(batch);
  HEDDLE_ASSIGN_OR_RETURN(p.rate_per_s, at.number_or("rate_per_s", 0, 0, kMostPlanValue));
  HEDDLE_ASSIGN_OR_RETURN(const auto partitions_at, at.at("partitions"));
  HEDDLE_ASSIGN_OR_RETURN(const auto partitions, partitions_at.elements(kMaxPartitions));
  if (partitions.empty()) return partitions_at.error("there is no partition; expected at least one");
  for (const auto& partition : partitions) {
    HEDDLE_ASSIGN_OR_RETURN(const auto read, read_partition(partition, fleet, model));
    p.partitions.push_back(read);
  }
  return p;
}

}  // namespace

Result<FleetPlan> fleet_plan_from_json(const Json& json, const Fleet& fleet) {
  const JsonCursor root(json);
  HEDDLE_RETURN_IF_ERROR(root.check_keys({"format", "version", "fleet", "planner", "objective", "load_per_s",
                                          "value", "bound", "bound_reason", "planning_s", "models"}));
  HEDDLE_RETURN_IF_ERROR(check_format(root, "heddle-fleet-plan"));
  FleetPlan plan;
  HEDDLE_ASSIGN_OR_RETURN(plan.fleet, root.string_or("fleet", ""));
  HEDDLE_ASSIGN_OR_RETURN(plan.planner, root.string_or("planner", ""));
  HEDDLE_ASSIGN_OR_RETURN(const auto objective, root.string_or("objective", "max-min"));
  const auto found = fleet_objective_named(objective);
  if (!found)
    return JsonCursor(json["objective"], "$.objective")
        .error("is " + quote_text(objective) + "; expected max-min, cost, power or goodput");
  plan.objective = *found;
  HEDDLE_ASSIGN_OR_RETURN(plan.load_per_s, root.number_or("load_per_s", 0, 0, kMostPlanValue));
  HEDDLE_ASSIGN_OR_RETURN(plan.value, root.number_or("value", 0, 0, kMostPlanValue));
  HEDDLE_ASSIGN_OR_RETURN(plan.bound, root.number_or("bound", 0, 0, kMostPlanValue));
  HEDDLE_ASSIGN_OR_RETURN(plan.bound_reason, root.string_or("bound_reason", ""));
  HEDDLE_ASSIGN_OR_RETURN(plan.planning_s, root.number_or("planning_s", 0, 0, kMostPlanValue));
  plan.models.resize(fleet.models.size());
  std::vector<bool> seen(fleet.models.size(), false);
  std::vector<std::string> names;
  for (const auto& m : fleet.models) names.push_back(m.name);
  HEDDLE_ASSIGN_OR_RETURN(const auto models_at, root.at("models"));
  HEDDLE_ASSIGN_OR_RETURN(const auto models, models_at.elements(kMaxFleetModels));
  for (const auto& at : models) {
    HEDDLE_RETURN_IF_ERROR(at.check_keys({"model", "rate_per_s", "pipelines"}));
    HEDDLE_ASSIGN_OR_RETURN(const auto index, named(at, "model", names, "model"));
    const auto m = static_cast<size_t>(index);
    if (seen[m]) return at.error("the model " + quote_text(names[m]) + " stands twice");
    seen[m] = true;
    HEDDLE_ASSIGN_OR_RETURN(plan.models[m].rate_per_s, at.number_or("rate_per_s", 0, 0, kMostPlanValue));
    HEDDLE_ASSIGN_OR_RETURN(const auto pipelines_at, at.at("pipelines"));
    HEDDLE_ASSIGN_OR_RETURN(const auto pipelines, pipelines_at.elements(kMaxPipelines));
    for (const auto& pipeline : pipelines) {
      HEDDLE_ASSIGN_OR_RETURN(auto read, read_pipeline(pipeline, fleet, fleet.models[m]));
      plan.models[m].pipelines.push_back(std::move(read));
    }
  }
  return plan;
}

Json to_json(const FleetPlan& plan, const Fleet& fleet) {
  Json models = Json::array();
  for (size_t m = 0; m < plan.models.size(); ++m) {
    Json pipelines = Json::array();
    for (const auto& p : plan.models[m].pipelines) {
      Json partitions = Json::array();
      for (const auto& q : p.partitions)
        partitions.push_back({{"blocks", {q.block_from, q.block_to}},
                              {"class", fleet.classes[static_cast<size_t>(q.device_class)].name},
                              {"share", q.share},
                              {"count", q.count}});
      pipelines.push_back(
          {{"batch", p.batch}, {"rate_per_s", p.rate_per_s}, {"partitions", std::move(partitions)}});
    }
    models.push_back({{"model", fleet.models[m].name},
                      {"rate_per_s", plan.models[m].rate_per_s},
                      {"pipelines", std::move(pipelines)}});
  }
  return {{"format", "heddle-fleet-plan"},
          {"version", 1},
          {"fleet", plan.fleet},
          {"planner", plan.planner},
          {"objective", fleet_objective_name(plan.objective)},
          {"load_per_s", plan.load_per_s},
          {"value", plan.value},
          {"bound", plan.bound},
          {"bound_reason", plan.bound_reason},
          {"planning_s", plan.planning_s},
          {"models", std::move(models)}};
}

Result<FleetPlan> read_fleet_plan(const std::string& path, const Fleet& fleet) {
  return read_document<FleetPlan>(path, "fleet plan",
                                  [&](const Json& json) { return fleet_plan_from_json(json, fleet); });
}

Status write_fleet_plan(const std::string& path, const FleetPlan& plan, const Fleet& fleet) {
  return write_document(path, to_json(plan, fleet));
}

}  // namespace heddle
