#include "problem_json.h"

#include <cmath>

#include "heddle/base/hash.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/graph/graph_json.h"

namespace heddle {
namespace {

constexpr double kMostProblemUs = 1e300;
constexpr int kMostBatch = 1 << 30;
constexpr int kMostStageWidth = 1 << 20;
constexpr double kMostFactor = 1e6;
// One letter per origin, in the enum's order.
constexpr std::string_view kOriginLetters = "mgise";

Json time_to_json(double us) { return std::isfinite(us) ? Json(us) : Json(nullptr); }

Result<double> time_from_json(const JsonCursor& cursor) {
  if (cursor.value().is_null()) return kImpossible;
  return cursor.as_number(0, kMostProblemUs);
}

char letter_of(Origin origin) { return kOriginLetters[static_cast<size_t>(origin)]; }

Result<Origin> origin_from_letter(char letter, const JsonCursor& cursor) {
  const size_t i = kOriginLetters.find(letter);
  if (i == std::string_view::npos) {
    return cursor.error(
        "unknown origin of a time; expected letters of \"mgise\" (measured, given, interpolated, "
        "scaled, estimated)");
  }
  return static_cast<Origin>(i);
}

Json utilizations_to_json(const CostTable& costs) {
  Json rows = Json::array();
  for (size_t v = 0; v < costs.num_ops(); ++v) {
    Json row = Json::array();
    for (size_t d = 0; d < costs.num_devices(); ++d) row.push_back(costs.utilization(OpId(v), DeviceId(d)));
    rows.push_back(std::move(row));
  }
  return rows;
}

Json host_access_to_json(const CostTable& costs) {
  Json rows = Json::array();
  for (size_t v = 0; v < costs.num_ops(); ++v) {
    Json row = Json::array();
    for (size_t d = 0; d < costs.num_devices(); ++d)
      row.push_back(time_to_json(costs.host_access_us(OpId(v), DeviceId(d))));
    rows.push_back(std::move(row));
  }
  return rows;
}

Json stage_models_to_json(const CostTable& costs) {
  Json rows = Json::array();
  for (size_t d = 0; d < costs.num_devices(); ++d) {
    const StageModel model = costs.stage_model(DeviceId(d));
    Json row;
    row["serial"] = model.serial;
    row["overlap"] = model.overlap;
    row["launch_us"] = model.launch_us;
    rows.push_back(std::move(row));
  }
  return rows;
}

// One row per op. Origins: one letter if all agree, else one word per op with a letter per device. Spreads
// are left out when all are 0.
Json costs_to_json(const CostTable& costs, const Cluster& cluster) {
  Json us = Json::array(), origins = Json::array(), spreads = Json::array();
  bool one_origin = true, any_spread = false;
  for (size_t v = 0; v < costs.num_ops(); ++v) {
    Json row = Json::array(), spread_row = Json::array();
    std::string letters;
    for (size_t d = 0; d < costs.num_devices(); ++d) {
      const Cost cost = costs.at(OpId(v), DeviceId(d));
      row.push_back(time_to_json(cost.us));
      spread_row.push_back(cost.rel_spread);
      letters += letter_of(cost.origin);
      any_spread = any_spread || cost.rel_spread != 0;
      one_origin = one_origin && cost.origin == costs.at(OpId(0), DeviceId(0)).origin;
    }
    us.push_back(std::move(row));
    spreads.push_back(std::move(spread_row));
    origins.push_back(std::move(letters));
  }
  Json json;
  json["us"] = std::move(us);
  if (one_origin && costs.num_ops() > 0) {
    json["origin"] = std::string(1, letter_of(costs.at(OpId(0), DeviceId(0)).origin));
  } else {
    json["origin"] = std::move(origins);
  }
  if (any_spread) json["rel_spread"] = std::move(spreads);
  if (costs.has_utilizations()) json["utilization"] = utilizations_to_json(costs);
  if (costs.has_host_access()) json["host_access_us"] = host_access_to_json(costs);
  if (costs.has_stage_models()) json["stage_models"] = stage_models_to_json(costs);
  Json segments = Json::array();
  for (const SegmentCost& s : costs.segments()) {
    Json ops = Json::array();
    for (const OpId op : s.ops) ops.push_back(op.value);
    Json segment;
    segment["ops"] = std::move(ops);
    segment["device"] = cluster.device(s.device).name;
    segment["us"] = time_to_json(s.cost.us);
    segment["origin"] = std::string(1, letter_of(s.cost.origin));
    segment["rel_spread"] = s.cost.rel_spread;
    segments.push_back(std::move(segment));
  }
  if (!segments.empty()) json["segments"] = std::move(segments);
  return json;
}

Result<std::vector<JsonCursor>> elements_of_size(const JsonCursor& cursor, size_t size, const char* what) {
  HEDDLE_ASSIGN_OR_RETURN(auto elements, cursor.elements());
  if (elements.size() != size) {
    return cursor.error("has " + std::to_string(elements.size()) + " elements, expected one per " + what +
                        ": " + std::to_string(size));
  }
  return elements;
}

// One word of letters per op; a single letter stands for all times.
Result<std::vector<std::string>> origins_from_json(const JsonCursor& cursor, size_t ops, size_t devices) {
  if (cursor.value().is_string()) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string letter, cursor.as_string());
    if (letter.size() != 1)
      return cursor.error("expected one letter for all times, or a list with a word per op");
    return std::vector<std::string>(1, letter);
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto rows, elements_of_size(cursor, ops, "op"));
  std::vector<std::string> words;
  for (const JsonCursor& row : rows) {
    HEDDLE_ASSIGN_OR_RETURN(words.emplace_back(), row.as_string());
    if (words.back().size() != devices)
      return row.error("expected one letter per device: " + std::to_string(devices));
  }
  return words;
}

