#include "heddle/report/run_file.h"

#include "heddle/base/errors.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"

namespace heddle {
namespace {

constexpr char kFormat[] = "heddle-run";
constexpr double kMaxTime = 1e18;

Result<MeasuredStep> step_from_json(const JsonCursor& cursor) {
  HEDDLE_ASSIGN_OR_RETURN(const auto v, cursor.as_numbers(0, kMaxTime));
  if (v.size() != 4) return cursor.error("expected [start_us, finish_us, median_us, rel_spread]");
  return MeasuredStep{v[0], v[1], v[2], v[3]};
}

}  // namespace

Json run_record_to_json(const RunRecord& run) {
  Json steps = Json::array();
  for (const auto& s : run.steps) steps.push_back({s.start_us, s.finish_us, s.median_us, s.rel_spread});
  return {{"warmups", run.warmups},
          {"repeats", run.repeats},
          {"requests_in_flight", run.requests_in_flight},
          {"predicted_us", run.predicted_us},
          {"measured_us", run.measured_us},
          {"verified", run.verified},
          {"outputs_equal", run.outputs_equal},
          {"max_abs_error", run.max_abs_error},
          {"max_rel_error", run.max_rel_error},
          {"rtol", run.rtol},
          {"atol", run.atol},
          {"outputs_compared", run.outputs_compared},
          {"latencies_us", run.latencies_us},
          {"steps", std::move(steps)}};
}

Result<RunRecord> run_record_from_json(const JsonCursor& c) {
  HEDDLE_RETURN_IF_ERROR(c.check_keys(
      {"warmups", "repeats", "requests_in_flight", "predicted_us", "measured_us", "verified", "outputs_equal",
       "max_abs_error", "max_rel_error", "rtol", "atol", "outputs_compared", "latencies_us", "steps"}));
  RunRecord run;
  HEDDLE_ASSIGN_OR_RETURN(const auto warmups, c.int_or("warmups", 0, 0, 1 << 30));
  HEDDLE_ASSIGN_OR_RETURN(const auto repeats, c.int_or("repeats", 0, 0, 1 << 30));
  HEDDLE_ASSIGN_OR_RETURN(const auto in_flight, c.int_or("requests_in_flight", 1, 1, 1 << 30));
  run.warmups = static_cast<int>(warmups);
  run.repeats = static_cast<int>(repeats);
  run.requests_in_flight = static_cast<int>(in_flight);
  HEDDLE_ASSIGN_OR_RETURN(run.predicted_us, c.number_or("predicted_us", 0, 0, kMaxTime));
  HEDDLE_ASSIGN_OR_RETURN(run.measured_us, c.number_or("measured_us", 0, 0, kMaxTime));
  HEDDLE_ASSIGN_OR_RETURN(run.verified, c.bool_or("verified", false));
  HEDDLE_ASSIGN_OR_RETURN(run.outputs_equal, c.bool_or("outputs_equal", false));
  HEDDLE_ASSIGN_OR_RETURN(run.max_abs_error, c.number_or("max_abs_error", 0, 0, 1.7e308));
  HEDDLE_ASSIGN_OR_RETURN(run.max_rel_error, c.number_or("max_rel_error", 0, 0, 1.7e308));
  HEDDLE_ASSIGN_OR_RETURN(run.rtol, c.number_or("rtol", 0, 0, 1e9));
  HEDDLE_ASSIGN_OR_RETURN(run.atol, c.number_or("atol", 0, 0, 1e9));
  HEDDLE_ASSIGN_OR_RETURN(const auto compared, c.at("outputs_compared"));
  HEDDLE_ASSIGN_OR_RETURN(run.outputs_compared, compared.as_strings());
  HEDDLE_ASSIGN_OR_RETURN(const auto latencies, c.at("latencies_us"));
  HEDDLE_ASSIGN_OR_RETURN(run.latencies_us, latencies.as_numbers(0, kMaxTime));
  HEDDLE_ASSIGN_OR_RETURN(const auto steps, c.at("steps"));
  HEDDLE_ASSIGN_OR_RETURN(const auto elements, steps.elements());
  for (const auto& element : elements) {
    HEDDLE_ASSIGN_OR_RETURN(auto step, step_from_json(element));
    run.steps.push_back(step);
  }
  return run;
}

bool is_run_json(const Json& json) {
  return json.is_object() && json.contains("format") && json["format"] == kFormat;
}

Json run_to_json(const RunFile& file) {
  return {{"format", kFormat},
          {"version", kRunJsonVersion},
          {"plan", plan_to_json(file.plan)},
          {"run", run_record_to_json(file.run)}};
}

Result<RunFile> run_from_json(const JsonCursor& c) {
  HEDDLE_RETURN_IF_ERROR(c.check_keys({"format", "version", "plan", "run"}));
  HEDDLE_ASSIGN_OR_RETURN(const auto version, c.at("version"));
  HEDDLE_RETURN_IF_ERROR(version.as_int(1, kRunJsonVersion));
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, c.at("plan"));
  HEDDLE_ASSIGN_OR_RETURN(auto plan_file, plan_from_json(plan));
  HEDDLE_ASSIGN_OR_RETURN(const auto run, c.at("run"));
  HEDDLE_ASSIGN_OR_RETURN(auto record, run_record_from_json(run));
  if (record.steps.size() != plan_file.plan.steps.size()) {
    return run.error("has " + std::to_string(record.steps.size()) + " measured steps, but the plan has " +
                     std::to_string(plan_file.plan.steps.size()));
  }
  return RunFile{std::move(plan_file), std::move(record)};
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
  return write_file_atomic(path, run_to_json(file).dump(1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace heddle
