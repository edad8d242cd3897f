// The one evaluator: the timeline of any plan of any planner.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

// What can be busy: one thing at a time.
struct ResourceUse {
  std::string name;    // "device gpu0", "link pcie0 >", "bus root0", "engine gpu0 out"
  double busy_us = 0;  // per request, weighted by lane share
};

struct Timeline {
  std::vector<double> start_us, finish_us;  // per step of the plan
  double makespan_us = 0;                   // of one request (of the slowest lane)
  double period_us = 0;                     // steady state: the busiest resource's time per request
  std::vector<ResourceUse> resources;       // devices first, in order; then those of transfers that are used
  std::vector<double> device_busy_us;       // per device, of one request (lane-weighted)
  std::vector<int64_t>
      peak_memory_bytes;  // per memory pool: parameters there plus live tensors at their peak
  // Per step, the step that it waited for last (a producer, or the one before on a resource); invalid at time
  // 0.
  std::vector<StepId> waited_for;
};

struct EvaluateOptions {
  bool critical = true;   // fill waited_for
  bool resources = true;  // fill resources' names and peak memory
};

// Starts each step, in list order, as soon as its inputs are there and its resources are free. Throughput
// plans: each lane's request alone gives start and finish; period_us is the largest resource load per
// request, which a periodic schedule reaches (lanes' requests never wait for each other in the steady state
// with enough requests in flight). Fails when the plan is malformed (ids out of range, a needed transfer or
// load missing, order not topological); it does not judge memory limits: that is the checker's job. O(V + E).
Result<Timeline> evaluate(const Problem& problem, const Plan& plan, const EvaluateOptions& options = {});

// The same for many plans of one problem: flat copies of the graph are made once and buffers are kept between
// calls. The problem must be validated and is kept (it is cheap to copy). Not thread-safe: one per thread.
class Evaluator {
 public:
  explicit Evaluator(const Problem& problem);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;
  Result<Timeline> evaluate(const Plan& plan, const EvaluateOptions& options = {});
  // Into a timeline whose memory is used again; its content is unspecified after an error.
  Status evaluate(const Plan& plan, const EvaluateOptions& options, Timeline& timeline);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The objective's value in us: makespan (latencies) or period (throughput; 1e6 / it is requests per second,
// times batch).
double objective_us(const Problem& problem, const Timeline& timeline);

// The steps that determine the makespan, first to last.
std::vector<StepId> critical_path(const Timeline& timeline);

}  // namespace heddle
