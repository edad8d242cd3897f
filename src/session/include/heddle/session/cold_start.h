// Cold starts: cuts of a model by what starts of it take here, and the starts of a plan, each in a process of
// its own, with their prediction and OpenVINO's in turns. All that touches the model is done in those
// processes: the caller must not have started threads that hold locks, and for starts that are truly cold
// must not have used the model or its devices before.
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
  bool versus = false;       // OpenVINO alone, too; with a cache folder, with its own cache
  InputOptions inputs;
  double rtol = 1e-3, atol = 1e-5;
  bool verify = true;
};

struct ColdSegmentTimes {
  double load_us = 0, compile_us = 0, wait_us = 0, run_us = 0;
  bool cached = false;
};

// Medians over the cold starts; segments of the start with the median time.
struct ColdReport {
  double first_output_us = 0, low_us = 0, high_us = 0;  // median and range
  double cpu_s = 0;                                     // of the median start
  double predicted_us = 0, predicted_request_us = 0;    // the latter from the request's start
  double without_overlap_us = 0;  // each segment loaded when the one before it ran; one start
  double import_us = 0, prepare_us = 0;
  std::vector<double> request_us;                     // of the median start
  std::vector<ColdSegmentTimes> predicted, measured;  // per segment of the plan, first request
  std::vector<std::vector<bool>> reloaded;            // per request and segment
  int64_t peak_resident_bytes = 0;
  bool verified = false, outputs_equal = false;
  double max_abs_error = 0, max_rel_error = 0;
  struct Versus {
    ColdWhole median;
    double ratio = 0, cpu_ratio = 0;  // median over pairs of ours / theirs
  };
  std::optional<Versus> versus;
};

// `plan_path`: a plan of a real model, whose file it names. Infeasible, with the reason, when a start fails.
Result<ColdReport> measure_cold(const std::string& plan_path, const ColdSettings& settings,
                                const Control& control);

struct ColdCutOutcome {
  // By the times that were measured while cuts were tried, no cut at borders of ops needs less than this
  // share of the chosen one's predicted time from the request's start; 0: nothing was tried.
  double least_share = 0;
  // Where products with larger constants are split (ImportOptions::split_bytes): as asked for, or because
  // that was tried and starts earlier; 0: nowhere.
  int64_t split_bytes = 0;
};

// Writes the plan to `path`. `segments`: as many, by weight; 0: starts of the whole model and of pieces are
// measured, some seconds, and the cut with the earliest predicted first output is taken (with a budget: by
// weight). Where one op is more than a load worker's share, the same is tried with such ops split, unless
// `source` says where.
Result<ColdCutOutcome> plan_cold(const ModelSpec& source, const ProblemSettings& problem, int segments,
                                 const ColdSettings& settings, const std::string& path,
                                 const Control& control);

// The time to the first output that no cut goes below, where the plan is predicted so, us; 0: nothing was
// tried.
double cold_bound_us(const ColdCutOutcome& cut, const ColdReport& predicted);

// One for each core, at most 4.
int usual_load_workers();

}  // namespace heddle
