// Measures the executor's overhead per task, beside a plain thread pool that runs the same DAG.
#pragma once

#include <cstdint>

#include "heddle/base/status.h"

namespace heddle::bench {

struct ExecutorBenchOptions {
  int tasks = 100'000;
  int layers = 200;
  int edges_per_task = 2;
  int devices = 8;
  int repeats = 9;
  int pool_threads = 0;  // 0: as many as the process may use
  uint64_t seed = 1;
};

struct ExecutorBenchResult {
  int64_t tasks = 0;                // runs and transfers in the plan
  double executor_us_per_task = 0;  // medians
  double pool_us_per_task = 0;      // baseline: threads, a mutex, a deque and a condition variable
  int pool_threads = 0;
};

// Builds a layered DAG of tasks and transfers that take no time, spread over emulated devices, and runs it
// both ways in turns. Before timing, it checks that both respect every dependency.
Result<ExecutorBenchResult> bench_executor(const ExecutorBenchOptions& options = {});

}  // namespace heddle::bench
