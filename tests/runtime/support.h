// Small problems for the runtime's tests, and a backend that computes something checkable.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heddle/plan/builder.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/executor.h"

namespace heddle::test {

struct RandomProblemOptions {
  int ops = 12;
  int devices = 3;
  double edge_probability = 0.25;
  double max_us = 0;       // op times, uniform from 0
  double transfer_us = 0;  // latency of each link
  int64_t device_memory_bytes = 0;
  int64_t param_bytes = 0;  // of every op's own parameter, times 1 to 4; 0: no parameters
  int cpus = 0;             // the first devices compute in the host's memory, bound to no core
  bool host_hub = false;    // the ways between devices lead through the host's memory, not a switch
  bool cores = false;       // CPU devices of overlapping core sets in one host: {0}, {1}, {0,1}, ...
  Objective objective = Objective::kLatency;
  uint64_t seed = 1;
};
// One u8 model input of 8 bytes, every op makes one tensor of 8 bytes, those that nobody reads are model
// outputs.
Problem random_problem(const RandomProblemOptions& options);

// 8 ops on 2 devices, from host memory, where every op may read its parameters in place.
Problem host_access_problem();

// Random devices, the graph's topological order; consecutive ops on one device join with probability `join`.
Plan random_plan(const Problem& problem, uint64_t seed, double join = 0.5, int lanes = 1);

// Each segment writes a hash of its name and its inputs' contents to each output, on worker threads.
struct HashBackend {
  std::atomic<int> runs{0};
  std::atomic<int> running{0};
  std::atomic<int> compiles{0};
  std::atomic<int> live{0};  // compiled segments that are not destroyed
  // Called in compile(); may fail, throw or wait. Empty: nothing.
  std::function<Status(const std::string& segment)> compile_hook;
  // Called in run(); may fail or wait. Empty: nothing.
  std::function<Status(const std::string& segment)> hook;
  std::vector<int> cores;  // of every worker; empty: not bound
  std::function<Result<std::unique_ptr<RuntimeDevice>>(const Device&)> opener();
};

// What goes wrong in the middle, by name: for compile_hook, else for hook, and what the error says of it.
struct SegmentFault {
  const char* what;
  bool compiling;
  std::function<Status()> happen;
  const char* message;
};
std::vector<SegmentFault> segment_faults();

// The same on accelerators: devices of the kind gpu are stream runtimes on the host, each segment's
// parameters must be where it was told when it runs, and its memory the device's own; others are
// HashBackend's.
struct AcceleratedBackend {
  HashBackend hash;
  bool peers = true, mapped = true;
  int64_t memory_bytes = 0;      // of each accelerator; 0: not limited
  std::atomic<int> in_place{0};  // runs of segments that read their parameters in host memory
  std::function<Result<std::unique_ptr<RuntimeDevice>>(const Device&)> opener();
};

// What the plan's outputs must hold when the model input holds `input`.
std::vector<uint64_t> expected_outputs(const Problem& problem, const Plan& plan, int lane, uint64_t input);
std::vector<uint64_t> read_outputs(std::span<const TensorView> outputs);
void write_input(std::span<const TensorView> inputs, uint64_t value);

// What a stream gave, per request.
struct Gathered {
  std::vector<std::vector<uint64_t>> outputs;
  std::vector<int> lane, slot;
};
// Request i gets the input `first + i`; `into` outlives the stream.
StreamOptions gathering(Executor& executor, int requests, uint64_t first, Gathered& into);

// The executor of the plan; a failure of the test, and nothing, when there is none.
std::unique_ptr<Executor> make_executor(const Problem& problem, const Plan& plan,
                                        const ExecutorOptions& options = {});

}  // namespace heddle::test
