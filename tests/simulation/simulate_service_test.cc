#include "heddle/serve/simulate_service.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

struct SeedRange {
  uint64_t first, last;
};

void PrintTo(const SeedRange& seeds, std::ostream* os) { *os << seeds.first << " to " << seeds.last; }

class SeededFaults : public testing::TestWithParam<SeedRange> {
 protected:
  void SetUp() override {
#if defined(HEDDLE_THREAD_SANITIZER)
    GTEST_SKIP() << "the thread sanitizer has too little memory for so many fibres";
#endif
  }
};

TEST_P(SeededFaults, LeaveWhatTheServicePromises) {
  for (uint64_t seed = GetParam().first; seed <= GetParam().last; ++seed) {
    const auto run = simulate_service({.seed = seed});
    EXPECT_TRUE(run.status.ok()) << "seed " << seed << ": " << run.status.error().to_string();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SeededFaults,
                         testing::Values(SeedRange{1, 100}, SeedRange{101, 200}, SeedRange{201, 300},
                                         SeedRange{301, 400}));

// Each failed once, because the service or the simulation itself was wrong.
INSTANTIATE_TEST_SUITE_P(Kept, SeededFaults,
                         testing::Values(SeedRange{923, 923}, SeedRange{2188, 2188}, SeedRange{4660, 4660},
                                         SeedRange{79574, 79574}));

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
