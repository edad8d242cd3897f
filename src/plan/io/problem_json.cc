#include "problem_json.h"

#include "heddle/base/hash.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/graph/graph_json.h"

namespace heddle {
namespace {

constexpr int kMostBatch = 1 << 30;
constexpr int kMostStageWidth = 1 << 20;

Json model_to_json(const ModelReference& model) {
  Json json;
  json["path"] = model.path;
  json["file_hash"] = hex64(model.file_hash);
  Json shapes = Json::object();
  for (const auto& [name, shape] : model.shapes) shapes[name] = shape;
  json["shapes"] = std::move(shapes);
  if (model.batch) json["batch"] = *model.batch;
  if (model.split_bytes > 0) json["split_bytes"] = model.split_bytes;
  return json;
}

Result<ModelReference> model_from_json(const JsonCursor& cursor) {
  HEDDLE_RETURN_IF_ERROR(cursor.check_keys({"path", "file_hash", "shapes", "batch", "split_bytes"}));
  ModelReference model;
  HEDDLE_ASSIGN_OR_RETURN(const auto path, cursor.at("path"));
  HEDDLE_ASSIGN_OR_RETURN(model.path, path.as_string());
  HEDDLE_ASSIGN_OR_RETURN(const auto hash, cursor.at("file_hash"));
  HEDDLE_ASSIGN_OR_RETURN(const std::string digits, hash.as_string());
  if (digits.size() != 16 || digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return hash.error("expected 16 lower-case hexadecimal digits");
  }
  model.file_hash = std::stoull(digits, nullptr, 16);
  HEDDLE_ASSIGN_OR_RETURN(const auto shapes, cursor.at("shapes"));
  if (!shapes.value().is_object()) return shapes.error("expected an object from input names to dimensions");
  for (const auto& [name, shape] : shapes.value().items()) {
    HEDDLE_ASSIGN_OR_RETURN(const auto at, shapes.at(name));
    HEDDLE_ASSIGN_OR_RETURN(model.shapes[name], at.as_ints(0, INT64_MAX));
  }
  if (cursor.has("batch")) {
    HEDDLE_ASSIGN_OR_RETURN(model.batch, cursor.int_or("batch", 1, 1, kMostBatch));
  }
  HEDDLE_ASSIGN_OR_RETURN(model.split_bytes, cursor.int_or("split_bytes", 0, 0, INT64_MAX));
  return model;
}

Result<Transfers> transfers_from_json(const JsonCursor& execution) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string name, execution.string_or("transfers", "routes"));
  for (const Transfers t : {Transfers::kRoutes, Transfers::kGiven, Transfers::kWithinRuns}) {
    if (name == transfers_name(t)) return t;
  }
  return execution.error("unknown transfers '" + name + "', expected routes, given or within-runs");
}

Status execution_from_json(const JsonCursor& cursor, ExecutionModel& execution) {
  HEDDLE_RETURN_IF_ERROR(
      cursor.check_keys({"link_contention", "engine_contention", "stage_width", "fixed_sharing",
                         "parameter_drops", "transfers", "unlimited_cpus"}));
  HEDDLE_ASSIGN_OR_RETURN(execution.transfers, transfers_from_json(cursor));
  HEDDLE_ASSIGN_OR_RETURN(execution.unlimited_cpus, cursor.bool_or("unlimited_cpus", false));
  HEDDLE_ASSIGN_OR_RETURN(execution.fixed_sharing, cursor.bool_or("fixed_sharing", false));
  HEDDLE_ASSIGN_OR_RETURN(execution.parameter_drops, cursor.bool_or("parameter_drops", false));
  HEDDLE_ASSIGN_OR_RETURN(execution.link_contention, cursor.bool_or("link_contention", true));
  HEDDLE_ASSIGN_OR_RETURN(execution.engine_contention, cursor.bool_or("engine_contention", true));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t width, cursor.int_or("stage_width", 1, 1, kMostStageWidth));
  execution.stage_width = static_cast<int>(width);
  return {};
}

// By the first device of each memory; memories without any are left out.
Json resident_to_json(const Problem& p) {
  Json memories = Json::object();
  std::vector<uint8_t> seen(p.resident.size(), 0);
  for (size_t d = 0; d < p.cluster->num_devices(); ++d) {
    const auto pool = static_cast<size_t>(p.cluster->memory_pool(DeviceId(d)));
    if (seen[pool] || p.resident[pool].empty()) continue;
    seen[pool] = 1;
    Json list = Json::array();
    for (const ParamId q : p.resident[pool]) list.push_back(q.value);
    memories[p.cluster->devices()[d].name] = std::move(list);
  }
  return memories;
}

Status resident_from_json(const JsonCursor& problem, Problem& p) {
  if (!problem.has("resident")) return {};
  HEDDLE_ASSIGN_OR_RETURN(const auto memories, problem.at("resident"));
  if (!memories.value().is_object())
    return memories.error("expected an object from devices to lists of parameters");
  p.resident.resize(static_cast<size_t>(p.cluster->num_memory_pools()));
  for (const auto& [name, value] : memories.value().items()) {
    HEDDLE_ASSIGN_OR_RETURN(const auto list, memories.at(name));
    const DeviceId device = p.cluster->find_device(name);
    if (!device.valid()) return list.error("the cluster has no device '" + name + "'");
    auto& here = p.resident[static_cast<size_t>(p.cluster->memory_pool(device))];
    if (!here.empty()) return list.error("another device of the same memory was named before");
    HEDDLE_ASSIGN_OR_RETURN(const auto ids, list.as_ints(0, static_cast<int64_t>(p.graph->num_params()) - 1));
    for (const int64_t id : ids) here.emplace_back(static_cast<int32_t>(id));
  }
  return {};
}

}  // namespace

