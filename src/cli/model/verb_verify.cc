// heddle verify, explain and report: checks, explanations and drawings of a plan or run file.
#include <fmt/format.h>

#include <algorithm>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/graph/op_named.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/plan_file.h"
#include "heddle/report/explain.h"
#include "heddle/report/moves.h"
#include "heddle/report/plan_text.h"
#include "heddle/report/run_file.h"
#include "model_flags.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

constexpr double kExplainSeconds = 10;

struct FileOptions {
  std::string file, output;
  std::string op, device;  // of explain
  bool strict = false;
};

Result<int> run_verify(const FileOptions& o, const Invocation& invocation) {
  HEDDLE_RETURN_IF_ERROR(check_is_plan(o.file));
  HEDDLE_ASSIGN_OR_RETURN(const auto loaded, read_plan_or_run(o.file));
  const auto& plan = loaded.plan;
  const auto report = check(plan.problem, plan.plan, plan.predicted, plan.bound.us);
  show_result(invocation, check_json(plan, report), check_text(o.file, plan, report));
  return report.ok() ? kExitDone : kExitNo;
}

// Why the op is where it is: the plan's value with the op on each device.
Result<int> explain_op(const FileOptions& o, const PlanFile& plan, const Invocation& invocation) {
  const Problem& problem = plan.problem;
  HEDDLE_ASSIGN_OR_RETURN(const OpId op, op_named(*problem.graph, o.op));
  HEDDLE_ASSIGN_OR_RETURN(const auto moves, moves_of(problem, plan.plan, op));
  Json rows = Json::array();
  for (const Move& move : moves) rows.push_back(move_json(problem, move));
  show_result(invocation, rows, moves_text(problem, op, moves));
  return kExitDone;
}

// Why the device does no more: the best plan in which it takes over one segment or op.
Result<int> explain_device(const FileOptions& o, const PlanFile& plan, const Invocation& invocation) {
  const Problem& problem = plan.problem;
  HEDDLE_ASSIGN_OR_RETURN(const DeviceId device, device_named(*problem.cluster, o.device));
  HEDDLE_ASSIGN_OR_RETURN(
      const auto best,
      best_use(problem, plan.plan, device, Deadline::after_seconds(kExplainSeconds, invocation.cancel)));
  HEDDLE_ASSIGN_OR_RETURN(const auto timeline, evaluate(problem, plan.plan));
  const double now = objective_us(problem, timeline);
  Json json = best.move ? move_json(problem, *best.move) : Json::object();
  json["planned_us"] = now;
  json["tried"] = best.tried;
  json["candidates"] = best.candidates;
  show_result(invocation, json, best_use_text(problem, device, best, now));
  return kExitDone;
}

Result<int> run_explain(const FileOptions& o, const Invocation& invocation) {
  if (!o.op.empty() && !o.device.empty()) return invalid_input("--op and --device exclude each other");
  HEDDLE_RETURN_IF_ERROR(check_is_plan(o.file));
  HEDDLE_ASSIGN_OR_RETURN(const auto loaded, read_plan_or_run(o.file));
  const auto& plan = loaded.plan;
  if (!o.op.empty()) return explain_op(o, plan, invocation);
  if (!o.device.empty()) return explain_device(o, plan, invocation);
  HEDDLE_ASSIGN_OR_RETURN(const auto timeline, evaluate(plan.problem, plan.plan));
  const auto explanation = explain(plan.problem, plan.plan, timeline, plan.bound);
  show_result(invocation, explanation_json(explanation), explanation_text(explanation));
  const bool left_out = std::ranges::any_of(explanation.devices, &DeviceExplanation::is_left_out);
  return o.strict && left_out ? kExitNo : kExitDone;
}

Result<int> run_report(const FileOptions& o, const Invocation& invocation) {
  if (o.output.empty()) return invalid_input("report needs -o FILE.html, FILE.svg or FILE.json");
  HEDDLE_RETURN_IF_ERROR(check_is_plan(o.file));
  HEDDLE_ASSIGN_OR_RETURN(const auto loaded, read_plan_or_run(o.file));
  HEDDLE_ASSIGN_OR_RETURN(const auto content, drawing(loaded, o.output));
  HEDDLE_RETURN_IF_ERROR(write_file_atomic(o.output, content));
  show_result(
      invocation, {{"output", o.output}, {"bytes", content.size()}},
      fmt::format("written to {} ({})\n", o.output, format_bytes(static_cast<int64_t>(content.size()))));
  return kExitDone;
}

}  // namespace

RunFn setup_verify(Command& command) {
  auto o = std::make_shared<FileOptions>();
  command.positional("PLAN", o->file, "a plan or run file");
  return [o](const Invocation& invocation) { return run_verify(*o, invocation); };
}

RunFn setup_explain(Command& command) {
  auto o = std::make_shared<FileOptions>();
  command.positional("PLAN", o->file, "a plan or run file");
  command.option("--op", o->op, "an op or ONNX node: what the plan would take with it on each device");
  command.option("--device", o->device, "the best plan in which this device takes over a segment or an op");
  command.flag("--strict", o->strict, "exit with status 1 if a requested device is not used");
  return [o](const Invocation& invocation) { return run_explain(*o, invocation); };
}

RunFn setup_report(Command& command) {
  auto o = std::make_shared<FileOptions>();
  command.positional("FILE", o->file, "a plan or run file");
  command.option("-o,--output", o->output, "FILE.html, FILE.svg or FILE.json (Chrome/Perfetto trace)");
  return [o](const Invocation& invocation) { return run_report(*o, invocation); };
}

}  // namespace heddle::cli
