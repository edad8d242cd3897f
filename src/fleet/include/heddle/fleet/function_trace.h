// Traces of function invocations in the format of the public Azure Functions 2021 invocation trace: CSV with
// the header app,func,end_timestamp,duration; times in seconds, a line an invocation, in the order of the
// ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/progress.h"
#include "heddle/base/status.h"

namespace heddle {

struct FunctionTrace {
  std::vector<double> start_s;  // ascending, from 0: end_timestamp - duration, less the earliest
  uint32_t functions = 0;       // different pairs of app and func
};

// Takes the trace in pieces of any size, so that a file need not fit into memory as text. Errors name the
// line.
class FunctionTraceReader {
 public:
  FunctionTraceReader();
  ~FunctionTraceReader();
  FunctionTraceReader(const FunctionTraceReader&) = delete;
  FunctionTraceReader& operator=(const FunctionTraceReader&) = delete;
  Status feed(std::string_view piece);
  // The last line may lack its end. Needs at least one invocation.
  Result<FunctionTrace> finish();

 private:
  struct State;
  State* state_;
};

Result<FunctionTrace> function_trace_from_csv(std::string_view text);
// Streams the file; the error has its name and line.
Result<FunctionTrace> read_function_trace(const std::string& path, ProgressSink* progress = nullptr);

// For where the public trace is not at hand: functions whose popularity falls as a power of their rank,
// invoked in clumps of geometric size.
struct FunctionTraceOptions {
  uint32_t functions = 100;
  double duration_s = 600;
  double rate_per_s = 50;       // of all functions together
  double popularity_power = 1;  // the r-th function's share falls as r^-power
  double clump_size = 4;        // mean number of invocations in a clump, at least 1
  double clump_gap_s = .05;     // mean gap inside a clump
};
// As the CSV text, so that it goes through the same reader as a real one. The mean rate is the option's;
// variance / mean of counts in windows that are long against a clump is 2 clump_size - 1. Errors: options out
// of range.
Result<std::string> synthetic_function_trace(const FunctionTraceOptions& options, uint64_t seed);

}  // namespace heddle
