// The parts of DiviML's planners: modules, requests, windows, the steady-state program.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "diviml/module_planner.h"
#include "diviml/module_schedule.h"
#include "diviml/modules.h"
#include "diviml/split_windows.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/cost/cost_model.h"
#include "heddle/graph/analysis.h"
#include "heddle/graph/generators.h"
#include "heddle/planners/batch_problem.h"
#include "heddle/planners/diviml_throughput.h"
#include "heddle/planners/planner.h"
#include "planners_support.h"

namespace heddle {
namespace {

using namespace test;

Problem wired(int nodes, int modules, int channels, RandomWiredOptions::Dependency dependency,
              uint64_t seed) {
  RandomWiredOptions o;
  o.nodes = nodes;
  o.modules = modules;
  o.channels = channels;
  o.dependency = dependency;
  o.seed = seed;
  o.device_class_factors = {{"Xeon-Skylake", 7.10}, {"T4", 1.26}, {"A100", 1}};
  Problem problem;
  problem.graph = *generate_random_wired(o);
  problem.cluster = *load_cluster("preset:diviml");
  problem.costs = std::make_shared<const CostTable>(
      *build_cost_table(*problem.graph, *problem.cluster, *given_cost_model(), {}));
  problem.execution = {.link_contention = false, .engine_contention = false};
  return problem;
}

using Dependency = RandomWiredOptions::Dependency;

TEST(Modules, PassingTasksAreArticulationPointsAndTheEnds) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Problem problem = wired(10, 4, 1, Dependency::kSeries, seed);
    const FlatProblem flat(problem, problem.usable_devices());
    const TaskModel model(flat);
    std::vector<uint32_t> expected;
    for (const OpId op : articulation_points(*problem.graph)) expected.push_back(model.task_of(op.index()));
    const auto part = k_edge_connected_components(*problem.graph, 2);
    for (const Edge& e : problem.graph->edges()) {
      if (part[e.src.index()] == part[e.dst.index()]) continue;
      expected.push_back(model.task_of(e.src.index()));
      expected.push_back(model.task_of(e.dst.index()));
    }
    std::sort(expected.begin(), expected.end());
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    auto passing = passing_tasks(model);
    std::sort(passing.begin(), passing.end());
    EXPECT_EQ(passing, expected) << "seed " << seed;
  }
}

TEST(Modules, AreAPartitionInTopologicalOrderAndSmallEnough) {
  for (const auto dependency : {Dependency::kSeries, Dependency::kWeak}) {
    for (int channels = 1; channels <= 4; ++channels) {
      const Problem problem = wired(10, 10, channels, dependency, 3);
      const FlatProblem flat(problem, problem.usable_devices());
      const TaskModel model(flat);
      const Modules modules = find_modules(model, 48);
      EXPECT_EQ(modules.single_channel(), channels == 1);
      EXPECT_EQ(modules.last.size(), modules.tasks.size());
      EXPECT_LE(modules.largest(), 48u) << channels << " channels";
      std::vector<int> module_of(model.num_tasks(), -1);
      for (size_t m = 0; m < modules.tasks.size(); ++m) {
        for (const uint32_t t : modules.tasks[m]) {
          EXPECT_EQ(module_of[t], -1);
          module_of[t] = static_cast<int>(m);
        }
      }
      for (uint32_t t = 0; t < model.num_tasks(); ++t) {
        ASSERT_GE(module_of[t], 0);
        for (const auto& e : model.out(t)) EXPECT_LE(module_of[e.src], module_of[e.dst]);
      }
    }
  }
}

TEST(Generator, GivesEachClassItsShareOfTheFastestOne) {
  const Problem problem = wired(32, 2, 2, Dependency::kWeak, 5);
  const double factors[] = {7.10, 1.26, 1};
  double sum[3] = {0, 0, 0};
  for (size_t v = 0; v < problem.graph->num_ops(); ++v) {
    for (size_t d = 0; d < 3; ++d) {
      const double us = problem.costs->us(OpId(v), DeviceId(d));
      sum[d] += us;
      EXPECT_GE(us, problem.costs->us(OpId(v), DeviceId(size_t{2})) * (1 - 1e-12));
    }
  }
  for (size_t d = 0; d < 3; ++d) EXPECT_NEAR(sum[d] / sum[2], factors[d], 1e-9);
  EXPECT_NEAR(sum[2] / static_cast<double>(problem.graph->num_ops()), 620, 1e-6);
}

