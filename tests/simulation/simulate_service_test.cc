#include "heddle/serve/simulate_service.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(SimulatedService, HoldsWhatItPromisesUnderSeededFaults) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const auto run = simulate_service({.seed = seed});
    EXPECT_TRUE(run.status.ok()) << "seed " << seed << ": " << run.status.error().to_string();
  }
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
