#include "problem_json.h"

#include <cfloat>

#include "heddle/base/hash.h"
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
  for (const auto& [name, values] : model.values) json["values"][name] = values;
  return json;
}

Result<ModelReference> model_from_json(const JsonCursor& cursor) {
  ModelReference model;
  Fields f(cursor);
  f.required("path", model.path)
      .required("file_hash", model.file_hash, hex64_from_text, kHex64Expected)
      .required("shapes", each_member("an object from input names to dimensions",
                                      [&](const std::string& name, const JsonCursor& shape) {
                                        return take(shape, model.shapes[name], 0, INT64_MAX);
                                      }))
      .optional("batch", model.batch, 1, kMostBatch)
      .optional("split_bytes", model.split_bytes, 0)
      .optional("values", each_member("an object from input names to values",
                                      [&](const std::string& name, const JsonCursor& values) {
                                        return take(values, model.values[name], -DBL_MAX, DBL_MAX);
                                      }));
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return model;
}

Result<ExecutionModel> execution_from_json(const JsonCursor& cursor) {
  ExecutionModel execution;
  Fields f(cursor);
  f.optional("transfers", execution.transfers, transfers_from_name, "'routes', 'given' or 'within-runs'")
      .optional("unlimited_cpus", execution.unlimited_cpus)
      .optional("fixed_sharing", execution.fixed_sharing)
      .optional("parameter_drops", execution.parameter_drops)
      .optional("link_contention", execution.link_contention)
      .optional("engine_contention", execution.engine_contention)
      .optional("stage_width", execution.stage_width, 1, kMostStageWidth);
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return execution;
}

// Named by the first device of each memory; memories without resident parameters are left out.
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

Status resident_from_json(const JsonCursor& cursor, Problem& p) {
  p.resident.resize(static_cast<size_t>(p.cluster->num_memory_pools()));
  const auto read = [&p](const std::string& name, const JsonCursor& list) -> Status {
    const DeviceId device = p.cluster->find_device(name);
    if (!device.valid()) return list.error("the cluster has no device '" + name + "'");
    auto& here = p.resident[static_cast<size_t>(p.cluster->memory_pool(device))];
    if (!here.empty()) return list.error("another device of the same memory was named before");
    return take(list, here, p.graph->num_params());
  };
  return each_member("an object from devices to lists of parameters", read)(cursor);
}

Status devices_from_json(const JsonCursor& cursor, Problem& p) {
  const auto read = [&p](const JsonCursor& at) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const DeviceId id, device_from_json(at, *p.cluster));
    if (!p.devices.empty() && !(p.devices.back() < id))
      return at.error("expected the cluster's order, each device once");
    p.devices.push_back(id);
    return {};
  };
  return each(read, p.cluster->num_devices())(cursor);
}

}  // namespace

Status check_size(const JsonCursor& cursor, size_t size, const char* what) {
  HEDDLE_ASSIGN_OR_RETURN(const size_t found, cursor.array_size());
  if (found == size) return {};
  return cursor.error("has " + std::to_string(found) + " elements, expected one per " + what + ": " +
                      std::to_string(size));
}

Result<DeviceId> device_from_json(const JsonCursor& cursor, const Cluster& cluster) {
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
  if (p.precision) json["precision"] = precision_to_json(*p.precision);
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
  Problem p;
  Fields f(cursor);
  f.required("objective", p.objective, objective_from_name, "'latency', 'cold-latency' or 'throughput'")
      .optional("batch", p.batch, 1, kMostBatch)
      .required("execution", p.execution, execution_from_json)
      .required("graph", p.graph, graph_from_json)
      .required("cluster", p.cluster, cluster_from_json)
      .required("costs", p.costs,
                [&](const JsonCursor& at) { return costs_from_json(at, *p.graph, *p.cluster); })
      .optional("devices", [&](const JsonCursor& at) { return devices_from_json(at, p); })
      .optional("resident", [&](const JsonCursor& at) { return resident_from_json(at, p); })
      .optional("transfer_us", [&](const JsonCursor& at) { return transfer_times_from_json(at, p); })
      .optional("rules", p.rules, rules_from_json)
      .optional("precision", p.precision,
                [&](const JsonCursor& at) { return precision_from_json(at, p.graph->num_ops()); })
      .optional("model", p.model, model_from_json);
  HEDDLE_RETURN_IF_ERROR(f.finish());
  if (auto valid = validate(p); !valid.ok()) return cursor.error(valid.error().message());
  return p;
}

}  // namespace heddle
