// One suite for every planner of the registry, on every objective that it declares. run_planner evaluates and
// checks each plan; what comes back is verified.
#include <gtest/gtest.h>

#include <algorithm>

#include "heddle/plan/checker.h"
#include "heddle/planners/planner.h"
#include "plan/workload_support.h"
#include "planners_support.h"

namespace heddle {
namespace {

using namespace test;

struct Case {
  const PlannerEntry* entry;
  Objective objective;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const PlannerEntry& entry : planner_registry()) {
    const auto& can = entry.info.transfers;
    if (std::find(can.begin(), can.end(), Transfers::kRoutes) == can.end()) continue;
    for (const Objective o : entry.info.objectives) cases.push_back({&entry, o});
  }
  return cases;
}

class EveryPlanner : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (GetParam().entry->info.name == "sortinghat-cp") HEDDLE_NEEDS_CP_SAT;
  }
  PlannerOptions options(uint64_t seed = 1) const {
    PlannerOptions o;
    o.seed = seed;
    o.deadline = Deadline::after_seconds(0.05);
    return o;
  }
  Result<PlanResult> plan(const Problem& problem, const PlannerOptions& o) const {
    return run_planner(*GetParam().entry, problem, o);
  }
  void expect_plan(const Problem& problem) const {
    const auto result = plan(problem, options());
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_TRUE(result->verified);
    EXPECT_GE(result->value_us, result->bound.us);
    EXPECT_GE(result->gap, 0);
    EXPECT_TRUE(check(problem, result->plan, result->timeline, result->bound.us).ok());
  }
  Problem random_problem(Random& random, int ops, std::shared_ptr<const Cluster> cluster,
                         double probability = 0.25) const {
    std::vector<int64_t> params;
    for (int v = 0; v < ops; ++v) params.push_back(random.between(0, 20));
    auto graph = make_graph(ops, random_wires(random, ops, probability), params);
    auto times = random_times(random, static_cast<size_t>(ops), cluster->num_devices());
    return make_problem(std::move(graph), std::move(cluster), times, GetParam().objective);
  }
};

TEST_P(EveryPlanner, PlansRandomGraphsOnAMesh) {
  Random random(11);
  for (int i = 0; i < 3; ++i) expect_plan(random_problem(random, 15, make_mesh(3)));
}

TEST_P(EveryPlanner, PlansRandomGraphsOnDevicesThatShareCoresAndABus) {
  Random random(12);
  for (int i = 0; i < 3; ++i) expect_plan(random_problem(random, 12, make_mixed()));
}

TEST_P(EveryPlanner, PlansASingleOp) {
  Random random(13);
  expect_plan(random_problem(random, 1, make_mixed()));
}

TEST_P(EveryPlanner, PlansAChain) {
  std::vector<Wire> wires;
  for (int v = 0; v + 1 < 10; ++v) wires.push_back({v, v + 1, 3});
  Random random(14);
  expect_plan(
      make_problem(make_graph(10, wires), make_mesh(3), random_times(random, 10, 3), GetParam().objective));
}

TEST_P(EveryPlanner, PlansOpsWithoutEdges) {
  Random random(15);
  expect_plan(random_problem(random, 9, make_mesh(2), 0));
}

TEST_P(EveryPlanner, PlansADisconnectedGraph) {
  Random random(16);
  expect_plan(make_problem(make_graph(8, {{0, 1, 2}, {1, 2, 2}, {4, 5, 2}, {5, 7, 2}}), make_mixed(),
                           random_times(random, 8, 5), GetParam().objective));
}

TEST_P(EveryPlanner, PlansWhereSomeDevicesCannotRunSomeOps) {
  Random random(17);
  auto times = random_times(random, 8, 3);
  for (size_t v = 0; v < 8; v += 2) times[v][1] = -1;
  expect_plan(
      make_problem(make_graph(8, random_wires(random, 8, 0.3)), make_mesh(3), times, GetParam().objective));
}

// Single needs one device that holds all; everybody else may split the model.
TEST_P(EveryPlanner, KeepsWithinMemoryOrSaysThatNothingFits) {
  Random random(18);
  for (const int64_t memory : {int64_t{1}, int64_t{90}, int64_t{400}}) {
    std::vector<Wire> wires;
    for (int v = 0; v + 1 < 8; ++v) wires.push_back({v, v + 1, 2});
    const auto problem = make_problem(make_graph(8, wires, std::vector<int64_t>(8, 20)), make_mesh(3, memory),
                                      random_times(random, 8, 3), GetParam().objective);
    const auto result = plan(problem, options());
    if (result.ok()) {
      EXPECT_TRUE(result->verified);
      EXPECT_GT(memory, 1);
    } else {
      EXPECT_EQ(result.error().code(), Code::kInfeasible) << result.error().to_string();
      EXPECT_NE(result.error().message().find("memory"), std::string::npos);
      EXPECT_LT(memory, 400);
    }
  }
}

