// Cold starts: cuts of a model that are chosen by measured starts, and measurements of a plan's starts beside
// their prediction and OpenVINO alone. Each start is a process of its own, and only these processes touch the
// model. The caller must not have started threads that hold locks and, for truly cold starts, must not have
// used the model or its devices before.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/base/control.h"
#include "heddle/base/status.h"
#include "heddle/runtime/cold.h"
#include "heddle/session/session.h"

namespace heddle {

struct ColdSettings {
  int load_workers = 2;
  int64_t budget_bytes = 0;
  int requests = 1;
  int repeats = 3;           // cold starts, each in a process of its own
  std::string cache_folder;  // of compiled segments; empty: none
  int64_t cache_bytes = 0;   // its limit
  // Also start OpenVINO alone, as it comes or in float32; with its own cache if there is a cache folder.
  std::optional<Engine> versus;
  InputOptions inputs;
  double rtol = 1e-3, atol = 1e-5;
  bool verify = true;
};

struct ColdSegmentTimes {
  double load_us = 0, compile_us = 0, wait_us = 0, run_us = 0;
  bool cached = false;
};

struct ColdReport {
  double first_output_us = 0, low_us = 0, high_us = 0;  // median and range
  ColdRun median;   // the start with the median time; reading the plan is part of prepare_us
  ColdRun checked;  // the first start, whose outputs were compared
  double predicted_us = 0, predicted_request_us = 0;  // the latter from the request's start
  double without_overlap_us = 0;  // each segment loaded when the one before it ran; one start
  std::vector<ColdSegmentTimes> predicted, measured;  // per segment of the plan, first request
  // Segments that were loaded for the median start's requests.
  int64_t loaded(size_t request) const;
  struct Versus {
    ColdWhole median;
    double ratio = 0, cpu_ratio = 0;  // median over pairs of ours / theirs
  };
  std::optional<Versus> versus;
};

// `plan_path`: a plan of a real model, whose file it names. Infeasible, with the reason, if a start fails.
Result<ColdReport> measure_cold(const std::string& plan_path, const ColdSettings& settings,
                                const Control& control);

struct ColdCutOutcome {
  // By the times that were measured while cuts were tried, every cut at borders of ops needs at least this
  // share of the chosen cut's predicted time from the request's start. 0: no cuts were tried.
  double least_share = 0;
  // Products with larger constants are split (ImportOptions::split_bytes), because the caller asked for it or
  // because such a start is faster. 0: none is split.
  int64_t split_bytes = 0;
};

// Writes the plan to `path`. `segments`: their number, cut by weight; 0: starts of the whole model and of
// pieces are measured for some seconds, and the cut with the earliest predicted first output is chosen (with
// a budget: by weight). If one op exceeds a load worker's share, the same is tried with such ops split,
// unless `source` gives a size to split at.
Result<ColdCutOutcome> plan_cold(const ModelSpec& source, const ProblemSettings& problem, int segments,
                                 const ColdSettings& settings, const std::string& path,
                                 const Control& control);

// Lower bound on the predicted time to the first output over all cuts, in us; 0: no cuts were tried.
double cold_bound_us(const ColdCutOutcome& cut, const ColdReport& predicted);

// One load worker per core, at most 4.
int usual_load_workers();

}  // namespace heddle
