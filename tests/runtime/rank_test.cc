// Plans over several ranks (threads of one process): their computations, timing and failures. Clean under the
// thread sanitizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "heddle/base/progress.h"
#include "heddle/plan/evaluator.h"
#include "heddle/runtime/executor.h"
#include "heddle/runtime/rank_group.h"
#include "heddle/runtime/rank_run.h"
#include "rank_support.h"

namespace heddle {
namespace {

using test::HashBackend;
using ::testing::HasSubstr;

using test::deal;
using test::on_ranks;
using test::RankCase;

std::vector<test::RankedPlan> ranked_plans(const std::vector<RankCase>& cases, uint64_t seeds) {
  std::vector<test::RankedPlan> plans;
  for (const RankCase& c : cases) {
    for (uint64_t seed = 1; seed <= seeds; ++seed) plans.push_back(test::ranked_plan(c, seed));
  }
  return plans;
}

// Random graphs, plans and placements. Each rank computes its part, and the outputs equal those of the plan
// run in order. Three requests, so that buffers are reused.
TEST(Ranks, RandomPlansComputeWhatOneProcessDoes) {
  for (const auto& plan : ranked_plans({{.ops = 1, .devices = 1, .ranks = 2},
                                        {.ops = 12, .devices = 3, .ranks = 2},
                                        {.ops = 30, .devices = 4, .ranks = 4},
                                        {.ops = 25, .devices = 5, .ranks = 3, .cores = true},
                                        {.ops = 80, .devices = 6, .ranks = 3}},
                                       8)) {
    HashBackend backend;
    on_ranks(plan.ranks, [&](RankGroup& group) { test::expect_requests(group, plan, backend.opener(), 3); });
    ASSERT_EQ(backend.compiles.load(), static_cast<int>(plan.plan.segments.size()));  // one rank each
  }
}

// Emulated devices: segments and transfers take the plan's times on any rank. Shared links, engines and
// devices keep the plan's order across ranks. Hence the timeline is the evaluator's.
TEST(Ranks, EmulatedTimelinesAreTheEvaluators) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    test::RandomProblemOptions options;
    options.ops = 20;
    options.devices = 4;
    options.max_us = 8000;
    options.transfer_us = 2000;
    options.seed = seed;
    const Problem problem = test::random_problem(options);
    const Plan plan = test::random_plan(problem, seed, 0.3);
    const Timeline timeline = evaluate(problem, plan).value();
    on_ranks(2, [&](RankGroup& group) {
      RankRunOptions run;
      run.rank_of_device = deal(problem, 2, seed);
      run.run.repeats = 5;
      run.run.warmups = 1;
      const auto record = run_plan_on_ranks(group, problem, plan, nullptr, run);
      ASSERT_TRUE(record.ok()) << record.error().to_string();
      if (group.rank() != 0) return;
      EXPECT_EQ(record->repeats, 5);
      EXPECT_DOUBLE_EQ(record->predicted_us, timeline.makespan_us);
      // No step is faster than planned; other work on the machine may make it slower.
      EXPECT_GE(record->measured_us, timeline.makespan_us * 0.999);
      for (size_t s = 0; s < plan.steps.size(); ++s) {
        EXPECT_GE(record->steps[s].median_us, timeline.finish_us[s] - timeline.start_us[s] - 1);
        EXPECT_GE(record->steps[s].start_us, timeline.start_us[s] - 1);
      }
      std::printf("predicted %.0f us, measured %.0f us\n", record->predicted_us, record->measured_us);
    });
  }
}

TEST(Ranks, EmulatedDevicesCanSendTensorsForReal) {
  test::RandomProblemOptions options;
  options.ops = 30;
  options.devices = 4;
  options.transfer_us = 1e6;  // with emulated transfers, this would take seconds
  const Problem problem = test::random_problem(options);
  const Plan plan = test::random_plan(problem, 5, 0.2);
  on_ranks(4, [&](RankGroup& group) {
    RankRunOptions run;
    run.rank_of_device = {0, 1, 2, 3};
    run.run.repeats = 1;
    run.run.warmups = 0;
    run.real_transfers = true;
    const auto record = run_plan_on_ranks(group, problem, plan, nullptr, run);
    ASSERT_TRUE(record.ok()) << record.error().to_string();
    if (group.rank() == 0) {
      EXPECT_LT(record->measured_us, record->predicted_us / 2);
    }
  });
}

