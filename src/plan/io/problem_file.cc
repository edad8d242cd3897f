#include "heddle/plan/problem_file.h"

#include "heddle/base/json.h"
#include "heddle/plan/flow_workload.h"
#include "heddle/plan/plan_file.h"

namespace heddle {
namespace {

Result<std::optional<ProblemFile>> problem_of(const Json& json) {
  if (is_plan_json(json)) {
    HEDDLE_ASSIGN_OR_RETURN(auto file, plan_from_json(JsonCursor(json)));
    return std::optional(ProblemFile{std::move(file.problem), "plan file"});
  }
  if (is_flow_workload(json)) {
    HEDDLE_ASSIGN_OR_RETURN(auto file, flow_workload_from_json(json));
    return std::optional(ProblemFile{std::move(file.problem), "flow workload"});
  }
  return std::optional<ProblemFile>();
}

}  // namespace

Result<std::optional<ProblemFile>> read_problem_file(const std::string& path) {
  if (!path.ends_with(".json")) return std::optional<ProblemFile>();
  const auto json = read_json_file(path);
  if (!json.ok()) return std::optional<ProblemFile>();
  auto file = problem_of(*json);
  if (!file.ok()) return std::move(file).error().with_context(path);
  return file;
}

}  // namespace heddle
