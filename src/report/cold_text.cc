#include "heddle/report/cold_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/report/run_tables.h"
#include "heddle/report/text_table.h"

namespace heddle {
namespace {

Json times_json(const ColdSegmentTimes& t) {
  return {{"load_us", t.load_us}, {"compile_us", t.compile_us}, {"wait_us", t.wait_us}, {"run_us", t.run_us}};
}

std::string segments_text(const PlanFile& file, const ColdReport& r) {
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
  if (r.measured.size() <= kMostRows) return table.to_string();
  return table.to_string() +
         fmt::format("({} more segments; --json has them all)\n", r.measured.size() - kMostRows);
}

}  // namespace

Json cold_json(const PlanFile& file, const ColdReport& r, const ColdSettings& s, double bound_us) {
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

std::string cold_text(const PlanFile& file, const ColdReport& r, const ColdSettings& s, double bound_us) {
  std::string text = segments_text(file, r);
  const ColdRun& start = r.median;
  text += fmt::format("\nfirst output: {} (median of {} cold starts, {} to {}; CPU {:.2f} s)\n",
                      format_us(r.first_output_us), s.repeats, format_us(r.low_us), format_us(r.high_us),
                      start.cpu_s);
  text += fmt::format("  of that: import {}, plan, devices and memory {}, first request {}\n",
                      format_us(start.import_us), format_us(start.prepare_us),
                      format_us(start.request_us.front()));
  text += fmt::format("predicted: {}, from the segments' times alone; nothing overlapping took {}\n",
                      format_us(r.predicted_us), format_us(r.without_overlap_us));
  if (bound_us > 0)
    text += fmt::format("predicted for any cut at borders of ops: at least {}\n", format_us(bound_us));
  for (size_t q = 1; q < start.request_us.size(); ++q) {
    text += fmt::format("request {}: {}, {} of {} segments loaded again\n", q + 1,
                        format_us(start.request_us[q]), r.loaded(q), start.requests[q].size());
  }
  if (s.budget_bytes > 0) {
    text += fmt::format("budget: {}, at most {} of parameters were compiled at once\n",
                        format_bytes(s.budget_bytes), format_bytes(start.peak_resident_bytes));
  }
  if (!s.cache_folder.empty()) {
    const auto cached = std::ranges::count_if(r.measured, &ColdSegmentTimes::cached);
    text += fmt::format("cache: {} of {} segments came from {}\n", cached, r.measured.size(), s.cache_folder);
  }
  if (r.checked.verified) {
    text += fmt::format(
        "outputs{}: {} to the unsplit model's (max abs error {:.3g}, max rel error {:.3g})\n{}",
        r.checked.precision ? " of the plan in f32" : "", r.checked.outputs_equal ? "equal" : "NOT EQUAL",
        r.checked.max_abs_error, r.checked.max_rel_error, precision_text(r.checked.precision));
  } else {
    text += "outputs: not compared\n";
  }
  if (r.versus) {
    const ColdWhole& w = r.versus->median;
    text +=
        fmt::format("{} alone{}: {} (read {}, compile {}, run {}; CPU {:.2f} s)\n", engine_name(*s.versus),
                    s.cache_folder.empty() ? "" : " with its own cache", format_us(w.first_output_us),
                    format_us(w.read_us), format_us(w.compile_us), format_us(w.run_us), w.cpu_s);
    text += fmt::format(
        "  this start takes {:.3f} of its time and {:.3f} of its CPU time (medians of {} pairs)\n",
        r.versus->ratio, r.versus->cpu_ratio, s.repeats);
  }
  return text;
}

}  // namespace heddle
