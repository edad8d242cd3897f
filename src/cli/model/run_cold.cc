#include "run_cold.h"

#include <algorithm>

#include "heddle/base/json.h"
#include "heddle/base/temporary_file.h"
#include "heddle/base/units.h"
#include "heddle/report/run_tables.h"
#include "heddle/runtime/segment_cache.h"

namespace heddle::cli {
namespace {

constexpr int64_t kUsualCacheBytes = int64_t{4} << 30;
constexpr int kRequestsWithBudget = 3;

Json times_json(const ColdSegmentTimes& t) {
  return {{"load_us", t.load_us}, {"compile_us", t.compile_us}, {"wait_us", t.wait_us}, {"run_us", t.run_us}};
}

Json report_json(const PlanFile& file, const ColdReport& r, const ColdSettings& s, double bound_us) {
  Json segments = Json::array();
  for (size_t i = 0; i < r.measured.size(); ++i) {
    const Segment& segment = file.plan.segments[i];
    segments.push_back({{"segment", segment.name},
                        {"where", file.problem.cluster->device(segment.device).name},
                        {"cached", r.measured[i].cached},
                        {"predicted", times_json(r.predicted[i])},
                        {"measured", times_json(r.measured[i])}});
  }
  const ColdRun& start = r.median;
  Json requests = Json::array();
  for (size_t q = 0; q < start.request_us.size(); ++q)
    requests.push_back({{"latency_us", start.request_us[q]}, {"loaded", r.loaded(q)}});
  Json json = {{"cold", true},
               {"planner", file.planner},
               {"first_output_us", r.first_output_us},
               {"first_output_low_us", r.low_us},
               {"first_output_high_us", r.high_us},
               {"cpu_s", start.cpu_s},
               {"predicted_us", r.predicted_us},
               {"without_overlap_us", r.without_overlap_us},
               {"import_us", start.import_us},
               {"prepare_us", start.prepare_us},
               {"starts", s.repeats},
               {"load_workers", s.load_workers},
               {"budget_bytes", s.budget_bytes},
               {"peak_resident_bytes", start.peak_resident_bytes},
               {"outputs_compared", r.checked.verified},
               {"outputs_equal", r.checked.verified ? Json(r.checked.outputs_equal) : Json()},
               {"max_rel_error", r.checked.max_rel_error},
               {"max_abs_error", r.checked.max_abs_error},
               {"precision_error", r.checked.precision ? precision_error_json(*r.checked.precision) : Json()},
               {"requests", std::move(requests)},
               {"segments", std::move(segments)}};
  if (bound_us > 0) json["cut_bound_us"] = bound_us;
  if (r.versus) {
    const ColdWhole& w = r.versus->median;
    json["versus_openvino"] = {{"engine", engine_name(*s.versus)},
                               {"first_output_us", w.first_output_us},
                               {"read_us", w.read_us},
                               {"compile_us", w.compile_us},
                               {"run_us", w.run_us},
                               {"cpu_s", w.cpu_s},
                               {"cached", !s.cache_folder.empty()},
                               {"ratio", r.versus->ratio},
                               {"cpu_ratio", r.versus->cpu_ratio}};
  }
  return json;
}

void print_segments(const PlanFile& file, const ColdReport& r) {
  constexpr size_t kMostRows = 40;
  TextTable table({{"segment", TextTable::Align::kLeft, 24},
                   {"where"},
                   {"load", kRight},
                   {"measured", kRight},
                   {"compile", kRight},
                   {"measured", kRight},
                   {"wait", kRight},
                   {"measured", kRight},
                   {"execute", kRight},
                   {"measured", kRight}});
  for (size_t i = 0; i < r.measured.size() && i < kMostRows; ++i) {
    const Segment& segment = file.plan.segments[i];
    const ColdSegmentTimes &p = r.predicted[i], &m = r.measured[i];
    table.add_row({segment.name, file.problem.cluster->device(segment.device).name, format_us(p.load_us),
                   format_us(m.load_us), format_us(p.compile_us), format_us(m.compile_us),
                   format_us(p.wait_us), format_us(m.wait_us), format_us(p.run_us), format_us(m.run_us)});
  }
  print("{}", table.to_string());
  if (r.measured.size() > kMostRows)
    print("({} more segments; --json has them all)\n", r.measured.size() - kMostRows);
}

void print_report(const PlanFile& file, const ColdReport& r, const ColdSettings& s, double bound_us) {
  print_segments(file, r);
  const ColdRun& start = r.median;
  print("\nfirst output: {} (median of {} cold starts, {} to {}; CPU {:.2f} s)\n",
        format_us(r.first_output_us), s.repeats, format_us(r.low_us), format_us(r.high_us), start.cpu_s);
  print("  of that: import {}, plan, devices and memory {}, first request {}\n", format_us(start.import_us),
        format_us(start.prepare_us), format_us(start.request_us.front()));
  print("predicted: {}, from the segments' times alone; nothing overlapping took {}\n",
        format_us(r.predicted_us), format_us(r.without_overlap_us));
  if (bound_us > 0) print("predicted for any cut at borders of ops: at least {}\n", format_us(bound_us));
  for (size_t q = 1; q < start.request_us.size(); ++q) {
    print("request {}: {}, {} of {} segments loaded again\n", q + 1, format_us(start.request_us[q]),
          r.loaded(q), start.requests[q].size());
  }
  if (s.budget_bytes > 0) {
    print("budget: {}, at most {} of parameters were compiled at once\n", format_bytes(s.budget_bytes),
          format_bytes(start.peak_resident_bytes));
  }
  if (!s.cache_folder.empty()) {
    const auto cached = std::ranges::count_if(r.measured, &ColdSegmentTimes::cached);
    print("cache: {} of {} segments came from {}\n", cached, r.measured.size(), s.cache_folder);
  }
  if (r.checked.verified) {
    print("outputs{}: {} to the unsplit model's (max abs error {:.3g}, max rel error {:.3g})\n{}",
          r.checked.precision ? " of the plan in f32" : "", r.checked.outputs_equal ? "equal" : "NOT EQUAL",
          r.checked.max_abs_error, r.checked.max_rel_error, precision_text(r.checked.precision));
  } else {
    print("outputs: not compared\n");
  }
  if (r.versus) {
    const ColdWhole& w = r.versus->median;
    print("{} alone{}: {} (read {}, compile {}, run {}; CPU {:.2f} s)\n", engine_name(*s.versus),
          s.cache_folder.empty() ? "" : " with its own cache", format_us(w.first_output_us),
          format_us(w.read_us), format_us(w.compile_us), format_us(w.run_us), w.cpu_s);
    print("  this start takes {:.3f} of its time and {:.3f} of its CPU time (medians of {} pairs)\n",
          r.versus->ratio, r.versus->cpu_ratio, s.repeats);
  }
}

}  // namespace

void ColdFlags::declare(Command& command) {
  command.flag("--cold", cold,
               "start cold: load workers compile the segments while earlier ones run (docs/cold-run.md)");
  command.option(
      "--segments", segments,
      "--cold, for a MODEL: cut it into N by weight (default: where starts that are tried first say)", 1,
      100'000);
  command.option("--load-workers", load_workers,
                 "--cold: segments loaded at once (default: one a core, at most 4)", 1, 64);
  command.bytes("--budget-bytes", budget_bytes,
                "--cold: most bytes of parameters in compiled segments; each request loads the other "
                "segments again",
                1, INT64_MAX);
  command.option("--requests", requests,
                 "--cold: requests of each start, one after the other (default 1, with a budget 3)", 1,
                 10'000);
  command.flag("--cache", cache, "--cold: keep compiled segments in the user's cache folder");
  command.bytes("--cache-bytes", cache_bytes, "--cache: most bytes of all files there (default 4GiB)", 1,
                INT64_MAX);
}

Status ColdFlags::check() const {
  if (cold) {
    if (cache_bytes && !cache) return invalid_input("--cache-bytes needs --cache");
    if (budget_bytes && requests && *requests < 2)
      return invalid_input(
          "--budget-bytes limits what stays in memory between requests, so it needs --requests 2 "
          "or more");
    return {};
  }
  if (const char* flag = first_given({{"--segments", segments.has_value()},
                                      {"--load-workers", load_workers.has_value()},
                                      {"--budget-bytes", budget_bytes.has_value()},
                                      {"--requests", requests.has_value()},
                                      {"--cache", cache},
                                      {"--cache-bytes", cache_bytes.has_value()}}))
    return invalid_input(std::string(flag) + " needs --cold");
  return {};
}

Result<int> run_cold_verb(const ColdFlags& flags, ColdJob job, const Invocation& invocation) {
  ColdSettings& s = job.settings;
  s.load_workers = flags.load_workers.value_or(usual_load_workers());
  s.budget_bytes = flags.budget_bytes.value_or(0);
  s.requests = flags.requests.value_or(s.budget_bytes > 0 ? kRequestsWithBudget : 1);
  if (flags.cache) s.cache_folder = SegmentCache::default_folder();
  s.cache_bytes = flags.cache_bytes.value_or(kUsualCacheBytes);
  if (job.is_plan && flags.segments)
    return invalid_input("--segments cuts a MODEL; this plan has its segments");
  const TemporaryFile temporary("cold.json");
  std::string path = job.is_plan ? job.model.spec.path : temporary.path();
  ColdCutOutcome outcome;
  if (!job.is_plan) {
    if (!job.plan_output.empty()) path = job.plan_output;
    HEDDLE_ASSIGN_OR_RETURN(const auto source, job.model.source());
    HEDDLE_ASSIGN_OR_RETURN(const auto problem, job.problem.settings());
    HEDDLE_ASSIGN_OR_RETURN(outcome,
                            plan_cold(source, problem, flags.segments.value_or(0), s, path, invocation));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto report, measure_cold(path, s, invocation));
  HEDDLE_ASSIGN_OR_RETURN(const PlanFile file, read_plan_file(path));
  if (invocation.json) {
    Json json = report_json(file, report, s, cold_bound_us(outcome, report));
    if (outcome.split_bytes > 0) json["split_bytes"] = outcome.split_bytes;
    show_json(invocation, json);
  } else {
    if (invocation.progress) invocation.progress->finish();
    print_report(file, report, s, cold_bound_us(outcome, report));
    if (outcome.split_bytes > 0) {
      print("products with constants of more than {} are split (--split-weights {})\n",
            format_bytes(outcome.split_bytes), outcome.split_bytes);
    }
    if (!job.plan_output.empty()) print("written to {}\n", job.plan_output);
  }
  return report.checked.verified && !report.checked.right() ? kExitNo : kExitDone;
}

}  // namespace heddle::cli
