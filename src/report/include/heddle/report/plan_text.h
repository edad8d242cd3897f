// A plan and how good it is: for people and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/plan_file.h"
#include "heddle/session/compare.h"
#include "heddle/session/replan.h"
#include "heddle/session/robust.h"
#include "heddle/session/session.h"

namespace heddle {

// "12.3 ms" or "81.2 /s", by objective.
std::string value_text(const Problem& problem, double us);
// Fills value_us (latencies) or value_per_s (throughput) and bound in the same unit.
void put_value(Json& row, const Problem& problem, double value_us, double bound_us);

// Value and bound, planning time, devices; what is lost on a busy machine, stages, narrower types.
std::string plan_text(const Session& session, const PlanResult& result,
                      const std::optional<RobustPlan>& robust);
Json plan_json(const Session& session, const PlanResult& result, const std::optional<RobustPlan>& robust);
// Of plan_json(): what a planner's result has without its devices.
Json result_json(const Problem& problem, const PlanResult& result);

// What the checker says of the plan `name`.
std::string check_text(const std::string& name, const PlanFile& plan, const CheckReport& report);
Json check_json(const PlanFile& plan, const CheckReport& report);

// Several planners' results.
std::string comparison_text(const Session& session, const std::vector<ComparedPlan>& plans);
Json comparison_json(const Problem& problem, const std::vector<ComparedPlan>& plans);

// Plans for other hardware, beside the first, which is for the hardware as it is.
std::string replanned_text(const std::vector<Replanned>& rows);
Json replanned_json(const std::vector<Replanned>& rows);

}  // namespace heddle
