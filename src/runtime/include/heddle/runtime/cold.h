// Cold starts, measured from the call to the first output, and OpenVINO's time for the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/graph/model.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/executor.h"
#include "heddle/runtime/run.h"

namespace heddle {

struct ColdRunOptions {
  int load_workers = 2;
  bool overlap = true;
  int64_t budget_bytes = 0;
  int requests = 1;               // one after the other; only the first is cold
  SegmentCache* cache = nullptr;  // read during the run, written after the last request
  InputOptions inputs;
  double rtol = 1e-3, atol = 1e-5;
  bool verify = true;  // compare the last request's outputs with the unsplit model's, after all timing
  Deadline deadline;
};

struct ColdSegment {
  SegmentLoading loading;
  double start_us = 0, finish_us = 0;  // running, from the request's start
  double wait_us = 0;                  // from loaded to running: waiting for inputs or for the device
};

struct ColdRun : OutputCheck {
  double import_us = 0;        // from the model's file to its graph; 0: not needed before the first request
  double prepare_us = 0;       // devices, memory, threads, inputs
  double first_output_us = 0;  // from the call to the first request's outputs, everything included
  double cpu_s = 0;            // of the process, in the same period
  std::vector<double> request_us;
  std::vector<std::vector<ColdSegment>> requests;  // [request][segment of the plan]
  int64_t peak_resident_bytes = 0;
};

// Reads the model that the problem names (which must be the planned file), loads and runs. The start is cold
// only if the process has not used the model before.
Result<ColdRun> run_cold(const Problem& problem, const Plan& plan, const ColdRunOptions& options);

struct ColdWhole {
  double read_us = 0, compile_us = 0, run_us = 0;  // with a cache, compile_us may include reading
  double first_output_us = 0;
  double cpu_s = 0;
};
// The same with OpenVINO alone: read, compile for all cores with the latency hint, run once. `cache_folder`
// is OpenVINO's own model cache; empty: none. `engine`: kOpenVino, as it comes, or kOpenVinoF32.
Result<ColdWhole> openvino_cold_start(const Problem& problem, const InputOptions& inputs,
                                      const std::string& cache_folder, Engine engine);

}  // namespace heddle
