// One cold start in a process of its own.
#pragma once

#include <string>
#include <vector>

#include "heddle/runtime/cold.h"
#include "heddle/session/cold_start.h"

namespace heddle {

// As it comes back from its process.
struct ColdStart {
  double first_output_us = 0, cpu_s = 0, import_us = 0, prepare_us = 0, plan_us = 0;
  std::vector<double> request_us;
  std::vector<ColdSegmentTimes> segments;  // of the first request
  std::vector<std::vector<bool>> reloaded;
  int64_t peak_resident_bytes = 0;
  bool verified = false, outputs_equal = false;
  double max_abs_error = 0, max_rel_error = 0;
};

// Reads the plan, and starts. An empty folder: no cache.
Result<ColdStart> cold_start_in_child(const std::string& plan_path, const ColdRunOptions& options,
                                      const std::string& cache_folder, int64_t cache_bytes);

// The plan was read, so flags and files are right: whatever stopped the start, the answer is no.
Error cold_start_failed(const std::string& what, const Error& why);

}  // namespace heddle