Result<std::vector<JsonCursor>> elements_of_size(const JsonCursor& cursor, size_t size, const char* what) {
  HEDDLE_ASSIGN_OR_RETURN(auto elements, cursor.elements());
  if (elements.size() != size) {
    return cursor.error("has " + std::to_string(elements.size()) + " elements, expected one per " + what +
                        ": " + std::to_string(size));
  }
  return elements;
}

Result<DeviceId> device_from_json(const Cluster& cluster, const JsonCursor& cursor) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string name, cursor.as_string());
  const DeviceId device = cluster.find_device(name);
  if (device.valid()) return device;
  std::vector<std::string> names;
  for (const Device& d : cluster.devices()) names.push_back(d.name);
  return cursor.error("the cluster has no device '" + name + "'" + did_you_mean(name, names));
}

Json problem_to_json(const Problem& p) {
  Json json;
  json["objective"] = objective_name(p.objective);
  json["batch"] = p.batch;
  if (p.execution.stage_width != 1) json["execution"]["stage_width"] = p.execution.stage_width;
  json["execution"]["link_contention"] = p.execution.link_contention;
  json["execution"]["engine_contention"] = p.execution.engine_contention;
  if (p.execution.fixed_sharing) json["execution"]["fixed_sharing"] = true;
  if (p.execution.parameter_drops) json["execution"]["parameter_drops"] = true;
  if (p.execution.transfers != Transfers::kRoutes) {
    json["execution"]["transfers"] = transfers_name(p.execution.transfers);
    json["transfer_us"] = transfer_times_to_json(p);
  }
  if (p.execution.unlimited_cpus) json["execution"]["unlimited_cpus"] = true;
  if (p.rules) json["rules"] = rules_to_json(*p.rules);
  if (!p.resident.empty()) json["resident"] = resident_to_json(p);
  if (!p.devices.empty()) {
    Json names = Json::array();
    for (const DeviceId d : p.devices) names.push_back(p.cluster->device(d).name);
    json["devices"] = std::move(names);
  }
  if (p.model) json["model"] = model_to_json(*p.model);
  json["graph"] = graph_to_json(*p.graph);
  json["cluster"] = cluster_to_json(*p.cluster);
  json["costs"] = costs_to_json(*p.costs, *p.cluster);
  return json;
}

Result<Problem> problem_from_json(const JsonCursor& cursor) {
  HEDDLE_RETURN_IF_ERROR(cursor.check_keys({"objective", "batch", "execution", "devices", "resident", "model",
                                            "graph", "cluster", "costs", "transfer_us", "rules"}));
  Problem p;
  HEDDLE_ASSIGN_OR_RETURN(const auto objective, cursor.at("objective"));
  HEDDLE_ASSIGN_OR_RETURN(const std::string name, objective.as_string());
  const auto known = objective_from_name(name);
  if (!known)
    return objective.error("unknown objective '" + name + "', expected latency, cold-latency or throughput");
  p.objective = *known;
  HEDDLE_ASSIGN_OR_RETURN(const int64_t batch, cursor.int_or("batch", 1, 1, kMostBatch));
  p.batch = static_cast<int>(batch);
  HEDDLE_ASSIGN_OR_RETURN(const auto execution, cursor.at("execution"));
  HEDDLE_RETURN_IF_ERROR(execution_from_json(execution, p.execution));
  HEDDLE_ASSIGN_OR_RETURN(const auto graph, cursor.at("graph"));
  HEDDLE_ASSIGN_OR_RETURN(p.graph, graph_from_json(graph));
  HEDDLE_ASSIGN_OR_RETURN(const auto cluster, cursor.at("cluster"));
  HEDDLE_ASSIGN_OR_RETURN(p.cluster, cluster_from_json(cluster));
  HEDDLE_ASSIGN_OR_RETURN(const auto costs, cursor.at("costs"));
  HEDDLE_ASSIGN_OR_RETURN(p.costs, costs_from_json(costs, *p.graph, *p.cluster));
  if (cursor.has("devices")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto list, cursor.at("devices"));
    HEDDLE_ASSIGN_OR_RETURN(const auto names, list.elements(p.cluster->num_devices()));
    for (const JsonCursor& d : names) {
      HEDDLE_ASSIGN_OR_RETURN(const DeviceId id, device_from_json(*p.cluster, d));
      if (!p.devices.empty() && !(p.devices.back() < id))
        return d.error("expected the cluster's order, each device once");
      p.devices.push_back(id);
    }
  }
  HEDDLE_RETURN_IF_ERROR(resident_from_json(cursor, p));
  HEDDLE_RETURN_IF_ERROR(transfer_times_from_json(cursor, p));
  HEDDLE_RETURN_IF_ERROR(rules_from_json(cursor, p));
  if (cursor.has("model")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto model, cursor.at("model"));
    HEDDLE_ASSIGN_OR_RETURN(p.model, model_from_json(model));
  }
  if (auto valid = validate(p); !valid.ok()) return cursor.error(valid.error().message());
  return p;
}

}  // namespace heddle
