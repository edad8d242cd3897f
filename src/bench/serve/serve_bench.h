// What serving costs: latency that the server adds to a direct call, and its rate beside a plain gRPC echo's.
#pragma once

#include <functional>
#include <string>

#include "heddle/base/status.h"
#include "heddle/fleet/simulator.h"

namespace heddle::bench {

// Medians over calls in turns, one at a time; us. What is added is taken within a turn.
struct AddedLatency {
  double direct = 0;          // the device's runner, called by the client's own thread
  double in_process = 0;      // added by the service: decisions, the device's thread, the answer
  double grpc = 0, http = 0;  // added by it and loopback
  double grpc_echo = 0;       // added by a gRPC server that copies the tensor and does nothing else
};

// Answers per second with 64 calls under way, medians over slices in turns.
struct ServedRate {
  double grpc_echo = 0;  // a gRPC server that copies the tensor and does nothing else
  double grpc = 0, http = 0;
  double http_traced = 0, http_sampled = 0;  // the same with a trace of each request, and of one in a hundred
};

struct ServeBench {
  AddedLatency latency;
  ServedRate rate;
};

// `path` empty: a model that copies its 1024 bytes, without a backend; else a model's file at batch 1, on the
// device of this machine with the most cores. `seconds`: for each of both parts. `stop` is asked between
// calls; what was measured until then counts. Errors: the model's, no port, a call that fails.
Result<ServeBench> bench_serving(const std::string& path, double seconds, const std::function<bool()>& stop);

// Of the decisions that arrivals cause (queue, probe, reserve) in a server of a hundred timed devices that is
// loaded by HTTP with half of what its plan sustains; us.
struct DecisionTimes {
  double median = 0, p99 = 0;  // by the clock: whatever else the machine did meanwhile counts
  double p99_lock = 0;         // of the wait for the plane's lock before that
};
Result<DecisionTimes> bench_decisions(SchedulerKind scheduler, double seconds, uint64_t seed,
                                      const std::function<bool()>& stop);

}  // namespace heddle::bench
