// A plan's timeline, predicted and (if it ran) measured, as the common input of all drawings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/plan/bounds.h"
#include "heddle/plan/evaluator.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/report/explain.h"
#include "heddle/runtime/precision_error.h"
#include "heddle/runtime/run_record.h"

namespace heddle {

struct TimelineBar {
  std::string track;  // "device cpu0-1", "transfer cpu0 -> cpu1", "load gpu0"
  std::string name;   // the segment's or tensor's name
  StepKind kind = StepKind::kRun;
  StepId step;
  double predicted_start_us = 0, predicted_finish_us = 0;
  std::optional<double> measured_start_us, measured_finish_us, measured_median_us;
  bool critical = false;  // on the predicted critical path
  // Members of a stage run at once, and lanes share devices, so each is drawn in part `part` of `parts` of its track.
  int part = 0, parts = 1;
  std::vector<std::pair<std::string, std::string>>
      details;  // shown on hovering: ops, bytes, origin of the time, ...
};

struct TimelineView {
  std::string title;  // model, cluster and planner
  std::string model, cluster, planner;
  Objective objective = Objective::kLatency;
  int batch = 1;
  size_t devices = 0, used_devices = 0;
  double predicted_us = 0;
  std::optional<double> measured_us;
  int repeats = 0;                          // of the measured request
  std::optional<PrecisionError> precision;  // of the run, if the plan computes in narrower types
  Bound bound;
  double gap = 0;
  std::vector<std::string>
      tracks;                     // devices (all of the cluster, also idle ones), then transfers, then loads
  std::vector<TimelineBar> bars;  // by track, then start
  double span_us = 0;             // end of the time axis
};

TimelineView make_timeline_view(const Problem& problem, const Plan& plan, const Timeline& timeline,
                                const Bound& bound, const std::string& planner,
                                const RunRecord* run = nullptr);

// Chrome trace / Perfetto JSON: process 1 "predicted" and process 2 "measured" with the same thread (track)
// names, so that they overlay; times in us; critical steps are flagged in args.
std::string timeline_trace_json(const TimelineView& view);
// A self-contained SVG: devices as rows, predicted above measured, transfers and loads, critical path, time
// axis.
std::string timeline_svg(const TimelineView& view);
// A self-contained HTML page (no network): tiles with the figures that matter, the timeline with zoom and details of
// each bar (mouse, touch and keys), the explanation, and a table of predicted and measured time per step. Works in
// print, light and dark, and on a phone. `explanation` is that of the same plan.
std::string timeline_html(const TimelineView& view, const Explanation& explanation);

}  // namespace heddle
