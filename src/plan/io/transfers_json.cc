// Given times of transfers and rules of placement inside problems.
#include <memory>

#include "heddle/base/json.h"
#include "problem_json.h"

namespace heddle {
namespace {

Status matrix_from_json(const JsonCursor& cursor, size_t devices, int32_t& count, TransferTimes& times) {
  if (cursor.value().is_null()) {
    times.matrix.push_back(-1);
    return {};
  }
  times.matrix.push_back(count++);
  HEDDLE_ASSIGN_OR_RETURN(const auto rows, elements_of_size(cursor, devices, "device"));
  for (const JsonCursor& row : rows) {
    HEDDLE_RETURN_IF_ERROR(elements_of_size(row, devices, "device"));
    HEDDLE_ASSIGN_OR_RETURN(const auto values, row.as_numbers(0, kMostProblemUs));
    times.us.insert(times.us.end(), values.begin(), values.end());
  }
  return {};
}

}  // namespace

// Given: per tensor a row for each device that it leaves, null for an order without data. Within runs: per
// tensor a number.
Json transfer_times_to_json(const Problem& p) {
  if (p.execution.transfers == Transfers::kWithinRuns) return p.transfers->us;
  const size_t devices = p.cluster->num_devices();
  Json list = Json::array();
  for (const int32_t matrix : p.transfers->matrix) {
    if (matrix < 0) {
      list.push_back(nullptr);
      continue;
    }
    Json rows = Json::array();
    for (size_t from = 0; from < devices; ++from) {
      const double* row = p.transfers->us.data() + (static_cast<size_t>(matrix) * devices + from) * devices;
      rows.push_back(std::vector<double>(row, row + devices));
    }
    list.push_back(std::move(rows));
  }
  return list;
}

Status transfer_times_from_json(const JsonCursor& problem, Problem& p) {
  if (!problem.has("transfer_us")) return {};
  HEDDLE_ASSIGN_OR_RETURN(const auto at, problem.at("transfer_us"));
  HEDDLE_ASSIGN_OR_RETURN(const auto list, elements_of_size(at, p.graph->num_tensors(), "tensor"));
  auto times = std::make_shared<TransferTimes>();
  if (p.execution.transfers == Transfers::kGiven) {
    int32_t count = 0;
    for (const JsonCursor& tensor : list)
      HEDDLE_RETURN_IF_ERROR(matrix_from_json(tensor, p.cluster->num_devices(), count, *times));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(times->us, at.as_numbers(0, kMostProblemUs));
  }
  p.transfers = std::move(times);
  return {};
}

Json rules_to_json(const PlacementRules& rules) {
  Json json = Json::object();
  if (!rules.colour.empty()) json["colour"] = rules.colour;
  if (!rules.backward.empty())
    json["backward"] = std::vector<int>(rules.backward.begin(), rules.backward.end());
  if (rules.contiguous) json["contiguous"] = true;
  if (rules.most_segments > 0) json["most_segments"] = rules.most_segments;
  return json;
}

Status rules_from_json(const JsonCursor& problem, Problem& p) {
  if (!problem.has("rules")) return {};
  HEDDLE_ASSIGN_OR_RETURN(const auto at, problem.at("rules"));
  HEDDLE_RETURN_IF_ERROR(at.check_keys({"colour", "backward", "contiguous", "most_segments"}));
  auto rules = std::make_shared<PlacementRules>();
  if (at.has("colour")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto colours, at.at("colour"));
    HEDDLE_ASSIGN_OR_RETURN(const auto list, colours.as_ints(-1, INT32_MAX));
    rules->colour.assign(list.begin(), list.end());
  }
  if (at.has("backward")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto backward, at.at("backward"));
    HEDDLE_ASSIGN_OR_RETURN(const auto list, backward.as_ints(0, 1));
    rules->backward.assign(list.begin(), list.end());
  }
  HEDDLE_ASSIGN_OR_RETURN(rules->contiguous, at.bool_or("contiguous", false));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t most, at.int_or("most_segments", 0, 0, INT32_MAX - 1));
  rules->most_segments = static_cast<int>(most);
  p.rules = std::move(rules);
  return {};
}

}  // namespace heddle