TEST_P(EveryPlanner, IsDeterministicForASeed) {
  Random random(19);
  const auto problem = random_problem(random, 11, make_mixed());
  PlannerOptions o;
  o.seed = 7;
  const auto a = plan(problem, o), b = plan(problem, o);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->value_us, b->value_us);
  ASSERT_EQ(a->plan.steps.size(), b->plan.steps.size());
  for (size_t i = 0; i < a->plan.steps.size(); ++i) {
    EXPECT_EQ(a->plan.steps[i].to, b->plan.steps[i].to);
    EXPECT_EQ(a->plan.steps[i].segment, b->plan.steps[i].segment);
  }
}

TEST_P(EveryPlanner, IsCancelledBeforeItBegins) {
  Random random(20);
  CancelToken token;
  token.cancel();
  PlannerOptions o;
  o.deadline = Deadline::never(token);
  const auto result = plan(random_problem(random, 10, make_mesh(2)), o);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Code::kCancelled);
}

// Cancels at the first sign of progress.
class CancelOnReport final : public ProgressSink {
 public:
  explicit CancelOnReport(CancelToken token) : token_(std::move(token)) {}
  void report(const ProgressUpdate&) override { token_.cancel(); }

 private:
  CancelToken token_;
};

TEST_P(EveryPlanner, EndsWithAPlanOrACancellationWhenCancelledOnTheWay) {
  Random random(21);
  CancelToken token;
  CancelOnReport sink(token);
  PlannerOptions o;
  o.deadline = Deadline::never(token);
  o.progress = &sink;
  const auto result = plan(random_problem(random, 20, make_mixed()), o);
  if (result.ok())
    EXPECT_TRUE(result->verified);
  else
    EXPECT_EQ(result.error().code(), Code::kCancelled);
}

TEST_P(EveryPlanner, StillGivesAPlanWhenTheDeadlineHasPassed) {
  Random random(22);
  PlannerOptions o;
  o.deadline = Deadline::after_seconds(0);
  const auto result = plan(random_problem(random, 12, make_mesh(2)), o);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.entry->info.name + "_" + objective_name(info.param.objective);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryPlanner, ::testing::ValuesIn(all_cases()), case_name);

// The same for the workloads of papers, whose transfers have given times.
struct WorkloadCase {
  const PlannerEntry* entry;
  Transfers transfers;
  Objective objective;
};

// `memory` of each device; negative: enough.
Problem random_workload(const WorkloadCase& c, Random& random, int ops, double memory) {
  if (c.transfers == Transfers::kWithinRuns) {
    Json json = random_placement_json({.nodes = ops, .tight = true}, random.below(1000));
    if (memory >= 0) json["maxSizePerFPGA"] = memory;
    PlacementOptions options{.objective = c.objective};
    const bool other = random.chance(0.5);
    options.pieces = other && c.objective == Objective::kLatency ? 2 : 1;
    options.contiguous = other && c.objective == Objective::kThroughput;
    return made(placement_workload_from_json(json, "random", options));
  }
  RandomFlows shape{.ops = ops, .devices = 3, .edge_probability = 0.25};
  if (memory >= 0) shape.memory = memory;
  Problem problem = random_flow_problem(random, shape);
  problem.objective = c.objective;
  return problem;
}

class EveryPlannerOfWorkloads : public ::testing::TestWithParam<WorkloadCase> {
 protected:
  Result<PlanResult> plan(const Problem& problem, const PlannerOptions& o) const {
    return run_planner(*GetParam().entry, problem, o);
  }
  Problem problem(Random& random, int ops, double memory = -1) const {
    return random_workload(GetParam(), random, ops, memory);
  }
  void expect_plan(const Problem& p) const {
    PlannerOptions o;
    o.deadline = Deadline::after_seconds(0.05);
    const auto result = plan(p, o);
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_TRUE(result->verified);
    EXPECT_GE(result->value_us, result->bound.us * (1 - 1e-9));
    EXPECT_TRUE(check(p, result->plan, result->timeline, result->bound.us).ok());
  }
};

TEST_P(EveryPlannerOfWorkloads, PlansWorkloadsOfEverySize) {
  Random random(11);
  for (const int ops : {1, 2, 5, 15, 40}) expect_plan(problem(random, ops));
}

TEST_P(EveryPlannerOfWorkloads, KeepsWithinMemoryOrSaysThatNothingFits) {
  Random random(12);
  for (const double memory : {0.0, 2.0, 6.0, 12.0, 40.0}) {
    const Problem p = problem(random, 8, memory);
    PlannerOptions o;
    o.deadline = Deadline::after_seconds(0.05);
    const auto result = plan(p, o);
    if (result.ok()) {
      EXPECT_TRUE(result->verified);
    } else {
      EXPECT_EQ(result.error().code(), Code::kInfeasible) << result.error().to_string();
      EXPECT_NE(result.error().message().find("memory"), std::string::npos);
      EXPECT_LT(memory, 40);
    }
  }
}

