// Requests that come one by one from threads of their own, as a server brings them.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "heddle/runtime/executor.h"
#include "support.h"

namespace heddle {
namespace {

using test::AcceleratedBackend;
using test::HashBackend;
using test::random_plan;
using test::random_problem;

// One thread for each slot, each with `requests` requests.
void bring(Executor& executor, int requests, const std::function<void(int slot, uint64_t request)>& one) {
  std::vector<std::thread> threads;
  for (int slot = 0; slot < executor.slots(); ++slot)
    threads.emplace_back([&, slot] {
      for (int i = 0; i < requests; ++i) one(slot, static_cast<uint64_t>(slot * 1000 + i));
    });
  for (auto& t : threads) t.join();
}

void expect_right(Executor& executor, const Problem& problem, const Plan& plan, int slot, uint64_t request) {
  test::write_input(executor.inputs(slot), request);
  const auto status = executor.run_slot(slot);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_EQ(test::read_outputs(executor.outputs(slot)),
            test::expected_outputs(problem, plan, executor.lane(slot), request));
}

TEST(Intake, ConcurrentRequestsGiveWhatEachGivesAlone) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Problem problem = random_problem(
        {.ops = 20, .devices = 3, .cores = seed % 3 == 0, .objective = Objective::kThroughput, .seed = seed});
    const int lanes = 1 + static_cast<int>(seed % 3);
    const Plan plan = random_plan(problem, seed, .4, lanes);
    HashBackend backend;
    const auto executor = test::make_executor(problem, plan,
                                              {.in_flight = 1 + static_cast<int>(seed % 5),
                                               .spin_us = seed % 2 == 0 ? 50.0 : 0.0,
                                               .open = backend.opener()});
    ASSERT_TRUE(executor->open().ok());
    bring(*executor, 30,
          [&](int slot, uint64_t request) { expect_right(*executor, problem, plan, slot, request); });
    executor->close();
    // A stream may follow, and requests again after it.
    test::Gathered gathered;
    EXPECT_TRUE(executor->run_stream(test::gathering(*executor, 8, 1, gathered)).ok());
    ASSERT_TRUE(executor->open().ok());
    expect_right(*executor, problem, plan, 0, 5);
  }
}

TEST(Intake, AcceleratorsServeConcurrentRequests) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Problem problem = random_problem(
        {.ops = 15, .devices = 3, .cpus = 1, .objective = Objective::kThroughput, .seed = seed});
    const Plan plan = random_plan(problem, seed, .4, 1 + static_cast<int>(seed % 2));
    test::AcceleratedBackend backend;
    const auto executor =
        test::make_executor(problem, plan, {.in_flight = 3, .spin_us = 0, .open = backend.opener()});
    ASSERT_TRUE(executor->open().ok());
    bring(*executor, 20,
          [&](int slot, uint64_t request) { expect_right(*executor, problem, plan, slot, request); });
  }
}

TEST(Intake, AFaultEndsItsOwnRequestAlone) {
  for (const int in_flight : {1, 4}) {
    const Problem problem = random_problem({.ops = 12, .devices = 3, .seed = 3});
    const Plan plan = random_plan(problem, 3, .3);
    HashBackend backend;
    std::atomic<int> calls{0}, faults{0}, failed{0};
    backend.hook = [&](const std::string&) -> Status {
      if (calls.fetch_add(1) % 17 != 16) return {};
      ++faults;
      return Error(Code::kInternal, "it broke");
    };
    const auto executor =
        test::make_executor(problem, plan, {.in_flight = in_flight, .open = backend.opener()});
    ASSERT_TRUE(executor->open().ok());
    bring(*executor, 50, [&](int slot, uint64_t request) {
      test::write_input(executor->inputs(slot), request);
      const auto status = executor->run_slot(slot);
      if (!status.ok()) {
        ++failed;
        EXPECT_NE(status.error().to_string().find("it broke"), std::string::npos);
        EXPECT_NE(status.error().to_string().find("segment"), std::string::npos);
        return;
      }
      EXPECT_EQ(test::read_outputs(executor->outputs(slot)),
                test::expected_outputs(problem, plan, executor->lane(slot), request));
    });
    EXPECT_GT(failed, 0);
    EXPECT_LT(failed, 50 * in_flight);
    // Segments of one request may break at the same time; none breaks another request.
    EXPECT_LE(failed, faults);
  }
}

// On accelerators a fault leaves out work of other requests, too. None of them may end with old outputs.
TEST(Intake, AFaultOnAnAcceleratorGivesNobodyOldOutputs) {
  const Problem problem = random_problem({.ops = 12, .devices = 3, .seed = 3});
  const Plan plan = random_plan(problem, 3, .3);
  AcceleratedBackend backend;
  std::atomic<int> calls{0}, failed{0}, good{0};
  backend.hash.hook = [&](const std::string&) -> Status {
    if (calls.fetch_add(1) % 40 != 39) return {};
    return Error(Code::kInternal, "it broke");
  };
  const auto executor = test::make_executor(problem, plan, {.in_flight = 4, .open = backend.opener()});
  ASSERT_TRUE(executor->open().ok());
  bring(*executor, 100, [&](int slot, uint64_t request) {
    test::write_input(executor->inputs(slot), request);
    if (!executor->run_slot(slot).ok()) {
      ++failed;
      return;
    }
    ++good;
    EXPECT_EQ(test::read_outputs(executor->outputs(slot)),
              test::expected_outputs(problem, plan, executor->lane(slot), request));
  });
  EXPECT_GT(failed, 0);
  EXPECT_GT(good, 0);
}

// Two requests at once do not always fit; one alone does, also after others have failed.
TEST(Intake, MemoryOfFailedRequestsIsGivenBack) {
  const Problem problem =
      random_problem({.ops = 16, .devices = 2, .max_us = 600, .device_memory_bytes = 64, .seed = 5});
  const Plan plan = random_plan(problem, 5, 0);
  auto alone = test::make_executor(problem, plan);
  ASSERT_TRUE(alone->run().ok());
  const auto executor = test::make_executor(problem, plan, {.in_flight = 3});
  ASSERT_TRUE(executor->open().ok());
  std::atomic<int> failed{0};
  bring(*executor, 40, [&](int slot, uint64_t) { failed += executor->run_slot(slot).ok() ? 0 : 1; });
  EXPECT_GT(failed, 0) << "the limit is too high for this test";
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(executor->run_slot(i % 3).ok()) << i;
}

TEST(Intake, ColdStartsAreRefused) {
  const Problem problem = random_problem({.ops = 5, .devices = 2, .seed = 1});
  const Plan plan = random_plan(problem, 1);
  HashBackend backend;
  const auto executor = test::make_executor(problem, plan, {.open = backend.opener(), .cold = ColdOptions{}});
  ASSERT_NE(executor, nullptr);
  const auto status = executor->open();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace heddle
