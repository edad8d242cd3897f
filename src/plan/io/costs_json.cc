// Cost tables inside problems.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "problem_json.h"

namespace heddle {
namespace {

constexpr double kMostFactor = 1e6, kMostSpread = 1e30;
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

// A row per op with what `value` gives for each device.
template <class Value>
Json table_to_json(const CostTable& costs, Value value) {
  Json rows = Json::array();
  for (size_t v = 0; v < costs.num_ops(); ++v) {
    Json& row = rows.emplace_back(Json::array());
    for (size_t d = 0; d < costs.num_devices(); ++d) row.push_back(value(OpId(v), DeviceId(d)));
  }
  return rows;
}

// A reader of such rows.
template <class Read>
auto each_entry(size_t ops, size_t devices, Read read) {
  return each_of(ops, "op", [=](size_t v, const JsonCursor& row) {
    const auto read_entry = [&](size_t d, const JsonCursor& at) { return read(OpId(v), DeviceId(d), at); };
    return each_of(devices, "device", read_entry)(row);
  });
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

// One letter for all times, or a word of letters per op.
Status origins_from_json(const JsonCursor& cursor, CostTable& costs) {
  const auto set = [&costs](size_t v, size_t d, char letter, const JsonCursor& at) -> Status {
    Cost cost = costs.at(OpId(v), DeviceId(d));
    HEDDLE_ASSIGN_OR_RETURN(cost.origin, origin_from_letter(letter, at));
    costs.set(OpId(v), DeviceId(d), cost);
    return {};
  };
  const size_t devices = costs.num_devices();
  if (!cursor.value().is_string()) {
    return each_of(costs.num_ops(), "op", [&](size_t v, const JsonCursor& at) -> Status {
      HEDDLE_ASSIGN_OR_RETURN(const std::string word, at.as_string());
      if (word.size() != devices)
        return at.error("expected one letter per device: " + std::to_string(devices));
      for (size_t d = 0; d < devices; ++d) HEDDLE_RETURN_IF_ERROR(set(v, d, word[d], at));
      return {};
    })(cursor);
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::string letter, cursor.as_string());
  if (letter.size() != 1)
    return cursor.error("expected one letter for all times, or a list with a word per op");
  for (size_t v = 0; v < costs.num_ops(); ++v) {
    for (size_t d = 0; d < devices; ++d) HEDDLE_RETURN_IF_ERROR(set(v, d, letter[0], cursor));
  }
  return {};
}

Result<SegmentCost> segment_cost_from_json(const JsonCursor& cursor, const Cluster& cluster, size_t ops) {
  SegmentCost segment;
  Fields f(cursor);
  f.required("ops",
             [&](const JsonCursor& list) -> Status {
               HEDDLE_RETURN_IF_ERROR(take(list, segment.ops, ops));
               if (segment.ops.empty()) return list.error("expected at least one op");
               if (std::is_sorted(segment.ops.begin(), segment.ops.end(), std::less_equal())) return {};
               return list.error("expected ascending op numbers");
             })
      .required("device", segment.device, device_from_json, cluster)
      .required("us", segment.cost.us, time_from_json)
      .required("origin",
                [&](const JsonCursor& at) -> Status {
                  HEDDLE_ASSIGN_OR_RETURN(const std::string letter, at.as_string());
                  if (letter.size() != 1) return at.error("expected one letter");
                  return take(at, segment.cost.origin,
                              [&](const JsonCursor&) { return origin_from_letter(letter[0], at); });
                })
      .optional("rel_spread", segment.cost.rel_spread, 0, kMostSpread);
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return segment;
}

Result<StageModel> stage_model_from_json(const JsonCursor& cursor) {
  StageModel model;
  Fields f(cursor);
  f.optional("serial", model.serial, 0, kMostFactor)
      .optional("overlap", model.overlap, 0, kMostFactor)
      .optional("launch_us", model.launch_us, 0, kMostProblemUs);
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return model;
}

}  // namespace

// Rows per op. Origins: one letter when all agree, else a word of letters per op. Spreads: left out when all
// are 0.
Json costs_to_json(const CostTable& costs, const Cluster& cluster) {
  Json origins = Json::array();
  bool one_origin = costs.num_ops() > 0, any_spread = false;
  for (size_t v = 0; v < costs.num_ops(); ++v) {
    std::string letters;
    for (size_t d = 0; d < costs.num_devices(); ++d) {
      const Cost cost = costs.at(OpId(v), DeviceId(d));
      letters += letter_of(cost.origin);
      any_spread = any_spread || cost.rel_spread != 0;
      one_origin = one_origin && cost.origin == costs.at(OpId(0), DeviceId(0)).origin;
    }
    origins.push_back(std::move(letters));
  }
  Json json;
  json["us"] = table_to_json(costs, [&](OpId op, DeviceId d) { return time_to_json(costs.us(op, d)); });
  json["origin"] = one_origin ? Json(std::string(1, letter_of(costs.at(OpId(0), DeviceId(0)).origin)))
                              : std::move(origins);
  if (any_spread)
    json["rel_spread"] =
        table_to_json(costs, [&](OpId op, DeviceId d) { return costs.at(op, d).rel_spread; });
  if (costs.has_utilizations())
    json["utilization"] = table_to_json(costs, [&](OpId op, DeviceId d) { return costs.utilization(op, d); });
  if (costs.has_host_access())
    json["host_access_us"] =
        table_to_json(costs, [&](OpId op, DeviceId d) { return time_to_json(costs.host_access_us(op, d)); });
  if (costs.has_stage_models()) json["stage_models"] = stage_models_to_json(costs);
  if (costs.has_core_taken()) {
    Json& factors = json["core_taken"] = Json::array();
    for (size_t d = 0; d < costs.num_devices(); ++d) {
      const double factor = costs.core_taken(DeviceId(d));
      factors.push_back(factor > 0 ? Json(factor) : Json(nullptr));
    }
  }
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
  const size_t ops = graph.num_ops(), devices = cluster.num_devices();
  std::shared_ptr<CostTable> costs;
  Fields f(cursor);
  // The rows are counted before the table is allocated: its size follows the text, not a number in it.
  f.required("us", each_of(ops, "op",
                           [=](size_t, const JsonCursor& row) { return check_size(row, devices, "device"); }))
      .then([&] {
        costs = std::make_shared<CostTable>(ops, devices);
        return Status();
      })
      .required("us", each_entry(ops, devices,
                                 [&](OpId op, DeviceId device, const JsonCursor& at) -> Status {
                                   Cost cost;
                                   HEDDLE_ASSIGN_OR_RETURN(cost.us, time_from_json(at));
                                   costs->set(op, device, cost);
                                   return {};
                                 }))
      .required("origin", [&](const JsonCursor& at) { return origins_from_json(at, *costs); })
      .optional("rel_spread", each_entry(ops, devices,
                                         [&](OpId op, DeviceId device, const JsonCursor& at) -> Status {
                                           Cost cost = costs->at(op, device);
                                           HEDDLE_RETURN_IF_ERROR(take(at, cost.rel_spread, 0, kMostSpread));
                                           costs->set(op, device, cost);
                                           return {};
                                         }))
      .optional("segments", each([&](const JsonCursor& at) -> Status {
                  HEDDLE_ASSIGN_OR_RETURN(auto segment, segment_cost_from_json(at, cluster, ops));
                  costs->set_segment(std::move(segment));
                  return {};
                }))
      .optional("utilization", each_entry(ops, devices,
                                          [&](OpId op, DeviceId device, const JsonCursor& at) -> Status {
                                            HEDDLE_ASSIGN_OR_RETURN(const double share, at.as_number(0, 1));
                                            costs->set_utilization(op, device, share);
                                            return {};
                                          }))
      .optional("host_access_us", each_entry(ops, devices,
                                             [&](OpId op, DeviceId device, const JsonCursor& at) -> Status {
                                               HEDDLE_ASSIGN_OR_RETURN(const double us, time_from_json(at));
                                               costs->set_host_access(op, device, us);
                                               return {};
                                             }))
      .optional("stage_models", each_of(devices, "device",
                                        [&](size_t d, const JsonCursor& at) -> Status {
                                          HEDDLE_ASSIGN_OR_RETURN(const StageModel model,
                                                                  stage_model_from_json(at));
                                          costs->set_stage_model(DeviceId(d), model);
                                          return {};
                                        }))
      .optional("core_taken", each_of(devices, "device", [&](size_t d, const JsonCursor& at) -> Status {
                  if (at.value().is_null()) return {};
                  HEDDLE_ASSIGN_OR_RETURN(const double factor, at.as_number(1, kMostFactor));
                  costs->set_core_taken(DeviceId(d), factor);
                  return {};
                }));
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return std::shared_ptr<const CostTable>(std::move(costs));
}

}  // namespace heddle
