// Reads and writes plan files of fleets; the format is in docs/fleet.md.
#include "fleet_file.h"
#include "heddle/base/fields.h"
#include "heddle/base/spelling.h"
#include "heddle/fleet/fleet_plan.h"

namespace heddle {
namespace {

constexpr double kMostPlanValue = 1e18;
constexpr size_t kMaxPipelines = 100'000;

// The index of the named item among `items`; `kind` is for messages.
template <class Item>
Result<int> index_named(const JsonCursor& at, const std::vector<Item>& items, const char* kind) {
  HEDDLE_ASSIGN_OR_RETURN(const auto name, at.as_string());
  std::vector<std::string> names;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].name == name) return static_cast<int>(i);
    names.push_back(items[i].name);
  }
  return at.error(std::string("the fleet has no ") + kind + " " + quote_text(name) +
                  did_you_mean(name, names) + "; it has " + join_names(names));
}

Result<FleetPartition> read_partition(const JsonCursor& at, const Fleet& fleet, const FleetModel& model) {
  FleetPartition p;
  Fields f(at);
  f.required("blocks",
             [&](const JsonCursor& blocks_at) -> Status {
               HEDDLE_ASSIGN_OR_RETURN(const auto blocks, blocks_at.as_ints(0, model.blocks));
               if (blocks.size() != 2 || blocks[0] >= blocks[1])
                 return blocks_at.error("expected [from, to] with from < to: the blocks from..to-1");
               p.block_from = static_cast<int>(blocks[0]);
               p.block_to = static_cast<int>(blocks[1]);
               return {};
             })
      .required("class", p.device_class,
                [&](const JsonCursor& name) { return index_named(name, fleet.classes, "class"); })
      .optional("share", p.share, 1, kMaxShare)
      .required("count", p.count, 1, kMaxFleetDevices * kMaxShare);
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return p;
}

Result<FleetPipeline> read_pipeline(const JsonCursor& at, const Fleet& fleet, const FleetModel& model) {
  FleetPipeline p;
  const auto read = [&](const JsonCursor& partition) { return read_partition(partition, fleet, model); };
  Fields f(at);
  f.optional("batch", p.batch, 1, kMaxFleetBatch)
      .optional("rate_per_s", p.rate_per_s, 0, kMostPlanValue)
      .required("partitions", [&](const JsonCursor& partitions) -> Status {
        HEDDLE_RETURN_IF_ERROR(each_into(p.partitions, read, kMaxPartitions)(partitions));
        return p.partitions.empty() ? partitions.error("there is no partition; expected at least one")
                                    : Status();
      });
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return p;
}

Status read_model_plan(const JsonCursor& at, const Fleet& fleet, std::vector<bool>& seen, FleetPlan& plan) {
  int m = 0;
  ModelPlan read;
  Fields f(at);
  f.required("model", m, [&](const JsonCursor& name) { return index_named(name, fleet.models, "model"); })
      .optional("rate_per_s", read.rate_per_s, 0, kMostPlanValue)
      .optional(
          "margin",
          [&](const JsonCursor& margin) { return take(margin, read.margin_us.emplace(), kMicrosecondsUnit); })
      .required("pipelines", each_into(
                                 read.pipelines,
                                 [&](const JsonCursor& pipeline) {
                                   return read_pipeline(pipeline, fleet,
                                                        fleet.models[static_cast<size_t>(m)]);
                                 },
                                 kMaxPipelines));
  HEDDLE_RETURN_IF_ERROR(f.finish());
  const auto index = static_cast<size_t>(m);
  if (seen[index]) return at.error("the model " + quote_text(fleet.models[index].name) + " stands twice");
  seen[index] = true;
  plan.models[index] = std::move(read);
  return {};
}

}  // namespace

Result<FleetPlan> fleet_plan_from_json(const Json& json, const Fleet& fleet) {
  FleetPlan plan;
  plan.models.resize(fleet.models.size());
  std::vector<bool> seen(fleet.models.size(), false);
  Fields f(JsonCursor(json), "heddle-fleet-plan", 1);
  f.optional("fleet", plan.fleet)
      .optional("planner", plan.planner)
      .optional("objective", plan.objective, fleet_objective_named, "'max-min', 'cost', 'power' or 'goodput'")
      .optional("load_per_s", plan.load_per_s, 0, kMostPlanValue)
      .optional("value", plan.value, 0, kMostPlanValue)
      .optional("bound", plan.bound, 0, kMostPlanValue)
      .optional("bound_reason", plan.proof.reason)
      .optional("bound_claimed_by", plan.proof.claimed_by)
      .optional("planning_s", plan.planning_s, 0, kMostPlanValue)
      .required("models", each([&](const JsonCursor& at) { return read_model_plan(at, fleet, seen, plan); },
                               kMaxFleetModels));
  HEDDLE_RETURN_IF_ERROR(f.finish());
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
    if (plan.models[m].margin_us) models.back()["margin"] = *plan.models[m].margin_us;
  }
  return {{"format", "heddle-fleet-plan"},
          {"version", 1},
          {"fleet", plan.fleet},
          {"planner", plan.planner},
          {"objective", fleet_objective_name(plan.objective)},
          {"load_per_s", plan.load_per_s},
          {"value", plan.value},
          {"bound", plan.bound},
          {"bound_reason", plan.proof.reason},
          {"bound_claimed_by", plan.proof.claimed_by},
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
