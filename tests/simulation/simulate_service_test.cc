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

// Behind the first hundreds, the first seeds that find a bug of tests/serve/mutations: a server that stood still
// overwrites an entry of the folder; a step of a session that has ended is sent in the device's next one.
TEST(SimulatedService, HoldsForSeedsThatFindBugs) {
  for (const uint64_t seed : {620, 975}) EXPECT_TRUE(simulate_service({.seed = seed}).status.ok()) << seed;
}

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
