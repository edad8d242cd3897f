// Cold starts of a plan in processes of their own, with their prediction and OpenVINO's in turns.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/plan/plan_file.h"
#include "heddle/runtime/cold.h"
#include "workbench.h"

namespace heddle::cli {

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

// Nothing of the model may have been touched in this process before.
Result<ColdReport> measure_cold(const std::string& plan_path, const ColdSettings& settings,
                                const Invocation& invocation);

}  // namespace heddle::cli
