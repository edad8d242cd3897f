// Plans for the loss of part of a device's speed.
#include "heddle/session/robust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plan/plan_support.h"

namespace heddle {
namespace {

constexpr double kLost = 0.5;

// A chain of ops on GPUs, whose order is decided.
Problem random_chain(Random& random, size_t ops, int gpus) {
  std::vector<test::OpSpec> specs;
  std::vector<std::vector<double>> times;
  for (size_t op = 0; op < ops; ++op) {
    std::string before = specs.empty() ? "" : specs.back().name;
    specs.push_back({.name = std::string(1, static_cast<char>('a' + op)),
                     .inputs = before.empty() ? std::vector<std::string>() : std::vector{before},
                     .bytes = static_cast<int64_t>(random.below(6))});
    auto& row = times.emplace_back();
    for (int gpu = 0; gpu < gpus; ++gpu) row.push_back(10 + static_cast<double>(random.below(40)));
  }
  specs.back().is_output = true;
  return test::make_problem(test::make_graph(specs), test::make_gpu_cluster(gpus), times);
}

// The best worst case over all placements.
double best_worst_case(const Problem& problem) {
  const size_t ops = problem.graph->num_ops(), devices = problem.cluster->num_devices();
  Assignment assignment;
  assignment.device.assign(ops, DeviceId(0));
  for (size_t op = 0; op < ops; ++op) assignment.order.emplace_back(op);
  double best = kImpossible;
  for (size_t code = 0; code < static_cast<size_t>(std::pow(devices, ops)); ++code) {
    for (size_t op = 0, rest = code; op < ops; ++op, rest /= devices)
      assignment.device[op] = DeviceId(rest % devices);
    const Plan plan = build_plan(problem, assignment).value();
    best = std::min(best, worst_loss(problem, plan, kLost).value().value_us);
  }
  return best;
}

TEST(RobustPlans, AreBoundedAndNoWorseThanTheFastestPlan) {
  Random random(5);
  int better = 0;
  for (int i = 0; i < 40; ++i) {
    const Problem problem = random_chain(random, 5, 2 + i % 2);
    Session session = session_of(problem);
    const auto robust = make_robust_plan(session, "auto", {.time_limit_s = 2}, kLost, {}).value();
    const double exact = best_worst_case(problem);
    EXPECT_DOUBLE_EQ(worst_loss(problem, robust.result.plan, kLost).value().value_us, robust.worst.value_us);
    EXPECT_LE(robust.bound.us, exact * (1 + 1e-9));
    EXPECT_GE(robust.worst.value_us, exact * (1 - 1e-9));
    EXPECT_LE(robust.worst.value_us, robust.of_fastest.value_us);
    better += robust.worst.value_us < robust.of_fastest.value_us * (1 - 1e-9);
  }
  EXPECT_GT(better, 0);  // the property is not empty
}

// The loss of {0, 1} also slows a plan that runs on {0} and {1}: without that, the bound would be above it.
TEST(RobustPlans, ALossSlowsDevicesThatShareACore) {
  const auto graph = test::make_graph({{"a", {}, 0}, {"b", {"a"}, 0, {}, true}});
  const Problem problem = test::make_problem(graph, test::make_cpu_cluster({{0, 1}, {0}, {1}}),
                                             {{10, 10.1, 100}, {10, 100, 10.1}});
  Assignment divided;
  divided.device = {DeviceId(1), DeviceId(2)};
  divided.order = {OpId(0), OpId(1)};
  const auto worst = worst_loss(problem, build_plan(problem, divided).value(), kLost).value();
  EXPECT_EQ(worst.device, DeviceId(0));
  EXPECT_DOUBLE_EQ(worst.value_us, 40.4);

  Session session = session_of(problem);
  const auto robust = make_robust_plan(session, "auto", {.time_limit_s = 2}, kLost, {}).value();
  EXPECT_LE(robust.bound.us, best_worst_case(problem) * (1 + 1e-9));
  EXPECT_DOUBLE_EQ(robust.worst.value_us, 40);
}

TEST(RobustPlans, DividesWorkThatOneDeviceDoesAlmostAsFast) {
  // Alone the first device takes 20, and 40 at half its speed. Divided with a transfer of 2: 22.5, and 33.
  const auto graph = test::make_graph({{"a", {}, 0}, {"b", {"a"}, 0, {}, true}});
  const Problem problem = test::make_problem(graph, test::make_gpu_cluster(2), {{10, 30}, {10, 10.5}});
  Session session = session_of(problem);
  const auto plain = make_plan(session, "auto", {.time_limit_s = 2}, {}).value();
  const auto robust = make_robust_plan(session, "auto", {.time_limit_s = 2}, kLost, {}).value();
  EXPECT_LE(plain.value_us, robust.result.value_us);
  EXPECT_LT(robust.worst.value_us, worst_loss(problem, plain.plan, kLost).value().value_us);
}

TEST(RobustPlans, ASharePastTheRangeIsInvalid) {
  Session session = session_of(
      test::make_problem(test::make_graph({{"a", {}, 8, {}, true}}), test::make_gpu_cluster(1), {{10}}));
  for (const double share : {0.0, 0.95, -1.0}) {
    const auto robust = make_robust_plan(session, "auto", {}, share, {});
    ASSERT_FALSE(robust.ok());
    EXPECT_EQ(robust.error().code(), Code::kInvalidInput);
  }
}

}  // namespace
}  // namespace heddle
