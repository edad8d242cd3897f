#include "heddle/serve/simulate_service.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

// In blocks of a hundred seeds.
class SeededFaults : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
#if defined(HEDDLE_THREAD_SANITIZER)
    GTEST_SKIP() << "the thread sanitizer has too little memory for so many fibres";
#endif
  }
};

TEST_P(SeededFaults, LeaveWhatTheServicePromises) {
  for (uint64_t seed = GetParam(); seed < GetParam() + 100; ++seed) {
    const auto run = simulate_service({.seed = seed});
    EXPECT_TRUE(run.status.ok()) << "seed " << seed << ": " << run.status.error().to_string();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SeededFaults, testing::Values(1, 101, 201, 301));

TEST(SimulatedService, RunsASeedTheSameWayEveryTime) {
  const auto first = simulate_service({.seed = 7}), again = simulate_service({.seed = 7}),
             other = simulate_service({.seed = 8});
  EXPECT_EQ(first.digest, again.digest);
  EXPECT_EQ(first.counts.steps, again.counts.steps);
  EXPECT_EQ(first.counts.requests, again.counts.requests);
  EXPECT_NE(first.digest, other.digest);
}

}  // namespace
}  // namespace heddle