// A failing segment ends the request on every rank with the same error, which names rank and segment.
TEST(Ranks, OneRanksFailureIsEveryonesError) {
  test::RandomProblemOptions options;
  options.ops = 40;
  options.devices = 4;
  const Problem problem = test::random_problem(options);
  const Plan plan = test::random_plan(problem, 3, 0.2);
  const auto& last = plan.segments.back();
  HashBackend backend;
  backend.hook = [&](const std::string& segment) -> Status {
    if (segment == last.name) return Error(Code::kInternal, "the device is on fire");
    return {};
  };
  const std::vector<int> rank_of_device = {1, 2, 3, 1};
  std::mutex mutex;
  std::set<std::string> errors;
  on_ranks(4, [&](RankGroup& group) {
    ExecutorOptions create;
    create.open = backend.opener();
    create.ranks = RankOptions{&group, rank_of_device, false};
    auto executor = Executor::create(problem, plan, nullptr, create);
    ASSERT_TRUE(executor.ok());
    test::write_input((*executor)->inputs(0), 1);
    const auto timing = (*executor)->run();
    const Status all = group.agree(timing.ok() ? Status() : Status(timing.error()));
    ASSERT_FALSE(all.ok());
    const std::lock_guard lock(mutex);
    errors.insert(all.error().to_string());
  });
  ASSERT_EQ(errors.size(), 1U);
  const int rank = rank_of_device[last.device.index()];
  EXPECT_THAT(*errors.begin(), HasSubstr("rank " + std::to_string(rank) + " (local): segment '" + last.name));
  EXPECT_THAT(*errors.begin(), HasSubstr("the device is on fire"));
}

TEST(Ranks, WhatDoesNotCompileOnOneRankEndsAll) {
  test::RandomProblemOptions options;
  options.devices = 2;
  const Problem problem = test::random_problem(options);
  const Plan plan = test::random_plan(problem, 1, 0);
  HashBackend backend;
  on_ranks(2, [&](RankGroup& group) {
    ExecutorOptions create;
    create.ranks = RankOptions{&group, {0, 1}, false};
    create.open = [&](const Device& device) -> Result<std::unique_ptr<RuntimeDevice>> {
      if (device.name == "d1") return Error(Code::kNotFound, "no such accelerator");
      return backend.opener()(device);
    };
    const auto executor = Executor::create(problem, plan, nullptr, create);
    ASSERT_FALSE(executor.ok());
    EXPECT_THAT(executor.error().to_string(), HasSubstr("rank 1 (local): device 'd1': no such accelerator"));
  });
}

TEST(Ranks, CancelledRequestsEndEverywhere) {
  const Problem problem = test::random_problem({.devices = 2, .max_us = 1e7});
  const Plan plan = test::random_plan(problem, 1, 0);
  const CancelToken cancel;
  on_ranks(2, [&](RankGroup& group) {
    RankRunOptions run;
    run.rank_of_device = {0, 1};
    if (group.rank() == 0) run.run.deadline = Deadline::never(cancel);
    std::thread later;
    if (group.rank() == 0) {
      later = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        cancel.cancel();
      });
    }
    const auto record = run_plan_on_ranks(group, problem, plan, nullptr, run);
    ASSERT_FALSE(record.ok());
    EXPECT_EQ(record.error().code(), Code::kCancelled);
    if (later.joinable()) later.join();
  });
}

struct ThirdRequest final : ProgressSink {
  void report(const ProgressUpdate& update) override {
    if (update.what == "running" && update.done == 3) reached.count_down();
  }
  std::latch reached{1};
};

