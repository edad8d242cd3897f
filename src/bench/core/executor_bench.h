// How much the executor costs per task, beside a plain thread pool that runs the same DAG.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/base/status.h"

namespace heddle::bench {

struct ExecutorBenchOptions {
  int tasks = 100'000;
  int layers = 200;
  int edges_per_task = 2;
  int devices = 8;
  int repeats = 9;
  int pool_threads = 0;  // 0: as many as this process may use
  uint64_t seed = 1;
};

struct ExecutorBenchResult {
  int64_t tasks = 0;                // runs and transfers of the plan
  int64_t edges = 0;                // dependencies that are counted down
  double executor_us_per_task = 0;  // medians
  double pool_us_per_task = 0;      // the baseline: threads, a mutex, a deque and a condition variable
  int pool_threads = 0;
};

// Builds a layered DAG whose tasks and transfers cost nothing, spread over emulated devices, and runs it both
// ways, alternating. Checks that both respect every dependency before it times them.
Result<ExecutorBenchResult> bench_executor(const ExecutorBenchOptions& options = {});

}  // namespace heddle::bench