Status table_from_json(const JsonCursor& cursor, CostTable& costs) {
  const size_t devices = costs.num_devices();
  HEDDLE_ASSIGN_OR_RETURN(const auto us, cursor.at("us"));
  HEDDLE_ASSIGN_OR_RETURN(const auto rows, elements_of_size(us, costs.num_ops(), "op"));
  HEDDLE_ASSIGN_OR_RETURN(const auto origin, cursor.at("origin"));
  HEDDLE_ASSIGN_OR_RETURN(const auto letters, origins_from_json(origin, costs.num_ops(), devices));
  std::vector<JsonCursor> spread_rows;
  if (cursor.has("rel_spread")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto spread, cursor.at("rel_spread"));
    HEDDLE_ASSIGN_OR_RETURN(spread_rows, elements_of_size(spread, costs.num_ops(), "op"));
  }
  for (size_t v = 0; v < rows.size(); ++v) {
    HEDDLE_ASSIGN_OR_RETURN(const auto row, elements_of_size(rows[v], devices, "device"));
    std::vector<JsonCursor> spreads;
    if (!spread_rows.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(spreads, elements_of_size(spread_rows[v], devices, "device"));
    }
    for (size_t d = 0; d < devices; ++d) {
      Cost cost;
      HEDDLE_ASSIGN_OR_RETURN(cost.us, time_from_json(row[d]));
      const char letter =
          letters.size() == costs.num_ops() && letters[v].size() == devices ? letters[v][d] : letters[0][0];
      HEDDLE_ASSIGN_OR_RETURN(cost.origin, origin_from_letter(letter, origin));
      if (!spreads.empty()) {
        HEDDLE_ASSIGN_OR_RETURN(cost.rel_spread, spreads[d].as_number(0, 1e30));
      }
      costs.set(OpId(v), DeviceId(d), cost);
    }
  }
  return {};
}

Result<SegmentCost> segment_cost_from_json(const JsonCursor& cursor, const Cluster& cluster, size_t ops) {
  HEDDLE_RETURN_IF_ERROR(cursor.check_keys({"ops", "device", "us", "origin", "rel_spread"}));
  SegmentCost segment;
  HEDDLE_ASSIGN_OR_RETURN(const auto list, cursor.at("ops"));
  HEDDLE_ASSIGN_OR_RETURN(const auto ids, list.as_ints(0, static_cast<int64_t>(ops) - 1));
  for (const int64_t id : ids) {
    if (!segment.ops.empty() && segment.ops.back().value >= id)
      return list.error("expected ascending op numbers");
    segment.ops.emplace_back(static_cast<int32_t>(id));
  }
  if (segment.ops.empty()) return list.error("expected at least one op");
  HEDDLE_ASSIGN_OR_RETURN(const auto device, cursor.at("device"));
  HEDDLE_ASSIGN_OR_RETURN(segment.device, device_from_json(cluster, device));
  HEDDLE_ASSIGN_OR_RETURN(const auto us, cursor.at("us"));
  HEDDLE_ASSIGN_OR_RETURN(segment.cost.us, time_from_json(us));
  HEDDLE_ASSIGN_OR_RETURN(const auto origin, cursor.at("origin"));
  HEDDLE_ASSIGN_OR_RETURN(const std::string letter, origin.as_string());
  if (letter.size() != 1) return origin.error("expected one letter");
  HEDDLE_ASSIGN_OR_RETURN(segment.cost.origin, origin_from_letter(letter[0], origin));
  HEDDLE_ASSIGN_OR_RETURN(segment.cost.rel_spread, cursor.number_or("rel_spread", 0, 0, 1e30));
  return segment;
}

Status utilizations_from_json(const JsonCursor& cursor, CostTable& costs) {
  if (!cursor.has("utilization")) return {};
  HEDDLE_ASSIGN_OR_RETURN(const auto list, cursor.at("utilization"));
  HEDDLE_ASSIGN_OR_RETURN(const auto rows, elements_of_size(list, costs.num_ops(), "op"));
  for (size_t v = 0; v < rows.size(); ++v) {
    HEDDLE_ASSIGN_OR_RETURN(const auto row, elements_of_size(rows[v], costs.num_devices(), "device"));
    for (size_t d = 0; d < row.size(); ++d) {
      HEDDLE_ASSIGN_OR_RETURN(const double u, row[d].as_number(0, 1));
      costs.set_utilization(OpId(v), DeviceId(d), u);
    }
  }
  return {};
}

