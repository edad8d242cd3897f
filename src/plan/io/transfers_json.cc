// Given times of transfers and rules of placement inside problems.
#include <memory>

#include "heddle/base/fields.h"
#include "problem_json.h"

namespace heddle {
namespace {

Status matrix_from_json(const JsonCursor& cursor, size_t devices, TransferTimes& times) {
  if (cursor.value().is_null()) {
    times.matrix.push_back(-1);
    return {};
  }
  const size_t numbers_of_matrix = devices * devices;
  times.matrix.push_back(static_cast<int32_t>(times.us.size() / numbers_of_matrix));
  return each_of(devices, "device", [&](size_t, const JsonCursor& row) -> Status {
    HEDDLE_RETURN_IF_ERROR(check_size(row, devices, "device"));
    HEDDLE_ASSIGN_OR_RETURN(const auto values, row.as_numbers(0, kMostProblemUs));
    times.us.insert(times.us.end(), values.begin(), values.end());
    return {};
  })(cursor);
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

Status transfer_times_from_json(const JsonCursor& at, Problem& p) {
  auto times = std::make_shared<TransferTimes>();
  HEDDLE_RETURN_IF_ERROR(check_size(at, p.graph->num_tensors(), "tensor"));
  if (p.execution.transfers == Transfers::kGiven) {
    const auto read = each(
        [&](const JsonCursor& tensor) { return matrix_from_json(tensor, p.cluster->num_devices(), *times); });
    HEDDLE_RETURN_IF_ERROR(read(at));
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

Result<std::shared_ptr<const PlacementRules>> rules_from_json(const JsonCursor& at) {
  auto rules = std::make_shared<PlacementRules>();
  Fields f(at);
  f.optional("colour", rules->colour, -1, INT32_MAX)
      .optional("backward", rules->backward, 0, 1)
      .optional("contiguous", rules->contiguous)
      .optional("most_segments", rules->most_segments, 0, INT32_MAX - 1);
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return std::shared_ptr<const PlacementRules>(std::move(rules));
}

}  // namespace heddle
