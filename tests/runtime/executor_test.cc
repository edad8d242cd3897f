// The executor without OpenVINO: emulated devices, and a backend of real threads that computes hashes. Clean
// under the thread sanitizer.
#include "heddle/runtime/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "heddle/base/stopwatch.h"
#include "heddle/plan/evaluator.h"
#include "support.h"

namespace heddle {
namespace {

using test::HashBackend;
using test::random_plan;
using test::random_problem;

// Every step must follow what it reads: runs follow their transfers, transfers their producers.
void expect_precedence(const Problem& problem, const Plan& plan, const RequestTiming& timing) {
  const Graph& graph = *problem.graph;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& later = plan.steps[i];
    if (plan.segments[later.segment.index()].lane != timing.lane) continue;
    for (size_t j = 0; j < plan.steps.size(); ++j) {
      const Step& earlier = plan.steps[j];
      if (plan.segments[earlier.segment.index()].lane != timing.lane || i == j) continue;
      bool needs = later.kind == StepKind::kTransfer && earlier.kind == StepKind::kRun &&
                   earlier.segment == later.segment;
      if (later.kind == StepKind::kRun && earlier.kind == StepKind::kTransfer && earlier.to == later.to) {
        for (OpId op : plan.segments[later.segment.index()].ops) {
          for (TensorId t : graph.op(op).inputs) needs |= t == earlier.tensor;
        }
      }
      if (needs) {
        EXPECT_LE(timing.steps[j].finish_us, timing.steps[i].start_us + 1e-3)
            << "step " << i << " needs step " << j;
      }
    }
  }
}

TEST(Executor, EmulatedStepsTakeAtLeastTheirPlannedTimeInThePlansOrder) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Problem problem =
        random_problem({.ops = 15, .devices = 3, .max_us = 300, .transfer_us = 50, .seed = seed});
    const Plan plan = random_plan(problem, seed);
    const Timeline timeline = evaluate(problem, plan).value();
    auto executor = test::make_executor(problem, plan);
    const auto timing = executor->run();
    ASSERT_TRUE(timing.ok());
    EXPECT_GE(timing->latency_us, timeline.makespan_us - 0.01 * static_cast<double>(plan.steps.size()));
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      EXPECT_GE(timing->steps[s].finish_us - timing->steps[s].start_us,
                timeline.finish_us[s] - timeline.start_us[s] - 0.01);
      EXPECT_GE(timing->steps[s].start_us, timeline.start_us[s] - 0.01 * static_cast<double>(s + 1));
    }
    expect_precedence(problem, plan, *timing);
  }
}

TEST(Executor, RunsOnOneDeviceNeverOverlapAndKeepThePlansOrder) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Problem problem =
        random_problem({.ops = 20, .devices = 2, .max_us = 50, .transfer_us = 5, .seed = seed});
    const Plan plan = random_plan(problem, seed);
    const auto executor = test::make_executor(problem, plan);
    const auto timing = executor->run();
    ASSERT_TRUE(timing.ok());
    std::vector<double> last(2, 0);
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      if (plan.steps[s].kind != StepKind::kRun) continue;
      double& free_at = last[plan.steps[s].to.index()];
      EXPECT_GE(timing->steps[s].start_us, free_at - 1e-3);
      free_at = timing->steps[s].finish_us;
    }
  }
}

TEST(Executor, OutputsEqualTheSequentialOnesOnAnyPlan) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Problem problem = random_problem({.ops = 25, .devices = 4, .edge_probability = 0.2, .seed = seed});
    const Plan plan = random_plan(problem, seed, 0.4);
    HashBackend backend;
    const auto executor = test::make_executor(
        problem, plan, {.spin_us = seed % 2 == 0 ? 100.0 : 0.0, .open = backend.opener()});
    for (uint64_t request = 1; request <= 20; ++request) {
      test::write_input(executor->inputs(0), request * 77);
      const auto timing = executor->run();
      ASSERT_TRUE(timing.ok()) << timing.error().to_string();
      EXPECT_EQ(test::read_outputs(executor->outputs(0)),
                test::expected_outputs(problem, plan, 0, request * 77))
          << "seed " << seed;
      if (request == 1) expect_precedence(problem, plan, *timing);
    }
  }
}

