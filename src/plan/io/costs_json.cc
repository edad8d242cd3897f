// Cost tables inside problems.
#include <cmath>
#include <string_view>

#include "heddle/base/json.h"
#include "problem_json.h"

namespace heddle {
namespace {

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

// The letters of each op; one letter stands for all.
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

}  // namespace

// Rows per op. Origins: one letter when all agree, else a word of letters per op. Spreads: left out when all
// are 0.
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

Result<std::shared_ptr<const CostTable>> costs_from_json(const JsonCursor& cursor, const Graph& graph,
                                                         const Cluster& cluster) {
  HEDDLE_RETURN_IF_ERROR(cursor.check_keys(
      {"us", "origin", "rel_spread", "segments", "utilization", "stage_models", "host_access_us"}));
  // The rows are counted before the table is allocated: its size follows the text, not a number in it.
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

}  // namespace heddle
