// The share of waiting for cores, by the kernel's count.
#include "heddle/runtime/core_wait.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "heddle/base/own_cores.h"
#include "heddle/runtime/affinity.h"

namespace heddle {
namespace {

TEST(CoreWait, SharesAreOfTheTimeBetweenResumeAndPause) {
  if (!std::filesystem::exists("/proc/self/schedstat")) GTEST_SKIP() << "the kernel does not count";
  CoreWait wait;
  EXPECT_EQ(wait.share(), 0);
  wait.resume();
  {
    // Two busy threads on one core: one of them always waits for it.
    const std::vector<int> core = {own_cores().front()};
    const BusyThread one(core), other(core);
    const int64_t before = waited_for_cores();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (waited_for_cores() < before + 1'000'000) {
      if (std::chrono::steady_clock::now() > until) GTEST_SKIP() << "the kernel's counters stand still";
      std::this_thread::yield();
    }
    wait.pause();
  }
  EXPECT_GT(wait.share(), 0);
  const double share = wait.share();
  EXPECT_EQ(wait.share(), share) << "time after pause() does not count";
}

}  // namespace
}  // namespace heddle
