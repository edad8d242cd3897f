// Plan files: versioned JSON that holds the whole problem, so that it verifies alone (docs/plan-format.md).
#pragma once

#include <string>

#include "heddle/base/json_fwd.h"
#include "heddle/plan/bounds.h"
#include "heddle/plan/evaluator.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

inline constexpr int kPlanJsonVersion = 1;

struct PlanFile {
  Problem problem;
  Plan plan;
  Timeline predicted;  // start and finish of each step, as stored; recompute to trust
  Bound bound;
  std::string planner;  // who made it
  uint64_t seed = 0;
  double planning_s = 0;
};

bool is_plan_json(const Json& json);  // by its format
Json plan_to_json(const PlanFile& file);
Result<PlanFile> plan_from_json(const JsonCursor& cursor);
Result<PlanFile> read_plan_file(const std::string& path);
Status write_plan_file(const std::string& path, const PlanFile& file);

}  // namespace heddle
