// Load workers with accelerators: segments are compiled, copied to their devices and run while others are
// still loading. Copies follow the plan's order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <new>
#include <stdexcept>
#include <thread>

#include "executor/accelerators.h"
#include "heddle/cluster/cluster.h"
#include "heddle/runtime/stream_runtime.h"
#include "support.h"

namespace heddle {
namespace {

using test::AcceleratedBackend;
using testing::HasSubstr;

constexpr int64_t kParameterBytes = 64;  // of each segment, on the device
// Room for the two largest segments of one op each.
constexpr int64_t kBudget = 800;

Problem cold_problem(uint64_t seed, int devices = 4, int cpus = 0) {
  return test::random_problem(
      {.ops = 24, .devices = devices, .param_bytes = 100, .cpus = cpus, .host_hub = true, .seed = seed});
}

std::unique_ptr<Executor> make(const Problem& problem, const Plan& plan, AcceleratedBackend& backend,
                               const ColdOptions& cold) {
  auto executor = Executor::create(problem, plan, nullptr, {.open = backend.opener(), .cold = cold});
  EXPECT_TRUE(executor.ok()) << executor.error().to_string();
  return executor.ok() ? std::move(executor).value() : nullptr;
}

void expect_outputs(Executor& executor, const Problem& problem, const Plan& plan, uint64_t input) {
  test::write_input(executor.inputs(0), input);
  const auto timing = executor.run();
  ASSERT_TRUE(timing.ok()) << timing.error().to_string();
  EXPECT_EQ(test::read_outputs(executor.outputs(0)), test::expected_outputs(problem, plan, 0, input));
}

// Bytes of the tensors on the only device, in buffers of 8 bytes each.
int64_t tensor_bytes(const Problem& problem, const Plan& plan) {
  AcceleratedBackend backend;
  const auto executor = make(problem, plan, backend, {});
  const auto pool = static_cast<size_t>(problem.cluster->memory_pool(DeviceId(0)));
  return executor->memory()[pool].tensor_bytes / 8 * kDeviceAlignment;
}

// Lets some later segments be made before earlier ones.
void delay_compiles(AcceleratedBackend& backend) {
  backend.hash.compile_hook = [&backend](const std::string&) -> Status {
    if (backend.hash.compiles % 3 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return {};
  };
}

TEST(AcceleratorLoadWorkers, EveryStartComputesWhatAWarmOneDoes) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    for (const int workers : {1, 4}) {
      const Problem problem = cold_problem(seed, 4, static_cast<int>(seed % 2));
      const Plan plan = test::random_plan(problem, seed, 0.3);
      AcceleratedBackend backend;
      delay_compiles(backend);
      const auto executor =
          make(problem, plan, backend, {.load_workers = workers, .overlap = seed % 4 != 0, .read_model = {}});
      EXPECT_EQ(backend.hash.compiles, 0) << "create() compiles nothing";
      for (uint64_t request = 1; request <= 3; ++request) expect_outputs(*executor, problem, plan, request);
      EXPECT_EQ(backend.hash.compiles, static_cast<int>(plan.segments.size())) << "what was loaded stays";
    }
  }
}

TEST(AcceleratorLoadWorkers, CopiesWaitForThoseBeforeThemInThePlansOrder) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const Problem problem = cold_problem(seed);
    const Plan plan = test::random_plan(problem, seed, 0.2);
    std::map<std::string, size_t> place;
    for (const Step& step : plan.steps) {
      const size_t next = place.size();
      if (step.kind == StepKind::kRun) place[plan.segments[step.segment.index()].name] = next;
    }
    AcceleratedBackend backend;
    std::vector<std::atomic<bool>> compiled(place.size());
    std::atomic<int> too_early{0};
    backend.hash.compile_hook = [&](const std::string& segment) -> Status {
      const size_t at = place.at(segment);
      if (at % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      compiled[at] = true;
      return {};
    };
    backend.hash.hook = [&](const std::string& segment) -> Status {
      for (size_t at = 0; at < place.at(segment); ++at) too_early += compiled[at] ? 0 : 1;
      return {};
    };
    const auto executor = make(problem, plan, backend, {.load_workers = 4, .read_model = {}});
    expect_outputs(*executor, problem, plan, seed);
    EXPECT_EQ(too_early, 0);
  }
}

