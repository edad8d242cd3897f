// heddle grade and heddle export: placements of other tools.
#include <fmt/format.h>

#include "heddle/base/errors.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/plan/plan_file.h"
#include "heddle/report/grade_text.h"
#include "heddle/session/grade.h"
#include "model_flags.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

Result<std::optional<PlacementFormat>> format_of(const char* flag, const std::string& name) {
  if (name.empty()) return std::optional<PlacementFormat>();
  if (const auto format = placement_format_named(name)) return format;
  return unknown_name(flag, name, placement_format_names());
}

struct GradeOptions : PlanningFlags {
  std::string placement, format, output, planner = "auto";
};

Result<int> run_grade(const GradeOptions& o, const Invocation& invocation) {
  HEDDLE_RETURN_IF_ERROR(check_output(o.output));
  HEDDLE_RETURN_IF_ERROR(check_planner(o.planner));
  if (o.placement.empty()) return invalid_input("grade needs --placement FILE");
  HEDDLE_ASSIGN_OR_RETURN(const auto format, format_of("--format", o.format));
  HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(o.placement));
  HEDDLE_ASSIGN_OR_RETURN(const auto source, o.model.source());
  HEDDLE_ASSIGN_OR_RETURN(const auto settings, o.problem.settings());
  HEDDLE_ASSIGN_OR_RETURN(const Grade graded,
                          grade(source, nullptr, text, format, settings, o.planner, o.search, invocation));
  if (invocation.progress) invocation.progress->finish();
  show_notes(graded.session.loaded, invocation);
  if (!o.output.empty())
    HEDDLE_RETURN_IF_ERROR(
        write_plan_file(o.output, plan_file(graded.session.problem, graded.graded, o.search.seed)));
  show_result(invocation, grade_json(graded), grade_text(graded));
  return kExitDone;
}

struct ExportOptions {
  std::string plan, to, output;
};

Result<int> run_export(const ExportOptions& o, const Invocation& invocation) {
  if (o.to.empty()) return invalid_input("export needs --to FORMAT, for example --to device-map");
  HEDDLE_ASSIGN_OR_RETURN(const auto format, format_of("--to", o.to));
  HEDDLE_RETURN_IF_ERROR(check_output(o.output));
  HEDDLE_ASSIGN_OR_RETURN(const auto file, read_plan_file(o.plan));
  // Other tools know the model's own nodes.
  HEDDLE_ASSIGN_OR_RETURN(const auto model, load_model_of(file.problem, o.plan));
  HEDDLE_ASSIGN_OR_RETURN(
      const auto text,
      with_context(placement_text(file, model ? *model->graph() : *file.problem.graph, *format), o.plan));
  if (o.output.empty()) {
    if (invocation.json)
      show_json(invocation, {{"format", o.to}, {"placement", text}});
    else
      print("{}", text);
    return kExitDone;
  }
  HEDDLE_RETURN_IF_ERROR(write_file_atomic(o.output, text));
  show_result(invocation, {{"output", o.output}}, fmt::format("written to {}\n", o.output));
  return kExitDone;
}

}  // namespace

RunFn setup_grade(Command& command) {
  auto o = std::make_shared<GradeOptions>();
  o->declare(command);
  command.option("--placement", o->placement, "the placement's file");
  command.option(
      "--format", o->format,
      "device-map (accelerate), openvino (affinities), cuts, llama.cpp (-ts shares), vllm (layers per "
      "device) or json (default: found out)");
  command.option("--planner", o->planner, "one of `heddle planners`, for both plans (default auto)");
  command.option("-o,--output", o->output, "write the plan as placed to this file (JSON)");
  return [o](const Invocation& invocation) { return run_grade(*o, invocation); };
}

RunFn setup_export(Command& command) {
  auto o = std::make_shared<ExportOptions>();
  command.positional("PLAN", o->plan, "a plan file");
  command.option("--to", o->to, "device-map, openvino, cuts, llama.cpp, vllm or json");
  command.option("-o,--output", o->output, "write to this file (default: print)");
  return [o](const Invocation& invocation) { return run_export(*o, invocation); };
}

}  // namespace heddle::cli