TEST(Executor, DevicesThatShareACoreNeverRunAtOnce) {
  for (const int in_flight : {1, 3}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const Problem problem = random_problem({.ops = 20, .devices = 3, .cores = true, .seed = seed});
      const Plan plan = random_plan(problem, seed, 0.3);
      HashBackend backend;
      std::atomic<int> both{0}, single0{0}, single1{0};
      std::atomic<bool> clash{false};
      std::map<std::string, int> device_of;
      for (const Segment& s : plan.segments) device_of[s.name] = static_cast<int>(s.device.value);
      ASSERT_EQ(device_of.size(), plan.segments.size()) << "segment names must be unique for this test";
      backend.hook = [&](const std::string& segment) -> Status {
        auto& mine = device_of.at(segment) == 2 ? both : device_of.at(segment) == 0 ? single0 : single1;
        if (mine.fetch_add(1) != 0) clash = true;
        if (device_of.at(segment) == 2 ? single0 + single1 > 0 : both > 0) clash = true;
        std::this_thread::yield();
        mine.fetch_sub(1);
        return {};
      };
      const auto executor =
          test::make_executor(problem, plan, {.in_flight = in_flight, .open = backend.opener()});
      ASSERT_TRUE(executor->run_stream({.requests = 30}).ok());
      EXPECT_FALSE(clash.load());
    }
  }
}

TEST(Executor, PipelinedRequestsEachGetTheirOwnOutputs) {
  for (const int lanes : {1, 2}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const Problem problem =
          random_problem({.ops = 15, .devices = 4, .objective = Objective::kThroughput, .seed = seed});
      const Plan plan = random_plan(problem, seed, 0.4, lanes);
      HashBackend backend;
      const auto executor = test::make_executor(problem, plan, {.in_flight = 4, .open = backend.opener()});
      constexpr int kRequests = 200;
      test::Gathered got;
      const auto result = executor->run_stream(test::gathering(*executor, kRequests, 1000, got));
      ASSERT_TRUE(result.ok()) << result.error().to_string();
      EXPECT_EQ(result->latencies_us.size(), static_cast<size_t>(kRequests));
      for (int r = 0; r < kRequests; ++r) {
        const auto i = static_cast<size_t>(r);
        EXPECT_EQ(got.outputs[i],
                  test::expected_outputs(problem, plan, got.lane[i], static_cast<uint64_t>(r) + 1000))
            << "request " << r;
      }
      EXPECT_EQ(std::set<int>(got.lane.begin(), got.lane.end()).size(), static_cast<size_t>(lanes));
    }
  }
}

TEST(Executor, PipelinedEmulationReachesTheBusiestResourcesPeriod) {
  const Problem problem = random_problem({.ops = 10,
                                          .devices = 3,
                                          .max_us = 200,
                                          .transfer_us = 20,
                                          .objective = Objective::kThroughput,
                                          .seed = 3});
  const Plan plan = random_plan(problem, 3);
  const Timeline timeline = evaluate(problem, plan).value();
  const auto executor = test::make_executor(problem, plan, {.in_flight = 8});
  const Stopwatch watch;
  ASSERT_TRUE(executor->run_stream({.requests = 60}).ok());
  EXPECT_GE(1e6 * watch.seconds(), timeline.period_us * 60 * 0.999);
}

