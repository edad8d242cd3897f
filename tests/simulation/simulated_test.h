// Tests whose threads and clocks are those of a simulation: other work on the machine cannot change their outcome.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "heddle/base/simulation.h"
#include "heddle/base/sync.h"

namespace heddle {

// Under several orders of its threads.
inline void in_simulation(const std::function<void()>& test) {
  for (const uint64_t seed : {1, 2, 3}) {
    Simulation simulation({.seed = seed});
    const auto status = simulation.run(test);
    EXPECT_TRUE(status.ok()) << "seed " << seed << ": " << status.error().to_string();
  }
}

// Waits until it holds, at most 20 simulated seconds.
template <class Holds>
bool eventually(const Holds& holds) {
  constexpr int64_t kLookNs = 10'000'000;
  for (int i = 0; i < 2000; ++i, sleep_ns(kLookNs))
    if (holds()) return true;
  return false;
}

}  // namespace heddle

// A test of that kind: HEDDLE_SIMULATED_TEST(Suite, Name) { .. }
#define HEDDLE_SIMULATED_TEST(suite, name)                  \
  static void suite##name();                                \
  TEST(suite, name) { heddle::in_simulation(suite##name); } \
  static void suite##name()