// The device's memory holds what fits into the budget, and no more.
TEST(AcceleratorLoadWorkers, WithABudgetMemoryIsGivenBackBeforeItIsNeededAgain) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    for (const int workers : {1, 3}) {
      const Problem problem = cold_problem(seed, 1);
      const Plan plan = test::random_plan(problem, seed, 0);
      constexpr int64_t kMostAtOnce = kBudget / 100;
      ASSERT_GT(static_cast<int64_t>(plan.segments.size()), kMostAtOnce);
      AcceleratedBackend backend{.memory_bytes = tensor_bytes(problem, plan) + kMostAtOnce * kParameterBytes};
      const auto executor =
          make(problem, plan, backend, {.load_workers = workers, .budget_bytes = kBudget, .read_model = {}});
      for (uint64_t request = 1; request <= 4; ++request) expect_outputs(*executor, problem, plan, request);
      EXPECT_LE(executor->peak_resident_bytes(), kBudget);
      EXPECT_GT(backend.hash.compiles, static_cast<int>(plan.segments.size())) << "loaded again";
    }
  }
}

TEST(AcceleratorLoadWorkers, WithoutOverlapASegmentIsCompiledWhenTheDeviceHasRunTheOneBefore) {
  const Problem problem = cold_problem(6, 2);
  const Plan plan = test::random_plan(problem, 6, 0);
  for (const int64_t budget : {int64_t{0}, kBudget}) {
    AcceleratedBackend backend;
    std::atomic<int> too_early{0};
    backend.hash.hook = [](const std::string&) -> Status {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return {};
    };
    backend.hash.compile_hook = [&](const std::string&) -> Status {
      if (backend.hash.running != 0 || backend.hash.runs < backend.hash.compiles - 1) ++too_early;
      return {};
    };
    const auto executor =
        make(problem, plan, backend,
             {.load_workers = 3, .budget_bytes = budget, .overlap = false, .read_model = {}});
    expect_outputs(*executor, problem, plan, 4);
    EXPECT_EQ(too_early, 0) << "budget " << budget;
  }
}

