// Accelerators over several ranks: tensors are sent through pinned host memory, or directly from the device
// if the transport reaches its memory. Ranks are threads here; real_rank_test.cc uses processes. Clean under
// the thread sanitizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "heddle/runtime/rank_run.h"
#include "rank_support.h"

namespace heddle {
namespace {

using test::AcceleratedBackend;
using test::on_ranks;
using ::testing::HasSubstr;

struct Ways {
  int ranks, cpus;
  bool host_hub, direct;
};

class AcceleratorRanks : public testing::TestWithParam<Ways> {
 protected:
  static test::RankedPlan plan(uint64_t seed) {
    return test::ranked_plan({.ops = 30,
                              .devices = 5,
                              .ranks = GetParam().ranks,
                              .cpus = GetParam().cpus,
                              .host_hub = GetParam().host_hub},
                             seed);
  }
};

TEST_P(AcceleratorRanks, RandomPlansComputeWhatOneProcessDoes) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    AcceleratedBackend backend{.peers = seed % 2 == 0};
    const auto ranked = plan(seed);
    on_ranks(
        ranked.ranks, [&](RankGroup& group) { test::expect_requests(group, ranked, backend.opener(), 4); },
        GetParam().direct);
  }
}

TEST_P(AcceleratorRanks, RequestsInFlightComputeWhatOneProcessDoes) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    AcceleratedBackend backend;
    const auto ranked = plan(seed);
    on_ranks(
        ranked.ranks, [&](RankGroup& group) { test::expect_streams(group, ranked, backend.opener(), 3); },
        GetParam().direct);
  }
}

// A fault on a stream ends the request with the same error on every rank.
TEST_P(AcceleratorRanks, AFaultOnAStreamIsEveryonesError) {
  const auto ranked = plan(3);
  AcceleratedBackend backend;
  const auto& broken = ranked.plan.segments[ranked.plan.segments.size() / 2];
  backend.hash.hook = [&](const std::string& segment) -> Status {
    if (segment == broken.name) return Error(Code::kInternal, "the device is on fire");
    return {};
  };
  std::mutex mutex;
  std::set<std::string> errors;
  on_ranks(
      ranked.ranks,
      [&](RankGroup& group) {
        ExecutorOptions create;
        create.open = backend.opener();
        create.ranks = RankOptions{&group, ranked.rank_of_device, false};
        const auto executor = Executor::create(ranked.problem, ranked.plan, nullptr, create);
        ASSERT_TRUE(executor.ok()) << executor.error().to_string();
        test::write_input((*executor)->inputs(0), 7);
        const auto timing = (*executor)->run();
        const Status all = group.agree(timing.ok() ? Status() : Status(timing.error()));
        ASSERT_FALSE(all.ok());
        const std::lock_guard lock(mutex);
        errors.insert(all.error().to_string());
      },
      GetParam().direct);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_THAT(*errors.begin(), HasSubstr("the device is on fire"));
}

INSTANTIATE_TEST_SUITE_P(Transports, AcceleratorRanks,
                         testing::Values(Ways{2, 0, false, false}, Ways{2, 0, true, true},
                                         Ways{3, 0, true, false}, Ways{3, 2, true, false},
                                         Ways{3, 2, false, true}, Ways{2, 2, true, true}),
                         [](const auto& param) {
                           const Ways& w = param.param;
                           return std::to_string(w.ranks) + "Ranks" + (w.cpus > 0 ? "WithCpus" : "") +
                                  (w.host_hub ? "ThroughHost" : "") + (w.direct ? "Direct" : "Pinned");
                         });

// By the devices' events, a transfer between ranks begins after its producer is done, and ends when the
// tensor is in the receiver's memory.
TEST(AcceleratorRankTimes, TransfersLieBetweenTheirProducersAndReaders) {
  for (const bool direct : {false, true}) {
    const auto ranked = test::ranked_plan({.ops = 20, .devices = 4, .ranks = 2, .host_hub = true}, 2);
    AcceleratedBackend backend;
    std::vector<std::vector<StepTiming>> seen(2);
    on_ranks(
        2,
        [&](RankGroup& group) {
          ExecutorOptions create;
          create.open = backend.opener();
          create.ranks = RankOptions{&group, ranked.rank_of_device, false};
          const auto executor = Executor::create(ranked.problem, ranked.plan, nullptr, create);
          ASSERT_TRUE(executor.ok()) << executor.error().to_string();
          StreamOptions one;
          one.start_at_ns = 1;  // the same moment for both, as they share a clock
          auto& own = seen[static_cast<size_t>(group.rank())];
          one.done = [&](const RequestTiming& t) { own.assign(t.steps.begin(), t.steps.end()); };
          ASSERT_TRUE((*executor)->run_stream(one).ok());
        },
        direct);
    std::vector<double> produced(ranked.plan.segments.size(), 0);
    int sent = 0;
    for (size_t s = 0; s < ranked.plan.steps.size(); ++s) {
      const Step& step = ranked.plan.steps[s];
      const auto start = std::max(seen[0][s].start_us, seen[1][s].start_us);
      const auto finish = std::max(seen[0][s].finish_us, seen[1][s].finish_us);
      EXPECT_LE(start, finish) << "step " << s;
      if (step.kind == StepKind::kRun) produced[step.segment.index()] = finish;
      if (step.kind != StepKind::kTransfer) continue;
      EXPECT_GE(start + 1e-3, produced[step.segment.index()]) << "step " << s;
      sent += ranked.rank_of_device[step.from.index()] != ranked.rank_of_device[step.to.index()] ? 1 : 0;
    }
    EXPECT_GT(sent, 0);
  }
}

// The plan's load steps copy the parameters to each rank's devices.
TEST(AcceleratorRankLoads, ParametersComeByTheirLoads) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    test::RankedPlan ranked;
    ranked.problem = test::random_problem({.ops = 15,
                                           .devices = 3,
                                           .param_bytes = 100,
                                           .host_hub = true,
                                           .objective = Objective::kColdLatency,
                                           .seed = seed});
    ranked.plan = test::random_plan(ranked.problem, seed, 0.4);
    ranked.ranks = 2;
    ranked.rank_of_device = test::deal(ranked.problem, 2, seed);
    AcceleratedBackend backend;
    on_ranks(2, [&](RankGroup& group) { test::expect_requests(group, ranked, backend.opener(), 3); });
  }
}

}  // namespace
}  // namespace heddle
