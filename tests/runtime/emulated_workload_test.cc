// Emulated runs of workloads whose transfers have given times or happen within runs.
#include <gtest/gtest.h>

#include "heddle/plan/evaluator.h"
#include "heddle/plan/placement_workload.h"
#include "heddle/runtime/executor.h"
#include "plan/workload_support.h"
#include "support.h"

namespace heddle {
namespace {

// Two flows of 20 ms leave one device: they take turns at its copy engine, as in the plan.
TEST(EmulatedWorkload, TransfersWithGivenTimesWaitForCopyEngines) {
  const Json matrix = {{0, 20'000}, {20'000, 0}};
  Json json = {{"name", "turns"}};
  for (int k = 0; k < 2; ++k) json["devices"].push_back({{"id", k}, {"memory", 100}});
  for (int v = 0; v < 3; ++v) json["ops"].push_back({{"id", v}, {"time", {10, 10}}, {"memory", 4}});
  json["edges"] = {{{"src", 0}, {"dst", 1}, {"flow", 3}, {"time", matrix}},
                   {{"src", 0}, {"dst", 2}, {"flow", 4}, {"time", matrix}}};
  const Problem problem = test::made(flow_workload_from_json(json)).problem;
  Assignment assignment;
  assignment.device = {DeviceId(0), DeviceId(1), DeviceId(1)};
  assignment.order = {OpId(0), OpId(1), OpId(2)};
  const Plan plan = test::made(build_plan(problem, assignment));
  const double predicted = test::made(evaluate(problem, plan)).makespan_us;
  EXPECT_GE(predicted, 40'000);
  const auto executor = test::make_executor(problem, plan);
  const auto timing = executor->run();
  ASSERT_TRUE(timing.ok()) << timing.error().to_string();
  EXPECT_GE(timing->latency_us, predicted - 0.1);
}

// CPUs of a placement workload run any number of ops at once: neither of two of 200 ms waits for the other's end.
TEST(EmulatedWorkload, CpusWithoutALimitRunOpsAtOnce) {
  Json json = {{"maxFPGAs", 1}, {"maxCPUs", 1}, {"maxSizePerFPGA", 10}, {"edges", Json::array()}};
  for (int v = 1; v <= 2; ++v)
    json["nodes"].push_back({{"id", v}, {"cpuLatency", 200}, {"fpgaLatency", 200}, {"size", 4}});
  const Problem problem = test::made(placement_workload_from_json(json, "two", {}));
  const DeviceId cpus(1);
  const Plan plan = test::made(plan_of_placement(problem, {{cpus, cpus}, {}}));
  const auto executor = test::make_executor(problem, plan);
  const auto timing = executor->run();
  ASSERT_TRUE(timing.ok()) << timing.error().to_string();
  ASSERT_EQ(timing->steps.size(), 2u);
  EXPECT_LT(timing->steps[1].start_us, timing->steps[0].finish_us);
  EXPECT_LT(timing->steps[0].start_us, timing->steps[1].finish_us);
}

}  // namespace
}  // namespace heddle