// Nearly all of the time a request is under way.
TEST(Ranks, WhatWasMeasuredBeforeACancellationCounts) {
  const Problem problem = test::random_problem({.devices = 2, .max_us = 2e4});
  const Plan plan = test::random_plan(problem, 1, 0);
  const CancelToken cancel;
  ThirdRequest third;
  std::thread later([&] {
    third.reached.wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    cancel.cancel();
  });
  on_ranks(2, [&](RankGroup& group) {
    RankRunOptions run;
    run.rank_of_device = {0, 1};
    run.run.repeats = 100'000;
    run.run.warmups = 0;
    if (group.rank() == 0) {
      run.run.deadline = Deadline::never(cancel);
      run.run.progress = &third;
    }
    const auto record = run_plan_on_ranks(group, problem, plan, nullptr, run);
    ASSERT_TRUE(record.ok()) << record.error().to_string();
    if (group.rank() != 0) return;
    EXPECT_GE(record->latencies_us.size(), 3U);
    EXPECT_LT(record->latencies_us.size(), 100'000U);
    EXPECT_GT(record->measured_us, 0);
  });
  later.join();
}

TEST(Ranks, ColdStartsAreRefused) {
  test::RandomProblemOptions options;
  options.devices = 2;
  const Problem problem = test::random_problem(options);
  const Plan plan = test::random_plan(problem, 1, 0);
  on_ranks(2, [&](RankGroup& group) {
    ExecutorOptions create;
    create.cold = ColdOptions();
    create.ranks = RankOptions{&group, {0, 1}, false};
    const auto executor = Executor::create(problem, plan, nullptr, create);
    ASSERT_FALSE(executor.ok());
    EXPECT_EQ(executor.error().code(), Code::kUnsupported);
  });
}

// Streams of requests with different inputs. Each request gives the result of the plan run in order, in any
// slot and with any overlap of ranks. Two streams, to show that the first one leaves nothing behind.
TEST(Ranks, RequestsInFlightComputeWhatOneProcessDoes) {
  for (const auto& plan : ranked_plans({{.ops = 12, .devices = 3, .ranks = 2},
                                        {.ops = 30, .devices = 4, .ranks = 4},
                                        {.ops = 25, .devices = 5, .ranks = 3, .cores = true}},
                                       6)) {
    for (const int in_flight : {2, 5}) {
      HashBackend backend;
      on_ranks(plan.ranks,
               [&](RankGroup& group) { test::expect_streams(group, plan, backend.opener(), in_flight); });
    }
  }
}

// A failure in the middle of a stream ends all requests in flight on all ranks, and no rank starts another
// one.
TEST(Ranks, OneRanksFailureEndsTheStream) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    test::RandomProblemOptions options;
    options.ops = 20;
    options.devices = 4;
    options.seed = seed;
    const Problem problem = test::random_problem(options);
    const Plan plan = test::random_plan(problem, seed);
    const auto rank_of_device = deal(problem, 3, seed);
    HashBackend backend;
    std::atomic<int> runs{0};
    backend.hook = [&](const std::string&) -> Status {
      if (++runs == 40 + static_cast<int>(seed)) return Error(Code::kInternal, "the device is on fire");
      return {};
    };
    on_ranks(3, [&](RankGroup& group) {
      ExecutorOptions create;
      create.in_flight = 4;
      create.open = backend.opener();
      create.ranks = RankOptions{&group, rank_of_device, false};
      auto executor = Executor::create(problem, plan, nullptr, create);
      ASSERT_TRUE(executor.ok()) << executor.error().to_string();
      StreamOptions run;
      run.requests = 50;
      const auto result = (*executor)->run_stream(run);
      const Status all = group.agree(result.ok() ? Status() : Status(result.error()));
      ASSERT_FALSE(all.ok());
      EXPECT_THAT(all.error().to_string(), HasSubstr("the device is on fire"));
    });
    EXPECT_LT(runs.load(), 50 * static_cast<int>(plan.segments.size()));
  }
}

// Emulated: two devices on two ranks with one op each. With two requests in flight, the ops of different
// requests overlap.
TEST(Ranks, StreamsAreMeasuredAndPredicted) {
  test::RandomProblemOptions options;
  options.ops = 10;
  options.devices = 2;
  options.max_us = 4000;
  options.seed = 3;
  const Problem problem = test::random_problem(options);
  const Plan plan = test::random_plan(problem, 3, 0.3);
  on_ranks(2, [&](RankGroup& group) {
    RankRunOptions run;
    run.rank_of_device = {0, 1};
    run.run.repeats = 24;
    run.run.warmups = 1;
    run.run.in_flight = 3;
    const auto record = run_plan_on_ranks(group, problem, plan, nullptr, run);
    ASSERT_TRUE(record.ok()) << record.error().to_string();
    if (group.rank() != 0) return;
    EXPECT_EQ(record->repeats, 24);
    EXPECT_EQ(record->requests_in_flight, 3);
    EXPECT_EQ(record->predicted_us, evaluate(problem, plan).value().period_us);
    EXPECT_EQ(record->latencies_us.size(), 24U);
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      if (plan.steps[s].kind == StepKind::kRun) {
        EXPECT_GT(record->steps[s].median_us, 0) << "step " << s;
      }
    }
  });
}

