#include "heddle/plan/problem_file.h"

#include <filesystem>

#include "heddle/base/json.h"
#include "heddle/plan/flow_workload.h"
#include "heddle/plan/plan_file.h"

namespace heddle {
namespace {

constexpr const char* kPlacementKind = "placement workload";

Status check_unused(const ProblemFile& file, const PlacementOptions& options) {
  if (options.contiguous || options.pieces != 1)
    return invalid_input("contiguity and pieces are for placement workloads, this is a " + file.kind);
  const Objective own = file.problem.objective;
  if (options.objective == own || options.objective == Objective::kLatency) return {};
  return invalid_input("this " + file.kind + " has the objective " + objective_name(own) + ", not " +
                       objective_name(options.objective));
}

Result<std::optional<ProblemFile>> problem_of(const Json& json, const std::string& path,
                                              const PlacementOptions& options) {
  if (is_placement_workload(json)) {
    const auto name = std::filesystem::path(path).stem().string();
    HEDDLE_ASSIGN_OR_RETURN(auto problem, placement_workload_from_json(json, name, options));
    return std::optional(ProblemFile{std::move(problem), kPlacementKind});
  }
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

Result<std::optional<ProblemFile>> read_problem_file(const std::string& path,
                                                     const PlacementOptions& options) {
  if (!path.ends_with(".json")) return std::optional<ProblemFile>();
  const auto json = read_json_file(path);
  if (!json.ok()) return std::optional<ProblemFile>();
  auto file = problem_of(*json, path, options);
  if (!file.ok()) return std::move(file).error().with_context(path);
  if (*file && (*file)->kind != kPlacementKind) {
    if (auto fits = check_unused(**file, options); !fits.ok())
      return std::move(fits).error().with_context(path);
  }
  return file;
}

}  // namespace heddle