TEST(Executor, AFaultStopsTheRunAndNamesSegmentAndDevice) {
  for (const int in_flight : {1, 3}) {
    const Problem problem = random_problem({.ops = 20, .devices = 3, .seed = 5});
    const Plan plan = random_plan(problem, 5, 0.3);
    HashBackend backend;
    const std::string broken = plan.segments[plan.segments.size() / 2].name;
    std::atomic<bool> fault{true};
    backend.hook = [&](const std::string& segment) -> Status {
      if (fault && segment == broken) return Error(Code::kInternal, "injected");
      return {};
    };
    const auto executor =
        test::make_executor(problem, plan, {.in_flight = in_flight, .open = backend.opener()});
    const auto result = executor->run_stream({.requests = 50});
    ASSERT_FALSE(result.ok());
    const std::string device = problem.cluster->device(plan.segments[plan.segments.size() / 2].device).name;
    EXPECT_EQ(result.error().to_string(), "segment '" + broken + "' on device '" + device + "': injected");
    EXPECT_LT(backend.runs.load(), 50 * static_cast<int>(plan.segments.size()));
    // The executor works normally afterwards.
    fault = false;
    EXPECT_TRUE(executor->run_stream({.requests = 5}).ok());
  }
}

TEST(Executor, CancellationEndsARunOfEmulatedDevices) {
  const Problem problem = random_problem({.ops = 10, .devices = 2, .max_us = 1e7, .seed = 2});
  const Plan plan = random_plan(problem, 2);
  const auto executor = test::make_executor(problem, plan);
  const CancelToken token;
  std::thread canceller([&] { token.cancel(); });
  const auto result = executor->run(Deadline::never(token));
  canceller.join();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Code::kCancelled);
  const auto late = executor->run(Deadline::after_seconds(0));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code(), Code::kCancelled);
}

TEST(Executor, EmulatedMemoryIsBoundedAndFreedAtTheLastUse) {
  // A chain of 8-byte tensors on one device: at most two are alive.
  GraphBuilder builder("chain");
  TensorId t = builder.add_input("in", DType::kU8, {8});
  for (int i = 0; i < 50; ++i) {
    Op op;
    op.name = "op" + std::to_string(i);
    op.inputs = {t};
    t = builder.outputs_of(builder.add_op(
        std::move(op), {{.name = "t" + std::to_string(i), .dtype = DType::kU8, .shape = {8}}}))[0];
  }
  builder.add_output(t);
  for (const int64_t limit : {int64_t{16}, int64_t{15}}) {
    Problem problem = random_problem({.ops = 1, .devices = 1, .device_memory_bytes = limit});
    if (limit == 16) {
      auto graph = builder.build();
      ASSERT_TRUE(graph.ok());
      problem.graph = *graph;
    } else {
      problem.graph = random_problem({.ops = 3, .devices = 1, .edge_probability = 1})
                          .graph;  // three tensors alive at the last op
    }
    auto costs = std::make_shared<CostTable>(problem.graph->num_ops(), 1);
    for (size_t op = 0; op < problem.graph->num_ops(); ++op)
      costs->set(OpId(op), DeviceId(0), {.us = 1, .origin = Origin::kGiven, .rel_spread = 0});
    problem.costs = costs;
    const Plan plan = random_plan(problem, 1, 0);
    const auto executor = test::make_executor(problem, plan);
    const auto result = executor->run();
    if (limit == 16) {
      ASSERT_TRUE(result.ok()) << result.error().to_string();
      EXPECT_EQ(
          executor->memory()[static_cast<size_t>(problem.cluster->memory_pool(DeviceId(0)))].tensor_bytes,
          16);
    } else {
      ASSERT_FALSE(result.ok());
      EXPECT_NE(result.error().to_string().find("out of memory: segment"), std::string::npos)
          << result.error().to_string();
    }
  }
}

TEST(Executor, UnknownBackendIsRefusedWithTheNearestName) {
  Device device;
  device.name = "d";
  device.backend = "emulatd";
  const auto opened = open_device(device);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().to_string().find("did you mean 'emulated'"), std::string::npos)
      << opened.error().to_string();
  for (const auto& backend : backend_registry()) EXPECT_EQ(find_backend(backend->name()), backend.get());
}

}  // namespace
}  // namespace heddle
