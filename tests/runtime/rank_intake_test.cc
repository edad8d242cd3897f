// Requests that come one by one to rank 0 of several (threads of one process): outputs, failures, lost ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "heddle/runtime/executor.h"
#include "heddle/runtime/rank_group.h"
#include "rank_support.h"

namespace heddle {
namespace {

using test::HashBackend;
using test::on_ranks;
using test::RankCase;
using ::testing::HasSubstr;

TEST(RankIntake, RandomPlansComputeWhatOneProcessDoes) {
  for (const RankCase& c :
       {RankCase{.ops = 12, .devices = 3, .ranks = 2}, RankCase{.ops = 30, .devices = 4, .ranks = 4},
        RankCase{.ops = 25, .devices = 5, .ranks = 3, .cores = true}}) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const auto plan = test::ranked_plan(c, seed);
      for (const int in_flight : {1, 3}) {
        HashBackend backend;
        on_ranks(plan.ranks,
                 [&](RankGroup& group) { test::expect_intake(group, plan, backend.opener(), in_flight); });
      }
    }
  }
}

TEST(RankIntake, AcceleratorsComputeWhatOneProcessDoes) {
  const auto plan = test::ranked_plan({.ops = 20, .devices = 4, .ranks = 2, .cpus = 1}, 2);
  for (const bool direct : {false, true}) {
    test::AcceleratedBackend backend;
    on_ranks(
        2, [&](RankGroup& group) { test::expect_intake(group, plan, backend.opener(), 2); }, direct);
  }
}

// Of two requests the first one fails on another rank than rank 0.
TEST(RankIntake, AFailedSegmentFailsItsRequestAlone) {
  auto plan = test::ranked_plan({.ops = 12, .devices = 2, .ranks = 2}, 3);
  plan.rank_of_device = {0, 1};
  std::string far;
  for (const auto& s : plan.plan.segments)
    if (s.device == DeviceId(1)) far = s.name;
  ASSERT_NE(far, "");
  HashBackend backend;
  std::atomic<int> failures{1};
  backend.hook = [&](const std::string& segment) -> Status {
    if (segment == far && failures.fetch_sub(1) > 0) return Error(Code::kInternal, "the device is on fire");
    return {};
  };
  on_ranks(2, [&](RankGroup& group) {
    const auto executor = test::make_executor(group, plan, backend.opener(), 1);
    ASSERT_TRUE(executor->open().ok());
    std::thread server;
    if (group.rank() == 0) {
      server = std::thread([&] {
        test::write_input(executor->inputs(0), 7);
        const Status failed = executor->run_slot(0);
        EXPECT_FALSE(failed.ok());
        if (!failed.ok()) {
          EXPECT_THAT(failed.error().to_string(), AllOf(HasSubstr("rank 1 (local)"), HasSubstr("on fire")));
        }
        EXPECT_TRUE(executor->run_slot(0).ok());
        EXPECT_EQ(test::read_outputs(executor->outputs(0)),
                  test::expected_outputs(plan.problem, plan.plan, 0, 7));
        executor->close();
      });
    }
    EXPECT_TRUE(executor->serve_ranks({}).ok());
    if (server.joinable()) server.join();
  });
}

// Rank 1 has ended. Rank 0 finds out when it is to stop, fails what is in flight and what comes later.
TEST(RankIntake, RequestsFailWhenARankDoesNotAnswer) {
  auto plan = test::ranked_plan({.ops = 12, .devices = 2, .ranks = 2}, 3);
  plan.rank_of_device = {0, 1};
  HashBackend backend;
  on_ranks(2, [&](RankGroup& group) {
    const auto executor = test::make_executor(group, plan, backend.opener(), 2);
    ASSERT_TRUE(executor->open().ok());
    if (group.rank() == 1) return;
    const CancelToken stop;
    std::thread server([&] {
      std::thread client([&] { EXPECT_FALSE(executor->run_slot(0).ok()); });
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      stop.cancel();
      client.join();
      EXPECT_FALSE(executor->run_slot(1).ok());
      executor->close();
    });
    const Status ended = executor->serve_ranks(stop);
    server.join();
    ASSERT_FALSE(ended.ok());
    EXPECT_THAT(ended.error().to_string(), HasSubstr("rank 1 does not answer any more"));
  });
}

}  // namespace
}  // namespace heddle
