// Traces of function invocations in the format of the public Azure Functions 2021 invocation trace: CSV with
// the header app,func,end_timestamp,duration; times in seconds, one invocation per line, sorted by end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/progress.h"
#include "heddle/base/status.h"

namespace heddle {

struct FunctionTrace {
  std::vector<double> start_s;  // ascending, from 0: end_timestamp - duration, minus the earliest start
  uint32_t functions = 0;       // number of different (app, func) pairs
};

// The last line may lack its newline. The trace must have at least one invocation. Errors name the line.
Result<FunctionTrace> function_trace_from_csv(std::string_view text, ProgressSink* progress = nullptr);
// Reads the file without copying its text into memory. Errors name file and line.
Result<FunctionTrace> read_function_trace(const std::string& path, ProgressSink* progress = nullptr);

// A synthetic trace, for use without the public one: popularity falls as a power of the function's rank, and
// invocations come in clumps of geometric size.
struct FunctionTraceOptions {
  uint32_t functions = 100;
  double duration_s = 600;
  double rate_per_s = 50;       // total of all functions
  double popularity_power = 1;  // the r-th function's share falls as r^-power
  double clump_size = 4;        // mean number of invocations in a clump, at least 1
  double clump_gap_s = .05;     // mean gap inside a clump
  // The rate of clumps swings as a sine: rate * (1 + swing * sin(2 pi t / period)), swing in [0, 1].
  double swing = 0, period_s = 86400;
};
// Returns CSV text, so a synthetic trace uses the same reader as a real one. The mean rate is rate_per_s.
// Variance / mean of the counts in windows much longer than a clump is 2 clump_size - 1. Errors: options out
// of range.
Result<std::string> synthetic_function_trace(const FunctionTraceOptions& options, uint64_t seed);

}  // namespace heddle
