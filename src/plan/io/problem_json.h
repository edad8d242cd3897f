// JSON of problems inside plan files. Private to plan_file.
#pragma once

#include <memory>

#include "heddle/base/fields.h"
#include "heddle/plan/problem.h"

namespace heddle {

inline constexpr double kMostProblemUs = 1e300;

Json problem_to_json(const Problem& problem);
Result<Problem> problem_from_json(const JsonCursor& cursor);
// Finds a device by name.
Result<DeviceId> device_from_json(const JsonCursor& cursor, const Cluster& cluster);
// Fails unless the value is an array with one element per `what`.
Status check_size(const JsonCursor& cursor, size_t size, const char* what);
// A reader of such arrays, which calls `read` with each element and its index.
template <class Read>
auto each_of(size_t size, const char* what, Read read) {
  return [size, what, read](const JsonCursor& cursor) -> Status {
    HEDDLE_RETURN_IF_ERROR(check_size(cursor, size, what));
    for (size_t i = 0; i < size; ++i) HEDDLE_RETURN_IF_ERROR(read(i, cursor.element(i)));
    return {};
  };
}

// costs_json.cc
Json costs_to_json(const CostTable& costs, const Cluster& cluster);
Result<std::shared_ptr<const CostTable>> costs_from_json(const JsonCursor& cursor, const Graph& graph,
                                                         const Cluster& cluster);

// transfers_json.cc: the members "transfer_us" and "rules" of a problem
Json transfer_times_to_json(const Problem& problem);
Status transfer_times_from_json(const JsonCursor& cursor, Problem& problem);
Json rules_to_json(const PlacementRules& rules);
Result<std::shared_ptr<const PlacementRules>> rules_from_json(const JsonCursor& cursor);

// precision_json.cc: the member "precision" of a problem of so many units
Json precision_to_json(const PrecisionChoice& choice);
Result<std::shared_ptr<const PrecisionChoice>> precision_from_json(const JsonCursor& cursor, size_t units);

}  // namespace heddle
