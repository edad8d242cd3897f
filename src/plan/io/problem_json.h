// Problems inside plan files. Private to plan_file.
#pragma once

#include <memory>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/plan/problem.h"

namespace heddle {

inline constexpr double kMostProblemUs = 1e300;

Json problem_to_json(const Problem& problem);
Result<Problem> problem_from_json(const JsonCursor& cursor);
// A device by name.
Result<DeviceId> device_from_json(const Cluster& cluster, const JsonCursor& cursor);
// The elements of an array that must have one per `what`.
Result<std::vector<JsonCursor>> elements_of_size(const JsonCursor& cursor, size_t size, const char* what);

// costs_json.cc
Json costs_to_json(const CostTable& costs, const Cluster& cluster);
Result<std::shared_ptr<const CostTable>> costs_from_json(const JsonCursor& cursor, const Graph& graph,
                                                         const Cluster& cluster);

// transfers_json.cc: the members "transfer_us" and "rules" of a problem, where they are there.
Json transfer_times_to_json(const Problem& problem);
Status transfer_times_from_json(const JsonCursor& cursor, Problem& problem);
Json rules_to_json(const PlacementRules& rules);
Status rules_from_json(const JsonCursor& cursor, Problem& problem);

}  // namespace heddle
