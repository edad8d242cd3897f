// A run that shares its core differs from one that hangs in the time that it waits for the core.
#include "machine/watched_runner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <stdexcept>
#include <thread>

#include "heddle/cluster/discover.h"
#include "heddle/runtime/affinity.h"
#include "heddle/runtime/core_wait.h"
#include "serve_support.h"

namespace heddle {
namespace {

// Runs until the test ends it: computing, or waiting for a lock.
class Endless final : public DeviceRunner {
 public:
  Endless(bool computes, std::vector<int> cores) : computes_(computes), cores_(std::move(cores)) {}
  Status run(std::span<LiveRequest* const>) override {
    const AffinityGuard bound(cores_);
    if (!computes_) end_.get_future().wait();
    while (!ended_) {
    }
    return {};
  }
  void end() {
    ended_ = true;
    end_.set_value();
  }

 private:
  const bool computes_;
  const std::vector<int> cores_;
  std::atomic<bool> ended_{false};
  std::promise<void> end_;
};

struct UnderWay {
  UnderWay(bool computes, const std::vector<int>& cores)
      : endless(std::make_shared<Endless>(computes, cores)),
        watched(endless),
        thread([this] { EXPECT_TRUE(watched.run({}).ok()); }) {}
  ~UnderWay() {
    endless->end();
    thread.join();
    EXPECT_FALSE(watched.now());
  }
  const std::shared_ptr<Endless> endless;
  WatchedRunner watched;
  std::thread thread;
};

std::vector<int> one_core() {
  const auto cluster = discover_local();
  EXPECT_TRUE(cluster.ok());
  if (cluster.ok())
    for (const auto& d : (*cluster)->devices())
      if (!d.cores.empty()) return {d.cores[0]};
  return {};
}

TEST(WatchedRunner, KnowsThatOthersHaveItsCore) {
  if (waited_for_a_core(::gettid()) == 0 && !std::ifstream("/proc/self/schedstat"))
    GTEST_SKIP() << "this kernel does not count how long threads wait";
  const auto core = one_core();
  const UnderWay one(true, core), two(true, core), three(true, core);
  // Each has a third of the core, so that it waits most of the time.
  EXPECT_TRUE(eventually([&] {
    const auto now = one.watched.now();
    return now && now->waited > 100'000'000 && now->waited > now->elapsed / 3;
  }));
}

TEST(WatchedRunner, KnowsThatARunWaitsForNothingThatOthersHave) {
  const UnderWay hung(false, one_core());
  ASSERT_TRUE(eventually([&] { return hung.watched.now().has_value(); }));
  // Once it waits: on its way there it may have been without a core.
  auto before = *hung.watched.now();
  EXPECT_TRUE(eventually([&] {
    const auto now = *hung.watched.now();
    if (now.waited != before.waited) before = now;
    return now.elapsed > before.elapsed + 100'000'000;
  }));
}

TEST(WatchedRunner, PassesOnWhatTheRunSays) {
  class Failing final : public DeviceRunner {
    Status run(std::span<LiveRequest* const>) override { throw std::runtime_error("it broke"); }
  };
  WatchedRunner watched(std::make_shared<Failing>());
  EXPECT_THROW((void)watched.run({}), std::runtime_error);
  EXPECT_FALSE(watched.now());
}

}  // namespace
}  // namespace heddle