Status host_access_from_json(const JsonCursor& cursor, CostTable& costs) {
  if (!cursor.has("host_access_us")) return {};
  HEDDLE_ASSIGN_OR_RETURN(const auto list, cursor.at("host_access_us"));
  HEDDLE_ASSIGN_OR_RETURN(const auto rows, elements_of_size(list, costs.num_ops(), "op"));
  for (size_t v = 0; v < rows.size(); ++v) {
    HEDDLE_ASSIGN_OR_RETURN(const auto row, elements_of_size(rows[v], costs.num_devices(), "device"));
    for (size_t d = 0; d < row.size(); ++d) {
      HEDDLE_ASSIGN_OR_RETURN(const double us, time_from_json(row[d]));
      costs.set_host_access(OpId(v), DeviceId(d), us);
    }
  }
  return {};
}

Status stage_models_from_json(const JsonCursor& cursor, CostTable& costs) {
  if (!cursor.has("stage_models")) return {};
  HEDDLE_ASSIGN_OR_RETURN(const auto list, cursor.at("stage_models"));
  HEDDLE_ASSIGN_OR_RETURN(const auto rows, elements_of_size(list, costs.num_devices(), "device"));
  for (size_t d = 0; d < rows.size(); ++d) {
    HEDDLE_RETURN_IF_ERROR(rows[d].check_keys({"serial", "overlap", "launch_us"}));
    StageModel model;
    HEDDLE_ASSIGN_OR_RETURN(model.serial, rows[d].number_or("serial", 1, 0, kMostFactor));
    HEDDLE_ASSIGN_OR_RETURN(model.overlap, rows[d].number_or("overlap", 0, 0, kMostFactor));
    HEDDLE_ASSIGN_OR_RETURN(model.launch_us, rows[d].number_or("launch_us", 0, 0, kMostProblemUs));
    costs.set_stage_model(DeviceId(d), model);
  }
  return {};
}

Result<std::shared_ptr<const CostTable>> costs_from_json(const JsonCursor& cursor, const Graph& graph,
                                                         const Cluster& cluster) {
  HEDDLE_RETURN_IF_ERROR(cursor.check_keys(
      {"us", "origin", "rel_spread", "segments", "utilization", "stage_models", "host_access_us"}));
  // Count the rows before allocating the table: its size then follows the text, not a number in it.
  HEDDLE_ASSIGN_OR_RETURN(const auto us, cursor.at("us"));
  HEDDLE_ASSIGN_OR_RETURN(const auto rows, elements_of_size(us, graph.num_ops(), "op"));
  for (const JsonCursor& row : rows)
    HEDDLE_RETURN_IF_ERROR(elements_of_size(row, cluster.num_devices(), "device"));
  auto costs = std::make_shared<CostTable>(graph.num_ops(), cluster.num_devices());
  HEDDLE_RETURN_IF_ERROR(table_from_json(cursor, *costs));
  if (cursor.has("segments")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto list, cursor.at("segments"));
    HEDDLE_ASSIGN_OR_RETURN(const auto segments, list.elements());
    for (const JsonCursor& s : segments) {
      HEDDLE_ASSIGN_OR_RETURN(auto segment, segment_cost_from_json(s, cluster, graph.num_ops()));
      costs->set_segment(std::move(segment));
    }
  }
  HEDDLE_RETURN_IF_ERROR(utilizations_from_json(cursor, *costs));
  HEDDLE_RETURN_IF_ERROR(stage_models_from_json(cursor, *costs));
  HEDDLE_RETURN_IF_ERROR(host_access_from_json(cursor, *costs));
  return std::shared_ptr<const CostTable>(std::move(costs));
}

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

Status execution_from_json(const JsonCursor& cursor, ExecutionModel& execution) {
  HEDDLE_RETURN_IF_ERROR(cursor.check_keys(
      {"link_contention", "engine_contention", "stage_width", "fixed_sharing", "parameter_drops"}));
  HEDDLE_ASSIGN_OR_RETURN(execution.fixed_sharing, cursor.bool_or("fixed_sharing", false));
  HEDDLE_ASSIGN_OR_RETURN(execution.parameter_drops, cursor.bool_or("parameter_drops", false));
  HEDDLE_ASSIGN_OR_RETURN(execution.link_contention, cursor.bool_or("link_contention", true));
  HEDDLE_ASSIGN_OR_RETURN(execution.engine_contention, cursor.bool_or("engine_contention", true));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t width, cursor.int_or("stage_width", 1, 1, kMostStageWidth));
  execution.stage_width = static_cast<int>(width);
  return {};
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
  HEDDLE_RETURN_IF_ERROR(cursor.check_keys(
      {"objective", "batch", "execution", "devices", "resident", "model", "graph", "cluster", "costs"}));
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
  if (cursor.has("model")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto model, cursor.at("model"));
    HEDDLE_ASSIGN_OR_RETURN(p.model, model_from_json(model));
  }
  if (auto valid = validate(p); !valid.ok()) return cursor.error(valid.error().message());
  return p;
}

}  // namespace heddle