TEST(Windows, NeverMakeAScheduleWorse) {
  const Problem problem = wired(6, 4, 2, Dependency::kSeries, 7);
  const FlatProblem flat(problem, problem.usable_devices());
  const TaskModel model(flat);
  const Modules modules = find_modules(model, 12);
  ASSERT_GT(modules.tasks.size(), 1u);
  SolveOptions limits;
  limits.deadline = Deadline::after_seconds(2);
  auto result = split_in_order(model, modules, solve_module_by_cp, limits);
  ASSERT_TRUE(result.ok());
  const double before = result->value_us;
  EXPECT_NEAR(before, time_batches(model, result->batches).makespan, 1e-9 * before);
  ASSERT_TRUE(improve_windows(model, modules, solve_module_by_cp, limits, *result).ok());
  EXPECT_LE(result->value_us, before * (1 + 1e-9));
  EXPECT_NEAR(result->value_us, time_batches(model, result->batches).makespan, 1e-9 * before);
}

// Random moves, some kept and some not: what is timed from the change on is what the whole order gives.
TEST(ModuleSchedule, TimesMovesAsTheWholeOrderIsTimed) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Problem one = wired(8, 2, 2, Dependency::kSeries, seed);
    const auto batch = batch_problem(one, 3, [&](OpId op, DeviceId device, int parts) {
      return one.costs->us(op, device) * (0.5 + 0.5 * parts);
    });
    ASSERT_TRUE(batch.ok());
    const FlatProblem flat(*batch, batch->usable_devices());
    const TaskModel model(flat);
    ASSERT_EQ(model.num_requests(), 3U);
    const ModuleProblem whole = whole_problem(model);
    const ModuleAnswer start = module_by_list(whole);
    ModuleSchedule schedule(whole, start.batches);
    Random random(seed);
    double kept = schedule.kept_value();
    for (int i = 0; i < 2000; ++i) {
      const auto p = static_cast<uint32_t>(random.below(model.num_tasks()));
      schedule.begin_move();
      if (random.chance(0.5)) {
        const auto [first, last] = schedule.free_places(p);
        schedule.move_place(p, static_cast<uint32_t>(random.between(first, last)));
      } else {
        for (size_t l = 0; l < 3; ++l)
          schedule.set_device(p, l, static_cast<uint32_t>(random.below(model.num_devices())));
      }
      const double value = schedule.value(kImpossible);
      const double limit = value * random.uniform(0.8, 1.2), limited = schedule.value(limit);
      EXPECT_TRUE(limited == value || (limited == kImpossible && value > limit));
      if (value <= kept * 1.02 && limited == value) {
        schedule.keep();
        kept = value;
        EXPECT_NEAR(module_value(whole, schedule.decisions()), kept, 1e-9 * kept);
        EXPECT_EQ(schedule.kept_value(), kept);
      } else {
        schedule.undo();
      }
    }
    // The path that ends last is not empty, begins with a task that ends then, and each waits for the next.
    const auto critical = schedule.critical();
    ASSERT_FALSE(critical.empty());
    for (size_t i = 0; i + 1 < critical.size(); ++i)
      EXPECT_GT(schedule.place(critical[i]), schedule.place(critical[i + 1]));
  }
}

// The start's moves take a fraction of their share of the time, so that both make all of them.
TEST(Auto, IsNoWorseThanTheStartOfThePrograms) {
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const Problem one = wired(5, 2, 2, Dependency::kWeak, seed);
    const auto batch = batch_problem(one, 2, [&](OpId op, DeviceId device, int parts) {
      return one.costs->us(op, device) * (0.5 + 0.5 * parts);
    });
    ASSERT_TRUE(batch.ok());
    PlannerOptions options;
    options.seed = seed;
    const auto start = plan_start(*batch, options);
    ASSERT_TRUE(start.ok());
    PlanStore started(*batch);
    ASSERT_TRUE(started.offer(start->plan, "start"));
    for (const int threads : {1, 2}) {
      options.threads = threads;
      options.deadline = Deadline::after_seconds(3);
      const auto result = run_planner(*find_planner("auto"), *batch, options);
      ASSERT_TRUE(result.ok()) << result.error().to_string();
      EXPECT_LE(result->value_us, started.value_us() * (1 + 1e-9)) << "seed " << seed;
    }
  }
}

