// heddle verify, explain and report: checks, explanations and drawings of a plan or run file.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/plan_file.h"
#include "heddle/report/explain.h"
#include "heddle/report/run_file.h"
#include "heddle/report/timeline_view.h"
#include "model_flags.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct FileOptions {
  std::string file, output;
  bool strict = false;
};

Result<int> run_verify(const FileOptions& o, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto loaded, read_plan_or_run(o.file));
  const auto& plan = loaded.plan;
  const auto report = check(plan.problem, plan.plan, plan.predicted, plan.bound.us);
  const double value = objective_us(plan.problem, plan.predicted);
  if (invocation.json) {
    Json findings = Json::array();
    for (const auto& f : report.findings)
      findings.push_back({{"kind", violation_name(f.kind)}, {"message", f.message}});
    Json row = {{"verified", report.ok()},
                {"planner", plan.planner},
                {"objective", objective_name(plan.problem.objective)}};
    put_value(row, plan.problem, value, plan.bound.us);
    row["findings"] = findings;
    show_json(invocation, row);
    return report.ok() ? kExitDone : kExitNo;
  }
  if (report.ok()) {
    print("{}: valid. {} in {}, {}; {} {}, bound {} ({})\n", o.file,
          counted(plan.problem.graph->num_ops(), "op"), counted(plan.plan.segments.size(), "segment"),
          counted(plan.plan.steps.size(), "step"), objective_name(plan.problem.objective),
          value_text(plan.problem, value), value_text(plan.problem, plan.bound.us), plan.bound.proof.text());
    return kExitDone;
  }
  print("{}: NOT valid, {}:\n", o.file, counted(report.findings.size(), "finding"));
  for (const auto& f : report.findings) print("  {}: {}\n", violation_name(f.kind), f.message);
  return kExitNo;
}

Result<int> run_explain(const FileOptions& o, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto loaded, read_plan_or_run(o.file));
  const auto& plan = loaded.plan;
  HEDDLE_ASSIGN_OR_RETURN(const auto timeline, evaluate(plan.problem, plan.plan));
  const auto explanation = explain(plan.problem, plan.plan, timeline, plan.bound);
  show_result(invocation, explanation_json(explanation), explanation_text(explanation));
  const bool idle =
      std::ranges::any_of(explanation.devices, [](const auto& d) { return d.requested && !d.used; });
  return o.strict && idle ? kExitNo : kExitDone;
}

Result<std::string> render(const PlanOrRun& loaded, const std::string& path) {
  const auto& plan = loaded.plan;
  HEDDLE_ASSIGN_OR_RETURN(const auto timeline, evaluate(plan.problem, plan.plan));
  const auto view = make_timeline_view(plan.problem, plan.plan, timeline, plan.bound, plan.planner,
                                       loaded.run ? &*loaded.run : nullptr);
  if (path.ends_with(".svg")) return timeline_svg(view);
  if (path.ends_with(".json")) return timeline_trace_json(view);
  if (path.ends_with(".html"))
    return timeline_html(view, explanation_text(explain(plan.problem, plan.plan, timeline, plan.bound)));
  return invalid_input("-o " + path + ": expected a name that ends in .html, .svg or .json (trace)");
}

Result<int> run_report(const FileOptions& o, const Invocation& invocation) {
  if (o.output.empty()) return invalid_input("report needs -o FILE.html, FILE.svg or FILE.json");
  HEDDLE_ASSIGN_OR_RETURN(const auto loaded, read_plan_or_run(o.file));
  HEDDLE_ASSIGN_OR_RETURN(const auto content, render(loaded, o.output));
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