TEST_P(EveryPlannerOfWorkloads, IsCancelledBeforeItBegins) {
  Random random(13);
  CancelToken token;
  token.cancel();
  PlannerOptions o;
  o.deadline = Deadline::never(token);
  EXPECT_EQ(plan(problem(random, 10), o).error().code(), Code::kCancelled);
}

TEST_P(EveryPlannerOfWorkloads, EndsWithAPlanOrACancellationWhenCancelledOnTheWay) {
  Random random(14);
  CancelToken token;
  CancelOnReport sink(token);
  PlannerOptions o;
  o.deadline = Deadline::never(token);
  o.progress = &sink;
  const auto result = plan(problem(random, 20), o);
  if (result.ok())
    EXPECT_TRUE(result->verified);
  else
    EXPECT_EQ(result.error().code(), Code::kCancelled);
}

TEST_P(EveryPlannerOfWorkloads, StillGivesAPlanWhenTheDeadlineHasPassed) {
  Random random(15);
  PlannerOptions o;
  o.deadline = Deadline::after_seconds(0);
  const auto result = plan(problem(random, 12), o);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
}

std::vector<WorkloadCase> workload_cases() {
  std::vector<WorkloadCase> cases;
  for (const PlannerEntry& entry : planner_registry()) {
    for (const Transfers t : entry.info.transfers) {
      if (t == Transfers::kGiven) cases.push_back({&entry, t, Objective::kLatency});
      if (t != Transfers::kWithinRuns) continue;
      cases.push_back({&entry, t, Objective::kLatency});
      cases.push_back({&entry, t, Objective::kThroughput});
    }
  }
  return cases;
}

std::string workload_case_name(const ::testing::TestParamInfo<WorkloadCase>& info) {
  std::string name = info.param.entry->info.name + "_" + transfers_name(info.param.transfers) + "_" +
                     objective_name(info.param.objective);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryPlannerOfWorkloads, ::testing::ValuesIn(workload_cases()),
                         workload_case_name);

TEST(RunPlanner, RefusesAnObjectiveThatThePlannerDoesNotSupport) {
  Random random(1);
  const auto problem =
      make_problem(make_graph(2, {}), make_mesh(1), random_times(random, 2, 1), Objective::kLatency);
  const auto result = run_planner(*find_planner("pipeline"), problem, {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Code::kUnsupported);
}

TEST(RunPlanner, FindsNoPlannerOutsideTheRegistry) {
  EXPECT_EQ(find_planner("no-such-planner"), nullptr);
  EXPECT_EQ(find_planner(""), nullptr);
}

TEST(Registry, AnAliasIsItsPlannerWithSettings) {
  Random random(5);
  auto graph = make_graph(3, random_wires(random, 3, 0.5), std::vector<int64_t>(3, 3));
  const auto times = random_times(random, 3, 3);
  int aliases = 0;
  for (const PlannerEntry& entry : planner_registry()) {
    if (entry.alias_of.empty()) continue;
    ++aliases;
    const Problem problem = make_problem(graph, make_mesh(3), times, entry.info.objectives[0]);
    const PlannerEntry* planner = find_planner(entry.alias_of);
    ASSERT_NE(planner, nullptr) << entry.info.name;
    PlannerOptions options;
    options.settings = entry.chosen;
    const auto by_name = run_planner(entry, problem, {}),
               by_settings = run_planner(*planner, problem, options);
    if (!by_name.ok() && by_name.error().code() == Code::kUnsupported) {  // its solver is not there
      EXPECT_FALSE(by_settings.ok());
      continue;
    }
    ASSERT_TRUE(by_name.ok() && by_settings.ok()) << entry.info.name;
    EXPECT_EQ(by_name->value_us, by_settings->value_us) << entry.info.name;
    EXPECT_EQ(by_name->detail, by_settings->detail) << entry.info.name;
  }
  EXPECT_GT(aliases, 0);
}

TEST(Registry, RefusesSettingsThatAPlannerDoesNotHave) {
  Random random(5);
  const Problem problem = make_problem(make_graph(3, random_wires(random, 3, 0.3), {0, 0, 0}), make_mesh(2),
                                       random_times(random, 3, 2), Objective::kLatency);
  PlannerOptions options;
  options.settings = {{"contention", "ports"}};
  const auto value = run_planner(*find_planner("heft"), problem, options);
  ASSERT_FALSE(value.ok());
  EXPECT_NE(value.error().to_string().find("contention=links"), std::string::npos)
      << value.error().to_string();
  const auto name = run_planner(*find_planner("met"), problem, options);
  ASSERT_FALSE(name.ok());
  EXPECT_EQ(name.error().code(), Code::kInvalidInput);
}

}  // namespace
}  // namespace heddle
