// Runs a plan: compiles its segments once, then executes requests by counting dependencies down
// (docs/runtime.md).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/progress.h"
#include "heddle/base/status.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

class Model;

struct ExecutorOptions {
  // Requests at once. 1: latency mode, every resource serves its steps in the plan's order. More: pipelined,
  // the oldest request's ready step goes first on each resource. Raised to the number of lanes.
  int in_flight = 1;
  // How a waiting worker whose cores nobody else may use by the plan spins before it sleeps. Zero: never.
  double spin_us = 2000;
  // Another way to open devices (tests inject faults here); empty: the registry.
  std::function<Result<std::unique_ptr<RuntimeDevice>>(const Device&)> open;
  Deadline deadline;                 // of create(), which compiles
  ProgressSink* progress = nullptr;  // of create(); may be null
};

// From the request's start; negative for steps of other lanes.
struct StepTiming {
  double start_us = -1, finish_us = -1;
};

struct RequestTiming {
  int64_t request = 0;  // number in the stream
  int slot = 0;
  int lane = 0;
  double start_us = 0;  // from the stream's start
  double latency_us = 0;
  std::span<const StepTiming> steps;  // one per plan step; valid until the slot's next request starts
};

struct StreamOptions {
  int requests = 1;
  // Called before a request starts: writes into inputs(slot). May be empty (inputs stay as they are). Called
  // from the executor's threads, for several slots at once; must not block. The same for `done`, which may
  // read outputs(slot).
  std::function<void(int64_t request, int slot)> fill;
  std::function<void(const RequestTiming&)> done;
  Deadline deadline;
};

struct StreamResult {
  double total_us = 0;  // from the first start to the last finish
  double us_per_request = 0;
  std::vector<double> latencies_us;  // by request number
};

// Peak of what one memory pool holds: parameters resident plus live tensors.
struct PoolUse {
  int64_t param_bytes = 0;
  int64_t tensor_bytes = 0;  // allocated; devices that move no data: the peak so far, where memory is limited
};

// One run at a time: run() and run_stream() must not be called concurrently. No allocation once created.
class Executor {
 public:
  // Opens the devices that the plan uses, compiles and binds every segment for every slot and plans memory.
  // `model` may be null when no used device needs one. Fails, naming device and segment, when something does
  // not compile or fit.
  static Result<std::unique_ptr<Executor>> create(const Problem& problem, const Plan& plan,
                                                  std::shared_ptr<const Model> model,
                                                  const ExecutorOptions& options = {});
  virtual ~Executor() = default;

  virtual int slots() const = 0;
  // Does every used device move data? Otherwise outputs mean nothing.
  virtual bool moves_data() const = 0;
  // In the order of the graph's inputs and outputs. Write inputs before a run (or in `fill`); outputs stay
  // until the slot's next request. Empty when no device moves data.
  virtual std::span<const TensorView> inputs(int slot) const = 0;
  virtual std::span<const TensorView> outputs(int slot) const = 0;

  // One request in slot 0 with what inputs(0) holds. An error stops the request and names segment and device.
  virtual Result<RequestTiming> run(const Deadline& deadline = {}) = 0;
  // Copies `values` in, runs, and copies the outputs out.
  Result<std::vector<TensorValue>> run(std::span<const TensorValue> values, const Deadline& deadline = {});
  // Many requests, slots() in flight. Lanes get requests by their shares. Stops at the first error.
  virtual Result<StreamResult> run_stream(const StreamOptions& options) = 0;

  virtual std::vector<PoolUse> memory() const = 0;  // per memory pool
};

}  // namespace heddle
