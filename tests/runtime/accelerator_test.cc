// Plans on accelerators: every tensor and parameter is copied to its reader, ordered only by events. Clean
// under the thread sanitizer.
#include <gtest/gtest.h>

#include <atomic>

#include "heddle/plan/evaluator.h"
#include "support.h"

namespace heddle {
namespace {

using test::AcceleratedBackend;
using test::random_plan;
using test::random_problem;

// Checks times from events: they lie within the request, and every step follows the steps that it needs.
void expect_order(const Plan& plan, const RequestTiming& timing) {
  constexpr double kTick = 1e-3;
  std::vector<double> loaded(plan.segments.size(), 0), produced(plan.segments.size(), 0);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const StepTiming& time = timing.steps[s];
    const size_t segment = plan.steps[s].segment.index();
    EXPECT_GE(time.start_us, 0);
    EXPECT_LE(time.start_us, time.finish_us);
    EXPECT_LE(time.finish_us, timing.latency_us + kTick);
    if (plan.steps[s].kind == StepKind::kLoad) loaded[segment] = time.finish_us;
    if (plan.steps[s].kind == StepKind::kTransfer) {
      EXPECT_GE(time.start_us + kTick, produced[segment]) << "step " << s;
    }
    if (plan.steps[s].kind != StepKind::kRun) continue;
    EXPECT_GE(time.start_us + kTick, loaded[segment]);
    produced[segment] = time.finish_us;
  }
}

struct Machine {
  int cpus;
  bool host_hub, peers;
};

class AcceleratorPlans : public testing::TestWithParam<Machine> {};

TEST_P(AcceleratorPlans, OutputsEqualTheSequentialOnesOnAnyPlan) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = random_problem({.ops = 25,
                                            .devices = 4,
                                            .edge_probability = 0.2,
                                            .cpus = GetParam().cpus,
                                            .host_hub = GetParam().host_hub,
                                            .seed = seed});
    const Plan plan = random_plan(problem, seed, 0.4);
    AcceleratedBackend backend{.peers = GetParam().peers};
    const auto executor = test::make_executor(problem, plan, {.open = backend.opener()});
    ASSERT_NE(executor, nullptr);
    for (uint64_t request = 1; request <= 10; ++request) {
      test::write_input(executor->inputs(0), request * 77);
      const auto timing = executor->run();
      ASSERT_TRUE(timing.ok()) << timing.error().to_string();
      EXPECT_EQ(test::read_outputs(executor->outputs(0)),
                test::expected_outputs(problem, plan, 0, request * 77))
          << "seed " << seed;
      expect_order(plan, *timing);
    }
  }
}

TEST_P(AcceleratorPlans, PipelinedRequestsEachGetTheirOwnOutputs) {
  for (const int lanes : {1, 2}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const Problem problem = random_problem({.ops = 15,
                                              .devices = 4,
                                              .cpus = GetParam().cpus,
                                              .host_hub = GetParam().host_hub,
                                              .objective = Objective::kThroughput,
                                              .seed = seed});
      const Plan plan = random_plan(problem, seed, 0.4, lanes);
      AcceleratedBackend backend{.peers = GetParam().peers};
      const auto executor = test::make_executor(problem, plan, {.in_flight = 4, .open = backend.opener()});
      ASSERT_NE(executor, nullptr);
      constexpr int kRequests = 60;
      test::Gathered got;
      const auto result = executor->run_stream(test::gathering(*executor, kRequests, 1000, got));
      ASSERT_TRUE(result.ok()) << result.error().to_string();
      for (int r = 0; r < kRequests; ++r) {
        const auto i = static_cast<size_t>(r);
        EXPECT_EQ(got.outputs[i],
                  test::expected_outputs(problem, plan, got.lane[i], static_cast<uint64_t>(r) + 1000))
            << "request " << r;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, AcceleratorPlans,
                         testing::Values(Machine{0, false, true}, Machine{0, false, false},
                                         Machine{0, true, true}, Machine{2, true, true},
                                         Machine{2, false, false}),
                         [](const auto& param) {
                           const Machine& m = param.param;
                           return std::string(m.cpus > 0 ? "WithCpus" : "Accelerators") +
                                  (m.host_hub ? "ThroughHost"
                                   : m.peers  ? "Peers"
                                              : "WithoutPeers");
                         });

TEST(AcceleratorCold, ParametersComeByTheirLoadsAndAreReadInPlaceWhereThePlanSaysSo) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Problem problem = random_problem({.ops = 15,
                                            .devices = 3,
                                            .param_bytes = 100,
                                            .host_hub = true,
                                            .objective = Objective::kColdLatency,
                                            .seed = seed});
    Plan plan = random_plan(problem, seed, 0.4);
    const auto loads = std::count_if(plan.steps.begin(), plan.steps.end(),
                                     [](const Step& s) { return s.kind == StepKind::kLoad; });
    ASSERT_GT(loads, 0);
    AcceleratedBackend backend;
    const auto executor = test::make_executor(problem, plan, {.open = backend.opener()});
    ASSERT_NE(executor, nullptr);
    for (uint64_t request = 1; request <= 3; ++request) {
      test::write_input(executor->inputs(0), request);
      const auto timing = executor->run();
      ASSERT_TRUE(timing.ok()) << timing.error().to_string();
      EXPECT_EQ(test::read_outputs(executor->outputs(0)), test::expected_outputs(problem, plan, 0, request));
      expect_order(plan, *timing);
    }
    EXPECT_EQ(backend.in_place, 0);
  }
}

