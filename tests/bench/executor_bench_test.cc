#include "core/executor_bench.h"

#include <gtest/gtest.h>

namespace heddle::bench {
namespace {

TEST(ExecutorBench, RunsBothContestantsOnTheSameDag) {
  const auto result =
      bench_executor({.tasks = 2000, .layers = 20, .devices = 4, .repeats = 3, .pool_threads = 2});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_GE(result->tasks, 2000);
  EXPECT_GT(result->executor_us_per_task, 0);
  EXPECT_GT(result->pool_us_per_task, 0);
}

}  // namespace
}  // namespace heddle::bench
