// Sessions of files that hold a whole problem.
#include "heddle/base/errors.h"
#include "heddle/plan/problem_file.h"
#include "session_parts.h"

namespace heddle {
namespace {

// The first setting that changes what the file holds; null when there is none.
const char* setting_against_file(const ModelSpec& source, const ProblemSettings& s) {
  const ImportOptions& import = source.import;
  return first_given({{"shapes and batch", !import.shapes.empty() || import.batch || import.split_bytes > 0},
                      {"values of inputs", !import.values.empty()},
                      {"a cluster", s.cluster != nullptr},
                      {"devices", !s.devices.empty() || s.simulation},
                      {"engines and precisions", s.variants.any()},
                      {"units", s.units > 0 || s.coarsening != Coarsening::kUsual},
                      {"contention", !s.contention || s.fixed_sharing},
                      {"stages", s.stage_width > 1 || s.stage_times != StageTimes::kUsual},
                      {"cold starts", s.host_access || s.drop_parameters || s.resident}});
}

}  // namespace

Session session_of(Problem problem) {
  Session session;
  session.loaded.given = true;
  session.loaded.name = problem.graph->name();
  session.loaded.graph = problem.graph;
  session.cluster = problem.cluster;
  session.problem = std::move(problem);
  return session;
}

Result<std::optional<Session>> open_given(const ModelSpec& source, const ProblemSettings& settings) {
  const PlacementOptions options{
      .objective = settings.objective, .contiguous = settings.contiguous, .pieces = settings.pieces};
  HEDDLE_ASSIGN_OR_RETURN(auto file, read_problem_file(source.path, options));
  if (!file && (settings.contiguous || settings.pieces != 1))
    return invalid_input(source.path + ": contiguity and pieces are for placement workloads");
  if (!file) return std::optional<Session>();
  if (const char* setting = setting_against_file(source, settings))
    return invalid_input(source.path + ": this " + file->kind +
                         " brings its own devices, times and rules; it takes no flags or arguments for " +
                         setting);
  return std::optional<Session>(session_of(std::move(file->problem)));
}

}  // namespace heddle