TEST(ModuleBound, IsAtMostWhatTheSolverProves) {
  Random random(71);
  for (int i = 0; i < 10; ++i) {
    auto problem = make_problem(make_graph(7, random_wires(random, 7, 0.3)), make_mesh(3),
                                random_times(random, 7, 3), Objective::kLatency);
    const FlatProblem flat(problem, problem.usable_devices());
    const TaskModel model(flat);
    const ModuleProblem whole = whole_problem(model);
    const auto answer = solve_module_by_cp(whole, {}, {});
    ASSERT_TRUE(answer.ok());
    EXPECT_TRUE(answer->optimal);
    EXPECT_LE(module_bound(whole), answer->value_us * (1 + 1e-9));
    EXPECT_GE(module_by_list(whole).value_us, answer->value_us * (1 - 1e-9));
    EXPECT_NEAR(module_value(whole, answer->batches), answer->value_us, 1e-9 * answer->value_us);
  }
}

// One lane and free transfers: the least largest sum over all devices of all ops.
double least_period(const std::vector<std::vector<double>>& times) {
  const size_t n = times.size(), k = times[0].size();
  std::vector<size_t> device(n, 0);
  double best = kImpossible;
  while (true) {
    std::vector<double> load(k, 0);
    for (size_t v = 0; v < n; ++v) load[device[v]] += times[v][device[v]];
    best = std::min(best, *std::max_element(load.begin(), load.end()));
    size_t v = 0;
    while (v < n && ++device[v] == k) device[v++] = 0;
    if (v == n) return best;
  }
}

TEST(DivimlThroughput, FindsTheLeastPeriodUnderEverySymmetry) {
  Random random(72);
  for (int i = 0; i < 5; ++i) {
    auto times = random_times(random, 6, 3);
    for (auto& row : times) row[2] = row[1];  // two equal devices
    times[3] = times[1];                      // two equal ops
    auto problem = make_problem(make_graph(6, random_wires(random, 6, 0.3)), make_mesh(3), times,
                                Objective::kThroughput);
    problem.execution = {.link_contention = false, .engine_contention = false};
    const double least = least_period(times);
    for (const Symmetry s : {Symmetry::kNone, Symmetry::kBatches, Symmetry::kTasks, Symmetry::kTime}) {
      for (const int parts : {1, 4}) {
        auto output = plan_diviml_throughput(problem, {}, {.parts = parts, .symmetry = s});
        ASSERT_TRUE(output.ok()) << output.error().to_string();
        const auto result = verified_result("diviml-throughput", problem, std::move(*output), 0);
        ASSERT_TRUE(result.ok()) << result.error().to_string();
        if (parts == 1)
          EXPECT_NEAR(result->value_us, least, 1e-3 * least) << symmetry_name(s);
        else
          EXPECT_LE(result->value_us, least * 1.001) << symmetry_name(s);
      }
    }
  }
}

TEST(DivimlThroughput, KeepsParametersWithinMemory) {
  const std::vector<std::vector<double>> times(4, {1, 10});
  // Two of four ops fit on each device.
  const auto problem =
      make_problem(make_graph(4, {}, {50, 50, 50, 50}), make_mesh(2, 110), times, Objective::kThroughput);
  const auto output = plan_diviml_throughput(problem, {}, {.parts = 1, .symmetry = Symmetry::kTime});
  ASSERT_TRUE(output.ok()) << output.error().to_string();
  const auto result = verified_result("diviml-throughput", problem, *output, 0);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_DOUBLE_EQ(result->value_us, 20);
}

TEST(DivimlThroughput, RefusesOtherObjectivesAndParts) {
  auto problem = make_problem(make_graph(2, {}), make_mesh(2), {{1, 1}, {1, 1}}, Objective::kLatency);
  EXPECT_FALSE(plan_diviml_throughput(problem, {}, {}).ok());
  problem.objective = Objective::kThroughput;
  EXPECT_FALSE(plan_diviml_throughput(problem, {}, {.parts = 0}).ok());
}

}  // namespace
}  // namespace heddle
