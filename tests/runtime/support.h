// Small problems for the runtime's tests, and a backend whose results can be checked.
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
  double max_us = 0;       // maximum op time; times are uniform from 0
  double transfer_us = 0;  // latency of each link
  int64_t device_memory_bytes = 0;
  int64_t param_bytes = 0;  // each op's own parameter has 1 to 4 times this size; 0: no parameters
  int cpus = 0;             // the first devices compute in host memory, bound to no core
  bool host_hub = false;    // routes between devices pass through host memory instead of a switch
  bool cores = false;       // CPU devices of overlapping core sets in one host: {0}, {1}, {0,1}, ...
  Objective objective = Objective::kLatency;
  uint64_t seed = 1;
};
// One u8 model input of 8 bytes; every op makes one tensor of 8 bytes. Tensors without readers are model
// outputs.
Problem random_problem(const RandomProblemOptions& options);

// 8 ops on 2 devices, from host memory; every op may read its parameters in place.
Problem host_access_problem();

// Random devices, topological order; consecutive ops on one device are joined with probability `join`.
Plan random_plan(const Problem& problem, uint64_t seed, double join = 0.5, int lanes = 1);

// Each segment writes a hash of its name and its inputs' contents to each output, on worker threads.
struct HashBackend {
  std::atomic<int> runs{0};
  std::atomic<int> running{0};
  std::atomic<int> compiles{0};
  std::atomic<int> live{0};  // compiled segments that still exist
  // Called in compile(); may fail, throw or wait. Empty: nothing.
  std::function<Status(const std::string& segment)> compile_hook;
  // Called in run(); may fail or wait. Empty: nothing.
  std::function<Status(const std::string& segment)> hook;
  std::vector<int> cores;  // for every worker; empty: not bound
  std::function<Result<std::unique_ptr<RuntimeDevice>>(const Device&)> opener();
};

// A named fault in compile_hook (if `compiling`) or hook; its error contains `message`.
struct SegmentFault {
  const char* what;
  bool compiling;
  std::function<Status()> happen;
  const char* message;
};
std::vector<SegmentFault> segment_faults();

// The same on accelerators: devices of kind gpu are stream runtimes on the host. When a segment runs, its
// parameters must be at the given address and its memory must be the device's. Other devices are
// HashBackend's.
struct AcceleratedBackend {
  HashBackend hash;
  bool peers = true, mapped = true;
  int64_t memory_bytes = 0;      // of each accelerator; 0: not limited
  std::atomic<int> in_place{0};  // runs with parameters in host memory
  std::function<Result<std::unique_ptr<RuntimeDevice>>(const Device&)> opener();
};

// The plan's expected outputs if the model input holds `input`.
std::vector<uint64_t> expected_outputs(const Problem& problem, const Plan& plan, int lane, uint64_t input);
std::vector<uint64_t> read_outputs(std::span<const TensorView> outputs);
void write_input(std::span<const TensorView> inputs, uint64_t value);

// A stream's results, per request.
struct Gathered {
  std::vector<std::vector<uint64_t>> outputs;
  std::vector<int> lane, slot;
};
// Request i gets the input `first + i`; `into` must outlive the stream.
StreamOptions gathering(Executor& executor, int requests, uint64_t first, Gathered& into);

// The plan's executor; if it cannot be created, the test fails and the result is null.
std::unique_ptr<Executor> make_executor(const Problem& problem, const Plan& plan,
                                        const ExecutorOptions& options = {});

}  // namespace heddle::test