TEST(RankNaps, AWaitIsNeverMuchLongerThanWhatItWaitsFor) {
  for (const bool others_compute : {false, true}) {
    int64_t before = 0;
    for (int64_t waited = 1; waited < int64_t{10'000'000'000}; waited = waited * 3 / 2 + 1) {
      const int64_t nap = nap_ns(waited, others_compute);
      EXPECT_GE(nap, before);
      EXPECT_LE(nap * 16, waited);
      before = nap;
    }
    EXPECT_EQ(before, 100'000);
  }
  EXPECT_EQ(nap_ns(1'000'000, false), 0);  // no other thread needs the core
  EXPECT_GT(nap_ns(1'000'000, true), 0);
}

TEST(RankGroup, TextsErrorsAndClocks) {
  on_ranks(3, [](RankGroup& group) {
    const std::string long_text(3'000'000, 'x');
    EXPECT_EQ(group.broadcast(group.rank() == 0 ? long_text : "").value(), long_text);
    EXPECT_EQ(group.broadcast("").value(), "");
    const auto all = group.exchange("I am " + std::to_string(group.rank())).value();
    EXPECT_EQ(all, (std::vector<std::string>{"I am 0", "I am 1", "I am 2"}));
    EXPECT_TRUE(group.agree({}).ok());
    // The error must be the cause, not a cancellation that follows from it.
    const Status own = group.rank() == 2 ? Status(Error(Code::kIo, "no disk"))
                                         : Status(Error(Code::kCancelled, "somebody else failed"));
    const Status agreed = group.agree(own);
    ASSERT_FALSE(agreed.ok());
    EXPECT_EQ(agreed.error().code(), Code::kIo);
    EXPECT_EQ(agreed.error().to_string(), "rank 2 (local): no disk");
    // Threads of one process share a clock.
    EXPECT_LT(std::abs(group.clock_offset_ns().value()), 1'000'000'000);
  });
}

std::shared_ptr<const Cluster> hosts_of_devices(const std::vector<int>& devices) {
  ClusterBuilder builder("c");
  for (size_t h = 0; h < devices.size(); ++h) {
    const HostId host = builder.add_host({"h" + std::to_string(h), 0});
    for (int d = 0; d < devices[h]; ++d) {
      Device device;
      device.name = "h" + std::to_string(h) + "d" + std::to_string(d);
      device.host = host;
      builder.add_device(device);
    }
  }
  return builder.build().value();
}

TEST(RankPlacement, ByNameByOrderByDeviceAndByChoice) {
  const auto two = hosts_of_devices({2, 1});
  EXPECT_EQ(place_on_ranks(*two, {"x", "x"}, "").value(), (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(place_on_ranks(*two, {"h1", "h0"}, "").value(), (std::vector<int>{1, 1, 0}));
  EXPECT_EQ(place_on_ranks(*two, {"h0", "h0"}, "").value(),
            (std::vector<int>{0, 0, 1}));  // equal names do not help
  EXPECT_EQ(place_on_ranks(*two, {"x", "x"}, "h0d1,h1d0;h0d0").value(), (std::vector<int>{1, 0, 0}));
  EXPECT_EQ(place_on_ranks(*two, {"x", "x", "x"}, "h0d0,h0d1,h1d0;;").value(), (std::vector<int>{0, 0, 0}));
  const auto one = hosts_of_devices({4});
  EXPECT_EQ(place_on_ranks(*one, {"x", "x"}, "").value(), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(place_on_ranks(*one, {"x", "x", "x", "x"}, "").value(), (std::vector<int>{0, 1, 2, 3}));
  const std::pair<std::string, const char*> wrong[] = {{"h0d0;h0d1", "device 'h1d0' has no rank"},
                                                       {"h0d0,h0d0;h0d1", "was given twice"},
                                                       {"h0d0,h0d1;h1d9", "no device 'h1d9' (did you mean"},
                                                       {"h0d0,h0d1,h1d0", "of 1 ranks, but there are 2"},
                                                       {"h0d0,;h0d1", "no device ''"}};
  for (const auto& [choice, message] : wrong) {
    const auto placed = place_on_ranks(*two, {"x", "x"}, choice);
    ASSERT_FALSE(placed.ok()) << choice;
    EXPECT_THAT(placed.error().to_string(), HasSubstr(message));
  }
  const auto many = place_on_ranks(*two, {"x", "x", "x"}, "");
  ASSERT_FALSE(many.ok());
  EXPECT_THAT(many.error().to_string(), HasSubstr("start mpirun with -n 2"));
}

}  // namespace
}  // namespace heddle