TEST(AcceleratorLoadWorkers, ASegmentWithHostAccessIsNotCopied) {
  const Problem problem = test::host_access_problem();
  Plan plan = test::random_plan(problem, 3, 0.4);
  // Loads in the plan and load workers exclude each other.
  AcceleratedBackend refusing;
  const auto refused = Executor::create(problem, plan, nullptr,
                                        {.open = refusing.opener(), .cold = ColdOptions{.read_model = {}}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kUnsupported);
  EXPECT_THAT(refused.error().to_string(), HasSubstr("run it without --cold"));
  for (Segment& segment : plan.segments) segment.host_access = true;
  std::erase_if(plan.steps, [](const Step& s) { return s.kind == StepKind::kLoad; });
  AcceleratedBackend backend;
  const auto executor = make(problem, plan, backend, {.read_model = {}});
  expect_outputs(*executor, problem, plan, 9);
  EXPECT_EQ(backend.in_place, static_cast<int>(plan.segments.size()));
}

// The device has just enough memory, so the next start fails if anything was not released.
TEST(AcceleratorLoadWorkers, WhatFailsReleasesEverythingAndTheNextStartIsAsGoodAsNew) {
  const Problem problem = cold_problem(5, 1);
  const Plan plan = test::random_plan(problem, 5, 0);
  const int64_t tensors = tensor_bytes(problem, plan);
  const std::string broken = plan.segments[plan.segments.size() / 2].name;
  for (const test::SegmentFault& fault : test::segment_faults()) {
    for (const int64_t budget : {int64_t{0}, kBudget}) {
      const int64_t at_once = budget > 0 ? budget / 100 : static_cast<int64_t>(plan.segments.size());
      AcceleratedBackend backend{.memory_bytes = tensors + at_once * kParameterBytes};
      std::atomic<bool> armed{true};
      (fault.compiling ? backend.hash.compile_hook : backend.hash.hook) = [&](const std::string& segment) {
        return armed && segment == broken ? fault.happen() : Status();
      };
      const auto executor =
          make(problem, plan, backend, {.load_workers = 3, .budget_bytes = budget, .read_model = {}});
      for (int again = 0; again < 2; ++again) {
        const auto failed = executor->run();
        ASSERT_FALSE(failed.ok()) << fault.what;
        EXPECT_THAT(failed.error().to_string(), HasSubstr(fault.message)) << fault.what;
        if (fault.compiling) {
          EXPECT_THAT(failed.error().to_string(), HasSubstr("segment '" + broken + "' on device 'd0'"));
        }
        EXPECT_EQ(backend.hash.live, 0) << fault.what << " leaves compiled segments behind";
      }
      armed = false;
      expect_outputs(*executor, problem, plan, 9);
    }
  }
}

TEST(AcceleratorLoadWorkers, MemoryThatEndsIsAnErrorThatNamesTheSegmentAndABudgetHelps) {
  const Problem problem = cold_problem(2, 1);
  const Plan plan = test::random_plan(problem, 2, 0);
  const auto all = static_cast<int64_t>(plan.segments.size()) * kParameterBytes;
  const int64_t memory_bytes = tensor_bytes(problem, plan) + all - 1;
  AcceleratedBackend backend{.memory_bytes = memory_bytes};
  const auto executor = make(problem, plan, backend, {.load_workers = 2, .read_model = {}});
  for (int again = 0; again < 2; ++again) {
    const auto timing = executor->run();
    ASSERT_FALSE(timing.ok());
    EXPECT_EQ(timing.error().code(), Code::kInfeasible);
    EXPECT_THAT(timing.error().to_string(),
                testing::AllOf(HasSubstr("segment '"), HasSubstr("of memory left")));
    EXPECT_EQ(backend.hash.live, 0);
  }
  AcceleratedBackend same{.memory_bytes = memory_bytes};
  const auto bounded =
      make(problem, plan, same, {.load_workers = 2, .budget_bytes = kBudget, .read_model = {}});
  expect_outputs(*bounded, problem, plan, 3);
}

TEST(AcceleratorLoadWorkers, ARequestThatIsCancelledInTheMiddleReleasesEverything) {
  const Problem problem = cold_problem(4, 1);
  const Plan plan = test::random_plan(problem, 4, 0);
  const auto count = static_cast<int64_t>(plan.segments.size());
  const int64_t tensors = tensor_bytes(problem, plan);
  for (const int64_t budget : {int64_t{0}, kBudget}) {
    AcceleratedBackend backend{.memory_bytes =
                                   tensors + (budget > 0 ? budget / 100 : count) * kParameterBytes};
    const CancelToken token;
    std::atomic<bool> stopping{true};
    backend.hash.compile_hook = [&](const std::string&) -> Status {
      if (!stopping || backend.hash.compiles < 3) return {};
      token.cancel();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return {};
    };
    const auto executor =
        make(problem, plan, backend, {.load_workers = 1, .budget_bytes = budget, .read_model = {}});
    const auto timing = executor->run(Deadline::never(token));
    // The cancellation may come after all segments are loaded.
    if (!timing.ok()) {
      EXPECT_EQ(timing.error().code(), Code::kCancelled);
      EXPECT_EQ(backend.hash.live, 0);
    }
    stopping = false;
    expect_outputs(*executor, problem, plan, 5);
  }
}

TEST(AcceleratorLoadWorkers, CopiesOfTwoDevicesShareAWayWhereALinkOrBusIsTheSame) {
  ClusterBuilder builder("ways");
  const HostId host = builder.add_host({.name = "host", .memory_bytes = 0});
  const BusId bus = builder.add_bus({.name = "root", .bytes_per_s = 1e9});
  const NodeId bridge = builder.add_switch("bridge");
  std::vector<DeviceId> devices;
  const auto add = [&](NodeId from, BusId on) {
    Device device;
    device.name = "d" + std::to_string(devices.size());
    device.device_class = "test";
    device.host = host;
    devices.push_back(builder.add_device(device));
    builder.add_link({.name = "l" + device.name,
                      .a = from,
                      .b = builder.device_node(devices.back()),
                      .bytes_per_s = 1e9,
                      .latency_us = 1,
                      .bus = on});
  };
  builder.add_link(
      {.name = "up", .a = builder.host_node(host), .b = bridge, .bytes_per_s = 1e9, .latency_us = 1});
  add(bridge, {});
  add(bridge, {});
  add(builder.host_node(host), bus);
  add(builder.host_node(host), bus);
  add(builder.host_node(host), {});
  const auto cluster = builder.build();
  ASSERT_TRUE(cluster.ok()) << cluster.error().to_string();
  const auto shared = [&](int a, int b) {
    return share_load_route(**cluster, devices[static_cast<size_t>(a)], devices[static_cast<size_t>(b)]);
  };
  EXPECT_TRUE(shared(0, 1)) << "both cross the bridge's link";
  EXPECT_TRUE(shared(2, 3)) << "both are on the bus";
  EXPECT_FALSE(shared(0, 2));
  EXPECT_FALSE(shared(4, 0));
  EXPECT_FALSE(shared(4, 3));
}

}  // namespace
}  // namespace heddle
