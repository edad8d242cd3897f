// Runs a plan: compiles its segments once, then executes requests by counting down dependencies
// (docs/runtime.md).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
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

// A cold start: requests begin before the segments are compiled. Load workers compile the segments in the
// order in which the plan runs them. A segment runs as soon as it is compiled and has its inputs (SortingHat,
// Algorithm 1, with compiling in the place of copying).
struct ColdOptions {
  int load_workers = 2;  // 1..64 concurrent compilations
  // Limit on the parameter bytes of segments that are compiled or being compiled; 0: no limit, and every
  // compiled segment stays. With a limit, some segments stay between requests. The others are compiled again
  // for each request, in the plan's order, and dropped after they ran. create() fails with kInfeasible if a
  // segment alone exceeds the limit.
  int64_t budget_bytes = 0;
  // False, for comparison: a segment is loaded only after the previous one has run, so nothing overlaps.
  bool overlap = true;
  // Reads the model when the first segment needs it; empty: use the model given to create().
  std::function<Result<std::shared_ptr<const Model>>()> read_model;
  SegmentCache* cache = nullptr;  // outlives the executor
  uint64_t model_key = 0;         // SegmentSpec::model_key
};

class RankGroup;

// One rank's part of the plan. All ranks create their executors together and run each stream together, on the
// thread that owns the transport. A slot takes its next request after all ranks have ended the previous one;
// request i uses slot i mod slots().
struct RankOptions {
  RankGroup* group = nullptr;       // outlives the executor
  std::vector<int> rank_of_device;  // per device of the cluster
  // Sends tensors between ranks even if the devices are emulated and compute nothing. Transfers then take the
  // time of the real links instead of the plan's.
  bool real_transfers = false;
};

struct ExecutorOptions {
  // Requests at once. 1: latency mode, every resource serves its steps in the plan's order. More: pipelined;
  // on each resource the oldest request's ready step goes first. Raised to the number of lanes.
  int in_flight = 1;
  // Spin time of a waiting worker before it sleeps, if the plan gives its cores to no other device. Zero: none.
  double spin_us = 2000;
  // Replaces the registry for opening devices (tests inject faults here); empty: the registry.
  std::function<Result<std::unique_ptr<RuntimeDevice>>(const Device&)> open;
  std::optional<RankOptions> ranks;  // empty: the whole plan runs here
  std::optional<ColdOptions> cold;   // empty: create() compiles all. One request in flight, one lane
  Deadline deadline;                 // of create(), which compiles
  ProgressSink* progress = nullptr;  // of create(); may be null
};

// From the request's start; negative for steps of other lanes.
struct StepTiming {
  double start_us = -1, finish_us = -1;
};

// How a segment of a cold start became ready, from the request's start. Resident segments have begin_us = -1
// and took no time.
struct SegmentLoading {
  double begin_us = -1, ready_us = 0;  // a load worker took it; it is ready to run
  double load_us = 0, compile_us = 0;  // parts of that period; the rest is waiting for memory of the budget
  bool cached = false;
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
  // Called before a request starts, to write into inputs(slot); may be empty (the inputs stay as they are).
  // The executor's threads call it, for several slots at once; it must not block. The same holds for `done`,
  // which may read outputs(slot).
  std::function<void(int64_t request, int slot)> fill;
  std::function<void(const RequestTiming&)> done;
  Deadline deadline;
  // Start time of the first request (CLOCK_MONOTONIC, ns), for ranks that start together; 0: at once.
  int64_t start_at_ns = 0;
};

struct StreamResult {
  std::vector<double> latencies_us;  // by request number
};

// Peak use of one memory pool: resident parameters plus live tensors.
struct PoolUse {
  int64_t param_bytes = 0;
  int64_t tensor_bytes = 0;  // allocated; devices that move no data: the peak so far if memory is limited
};

// One run at a time: run() and run_stream() must not be called concurrently. No allocation once created.
// open() is for concurrent requests.
class Executor {
 public:
  // Opens the devices that the plan uses, compiles and binds every segment for every slot and plans memory.
  // `model` may be null if no used device needs one. Fails, naming device and segment, if a segment does not
  // compile or fit.
  static Result<std::unique_ptr<Executor>> create(const Problem& problem, const Plan& plan,
                                                  std::shared_ptr<const Model> model,
                                                  const ExecutorOptions& options = {});
  virtual ~Executor() = default;

  virtual int slots() const = 0;
  virtual int lane(int slot) const = 0;
  // Does every used device move data? Otherwise outputs mean nothing.
  virtual bool moves_data() const = 0;
  // In the order of the graph's inputs and outputs. Write inputs before a run (or in `fill`); outputs stay
  // until the slot's next request. Empty if no device moves data.
  virtual std::span<const TensorView> inputs(int slot) const = 0;
  virtual std::span<const TensorView> outputs(int slot) const = 0;

  // Runs one request in slot 0 on the contents of inputs(0). An error stops it and names segment and device.
  virtual Result<RequestTiming> run(const Deadline& deadline = {}) = 0;
  // Runs many requests, slots() in flight, divided among lanes by their shares. Stops at the first error.
  virtual Result<StreamResult> run_stream(const StreamOptions& options) = 0;

  // For servers, whose requests come one by one: between open() and close() any thread may call run_slot(),
  // one call for each slot at a time, and no calls of run() or run_stream(). The requests share devices and
  // links as those of a stream do. An error ends its own request alone. Not for cold starts (kUnsupported).
  // close() comes after the last run_slot() has returned; the destructor closes, too.
  virtual Status open() = 0;
  virtual Status run_slot(int slot) = 0;
  virtual void close() = 0;
  // Over several ranks, between open() and the end of all requests: every rank calls it, on the thread that
  // owns the transport. Other threads of rank 0 call run_slot() and close(), which ends it on all ranks.
  // Inputs are written and outputs are read on rank 0 alone. If ranks are lost, all requests fail from then
  // on, `stop` is cancelled, and the error is returned. That is found out when messages fail, and, once
  // `stop` is cancelled on rank 0, when a rank does not answer.
  virtual Status serve_ranks(const CancelToken& stop) = 0;

  virtual std::vector<PoolUse> memory() const = 0;  // per memory pool
  // Cold starts: [segment] of the latest request; otherwise empty.
  virtual std::vector<SegmentLoading> loadings() const { return {}; }
  // Cold starts: peak of the parameter bytes of compiled segments, over all requests.
  virtual int64_t peak_resident_bytes() const { return 0; }
  // Cold starts: stores the resident segments in the cache, except those that came from there. Call it
  // between requests.
  virtual Status store_segments() { return {}; }
};

}  // namespace heddle