TEST(AcceleratorCold, ASegmentWithHostAccessReadsMappedMemory) {
  const Problem problem = test::host_access_problem();
  Plan plan = random_plan(problem, 3, 0.4);
  int in_place = 0;
  for (Segment& segment : plan.segments) segment.host_access = in_place++ % 2 == 0;
  std::erase_if(plan.steps, [&](const Step& s) {
    return s.kind == StepKind::kLoad && plan.segments[s.segment.index()].host_access;
  });
  AcceleratedBackend backend;
  const auto executor = test::make_executor(problem, plan, {.open = backend.opener()});
  ASSERT_NE(executor, nullptr);
  test::write_input(executor->inputs(0), 9);
  const auto timing = executor->run();
  ASSERT_TRUE(timing.ok()) << timing.error().to_string();
  EXPECT_EQ(test::read_outputs(executor->outputs(0)), test::expected_outputs(problem, plan, 0, 9));
  EXPECT_EQ(backend.in_place, (in_place + 1) / 2);
}

TEST(AcceleratorErrors, AFaultOnAStreamStopsTheRunAndTheNextOneIsAsGoodAsNew) {
  for (const int in_flight : {1, 3}) {
    const Problem problem = random_problem({.ops = 20, .devices = 3, .cpus = 1, .seed = 5});
    const Plan plan = random_plan(problem, 5, 0.3);
    AcceleratedBackend backend;
    const std::string broken = plan.segments[plan.segments.size() / 2].name;
    std::atomic<bool> fault{true};
    backend.hash.hook = [&](const std::string& segment) -> Status {
      if (fault && segment == broken) return Error(Code::kInternal, "injected");
      return {};
    };
    const auto executor =
        test::make_executor(problem, plan, {.in_flight = in_flight, .open = backend.opener()});
    ASSERT_NE(executor, nullptr);
    const auto result = executor->run_stream({.requests = 50});
    ASSERT_FALSE(result.ok());
    EXPECT_NE(result.error().to_string().find("injected"), std::string::npos) << result.error().to_string();
    fault = false;
    test::write_input(executor->inputs(0), 4);
    ASSERT_TRUE(executor->run_stream({.requests = 1}).ok());
    EXPECT_EQ(test::read_outputs(executor->outputs(0)), test::expected_outputs(problem, plan, 0, 4));
  }
}

TEST(AcceleratorErrors, MemoryThatDoesNotSufficeIsToldBeforeAnythingRuns) {
  const Problem problem = random_problem({.ops = 30, .devices = 2, .seed = 2});
  const Plan plan = random_plan(problem, 2, 0.2);
  AcceleratedBackend backend{.memory_bytes = 1024};
  const auto executor = Executor::create(problem, plan, nullptr, {.open = backend.opener()});
  ASSERT_FALSE(executor.ok());
  EXPECT_EQ(executor.error().code(), Code::kInfeasible);
  EXPECT_NE(executor.error().to_string().find("of memory left"), std::string::npos)
      << executor.error().to_string();
  EXPECT_EQ(backend.hash.runs, 0);
}

TEST(AcceleratorErrors, EmulatedDevicesAreRefusedBesideThem) {
  const Problem problem = random_problem({.ops = 10, .devices = 2, .seed = 2});
  const Plan plan = random_plan(problem, 2, 0.2);
  AcceleratedBackend backend;
  const auto open = backend.opener();
  const auto mixed =
      Executor::create(problem, plan, nullptr,
                       {.open = [&](const Device& d) { return d.name == "d0" ? open(d) : open_device(d); }});
  ASSERT_FALSE(mixed.ok());
  EXPECT_NE(mixed.error().message().find("emulated"), std::string::npos) << mixed.error().to_string();
}

}  // namespace
}  // namespace heddle
