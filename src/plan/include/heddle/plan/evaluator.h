// The evaluator: computes the timeline of any planner's plan.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

// An exclusive resource.
struct ResourceUse {
  std::string name;    // "device gpu0", "link pcie0 >", "bus root0", "engine gpu0 out"
  double busy_us = 0;  // per request, weighted by lane share
};

struct Timeline {
  std::vector<double> start_us, finish_us;  // per step of the plan
  double makespan_us = 0;                   // of one request, on the slowest lane
  double period_us = 0;                     // steady state: busy time per request of the most loaded resource
  std::vector<ResourceUse> resources;       // devices in order, then the other resources that are used
  std::vector<double> device_busy_us;       // per device, of one request, weighted by lane share
  std::vector<int64_t>
      peak_memory_bytes;  // per memory pool: parameters there plus live tensors at their peak
  // Per step, the step whose end set its start (a producer, or the previous step on a resource); invalid if
  // it starts at time 0.
  std::vector<StepId> waited_for;
};

struct EvaluateOptions {
  bool critical = true;   // fill waited_for
  bool resources = true;  // fill resources' names and peak memory
};

// Starts each step, in list order, as soon as its inputs are there and its resources are free. For throughput
// plans, start and finish are those of each lane's request alone, and period_us is the largest resource load
// per request. A periodic schedule reaches it: with enough requests in flight, lanes never wait for each
// other. Fails when the plan is malformed (ids out of range, a needed transfer or load missing, order not
// topological). Does not check memory limits; check() does. O(V + E).
Result<Timeline> evaluate(const Problem& problem, const Plan& plan, const EvaluateOptions& options = {});

// Evaluates many plans of one problem: flattens the graph once and reuses its buffers. The problem must be
// validated and is copied (cheap). Not thread-safe: use one per thread.
class Evaluator {
 public:
  explicit Evaluator(const Problem& problem);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;
  Result<Timeline> evaluate(const Plan& plan, const EvaluateOptions& options = {});
  // Writes into `timeline` and reuses its memory; its content is unspecified after an error.
  Status evaluate(const Plan& plan, const EvaluateOptions& options, Timeline& timeline);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The objective's value in us: the makespan for latencies, the period for throughput (requests per second =
// 1e6 / period, times batch).
double objective_us(const Problem& problem, const Timeline& timeline);

// objective_us() of evaluate(), without what only reports need. Fails as evaluate() does.
Result<double> evaluate_objective(const Problem& problem, const Plan& plan);

// The steps that determine the makespan, first to last.
std::vector<StepId> critical_path(const Timeline& timeline);

}  // namespace heddle
