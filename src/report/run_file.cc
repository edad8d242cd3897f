#include "heddle/report/run_file.h"

#include <algorithm>

#include "heddle/base/errors.h"
#include "heddle/base/fields.h"
#include "heddle/base/file.h"

namespace heddle {
namespace {

constexpr char kFormat[] = "heddle-run";
constexpr double kMaxTime = 1e18;
constexpr double kMostError = 1.7e308;  // JSON has no infinity, which is the error of a number that is none
constexpr int kMostRuns = 1 << 30;

Result<MeasuredStep> step_from_json(const JsonCursor& cursor) {
  HEDDLE_ASSIGN_OR_RETURN(const auto v, cursor.as_numbers(0, kMaxTime));
  if (v.size() != 4) return cursor.error("expected [start_us, finish_us, median_us, rel_spread]");
  return MeasuredStep{v[0], v[1], v[2], v[3]};
}

}  // namespace

Json run_record_to_json(const RunRecord& run) {
  Json steps = Json::array();
  for (const auto& s : run.steps) steps.push_back({s.start_us, s.finish_us, s.median_us, s.rel_spread});
  Json json = {{"warmups", run.warmups},
               {"repeats", run.repeats},
               {"requests_in_flight", run.requests_in_flight},
               {"predicted_us", run.predicted_us},
               {"measured_us", run.measured_us},
               {"verified", run.verified},
               {"outputs_equal", run.outputs_equal},
               {"max_abs_error", std::min(run.max_abs_error, kMostError)},
               {"max_rel_error", std::min(run.max_rel_error, kMostError)},
               {"rtol", run.rtol},
               {"atol", run.atol},
               {"outputs_compared", run.outputs_compared},
               {"latencies_us", run.latencies_us},
               {"steps", std::move(steps)}};
  if (run.precision) json["precision_error"] = precision_error_json(*run.precision);
  return json;
}

Result<RunRecord> run_record_from_json(const JsonCursor& cursor) {
  RunRecord run;
  Fields f(cursor);
  f.optional("warmups", run.warmups, 0, kMostRuns)
      .optional("repeats", run.repeats, 0, kMostRuns)
      .optional("requests_in_flight", run.requests_in_flight, 1, kMostRuns)
      .optional("predicted_us", run.predicted_us, 0, kMaxTime)
      .optional("measured_us", run.measured_us, 0, kMaxTime)
      .optional("verified", run.verified)
      .optional("outputs_equal", run.outputs_equal)
      .optional("max_abs_error", run.max_abs_error, 0, kMostError)
      .optional("max_rel_error", run.max_rel_error, 0, kMostError)
      .optional("precision_error", run.precision, precision_error_from_json)
      .optional("rtol", run.rtol, 0, 1e9)
      .optional("atol", run.atol, 0, 1e9)
      .required("outputs_compared", run.outputs_compared)
      .required("latencies_us", run.latencies_us, 0, kMaxTime)
      .required("steps", each_into(run.steps, step_from_json));
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return run;
}

bool is_run_json(const Json& json) { return has_format(json, kFormat); }

Json run_to_json(const RunFile& file) {
  return {{"format", kFormat},
          {"version", kRunJsonVersion},
          {"plan", plan_to_json(file.plan)},
          {"run", run_record_to_json(file.run)}};
}

Result<RunFile> run_from_json(const JsonCursor& cursor) {
  RunFile file;
  Fields f(cursor, kFormat, kRunJsonVersion);
  f.required("plan", file.plan, plan_from_json).required("run", [&](const JsonCursor& at) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(file.run, run_record_from_json(at));
    const size_t measured = file.run.steps.size(), planned = file.plan.plan.steps.size();
    if (measured == planned) return {};
    return at.error("has " + std::to_string(measured) + " measured steps, but the plan has " +
                    std::to_string(planned));
  });
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return file;
}

Result<PlanOrRun> read_plan_or_run(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const auto json, read_json_file(path));
  if (is_run_json(json)) {
    HEDDLE_ASSIGN_OR_RETURN(auto file, with_context(run_from_json(JsonCursor(json)), path));
    return PlanOrRun{std::move(file.plan), std::move(file.run)};
  }
  HEDDLE_ASSIGN_OR_RETURN(auto plan, with_context(plan_from_json(JsonCursor(json)), path));
  return PlanOrRun{std::move(plan), std::nullopt};
}

Status write_run_file(const std::string& path, const RunFile& file) {
  return write_file_atomic(path, json_text(run_to_json(file), 1));
}

Result<std::string> drawing(const PlanOrRun& loaded, const std::string& path) {
  const auto& plan = loaded.plan;
  HEDDLE_ASSIGN_OR_RETURN(const auto timeline, evaluate(plan.problem, plan.plan));
  const auto view = make_timeline_view(plan.problem, plan.plan, timeline, plan.bound, plan.planner,
                                       loaded.run ? &*loaded.run : nullptr);
  if (path.ends_with(".svg")) return timeline_svg(view);
  if (path.ends_with(".json")) return timeline_trace_json(view);
  if (path.ends_with(".html")) {
    return timeline_html(view, explain(plan.problem, plan.plan, timeline, plan.bound));
  }
  return invalid_input("-o " + path + ": expected a name that ends in .html, .svg or .json (trace)");
}

}  // namespace heddle
