// Published examples, and small instances against every possible plan.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/planners/planner.h"
#include "planners_support.h"

namespace heddle {
namespace {

using namespace test;

constexpr double kBrief = 0.2;  // s
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Topcuoglu, Hariri, Wu 2002, figure 2 and table 1: the DAG of ten tasks on three processors, HEFT's schedule
// length 80.
TEST(Heft, SchedulesTheExampleOfTopcuogluIn80) {
  const std::vector<Wire> wires{{0, 1, 18}, {0, 2, 12}, {0, 3, 9},  {0, 4, 11}, {0, 5, 14},
                                {1, 7, 19}, {1, 8, 16}, {2, 6, 23}, {3, 7, 27}, {3, 8, 23},
                                {4, 8, 13}, {5, 7, 15}, {6, 9, 17}, {7, 9, 11}, {8, 9, 13}};
  const std::vector<std::vector<double>> times{{14, 16, 9},  {13, 19, 18}, {11, 13, 19}, {13, 8, 17},
                                               {12, 13, 10}, {13, 16, 9},  {7, 15, 11},  {5, 11, 14},
                                               {18, 12, 20}, {21, 7, 16}};
  auto problem = make_problem(make_graph(10, wires), make_mesh(3), times, Objective::kLatency);
  problem.execution = {.link_contention = false, .engine_contention = false};
  EXPECT_DOUBLE_EQ(must_plan("heft", problem, kBrief).value_us, 80);
  EXPECT_LE(must_plan("auto", problem, kBrief).value_us, 80);
}

void expect_mostly_optimal(const char* planner, Objective objective) {
  Random random(31);
  int optimal = 0;
  constexpr int kInstances = 20;
  for (int i = 0; i < kInstances; ++i) {
    const bool cores = i % 2 == 0;
    const auto cluster = cores ? make_cpus({{0, 1}, {0}, {1}}) : make_mesh(2);
    const auto graph = make_graph(5, random_wires(random, 5, 0.35), {5, 0, 9, 3, 7});
    const auto problem =
        make_problem(graph, cluster, random_times(random, 5, cluster->num_devices()), objective);
    const double least = brute_force_us(problem);
    // Without a deadline local-search does a fixed amount of work, and the parts of auto have seconds for milliseconds
    // of work.
    const double value = must_plan(planner, problem, kUnlimited).value_us;
    // With several lanes a throughput plan may be better than any with one.
    if (objective != Objective::kThroughput) {
      EXPECT_GE(value, least * (1 - 1e-9)) << "instance " << i;
    }
    optimal += value <= least * (1 + 1e-9) ? 1 : 0;
  }
  EXPECT_GE(optimal, kInstances * 9 / 10) << planner;
}

TEST(LocalSearch, FindsTheLeastLatencyOfTinyInstances) {
  expect_mostly_optimal("local-search", Objective::kLatency);
}
TEST(LocalSearch, FindsTheLeastColdLatencyOfTinyInstances) {
  expect_mostly_optimal("local-search", Objective::kColdLatency);
}
TEST(Auto, FindsTheLeastLatencyOfTinyInstances) { expect_mostly_optimal("auto", Objective::kLatency); }
TEST(Auto, FindsThePeriodOfTinyInstances) { expect_mostly_optimal("auto", Objective::kThroughput); }

TEST(LocalSearch, NeverLosesThePlanThatItImproves) {
  Random random(32);
  const auto problem = make_problem(make_graph(20, random_wires(random, 20, 0.2)), make_mixed(),
                                    random_times(random, 20, 5), Objective::kLatency);
  const auto start = must_plan("round-robin", problem, kBrief);
  PlannerOptions o;
  o.start = &start.plan;
  const auto improved = run_planner(*find_planner("local-search"), problem, o);
  ASSERT_TRUE(improved.ok());
  EXPECT_LT(improved->value_us, start.value_us);
}

// A chain over a mesh: only neighbours exchange data, each over a link of their own, so that the model of
// cuts is exact.
double best_pipeline_us(const std::vector<std::vector<double>>& times, const std::vector<double>& cut_us,
                        size_t at, uint32_t used) {
  const size_t n = times.size(), k = times[0].size();
  if (at == n) return 0;
  double best = kImpossible;
  for (size_t d = 0; d < k; ++d) {
    if (used >> d & 1) continue;
    double sum = 0;
    for (size_t end = at + 1; end <= n; ++end) {
      sum += times[end - 1][d];
      const double cut = end < n ? cut_us[end - 1] : 0;
      best = std::min(best, std::max({sum, cut, best_pipeline_us(times, cut_us, end, used | 1U << d)}));
    }
  }
  return best;
}

TEST(Pipeline, CutsChainsAsWellAsTryingAllCuts) {
  Random random(33);
  for (int i = 0; i < 15; ++i) {
    std::vector<Wire> wires;
    std::vector<double> cuts;
    for (int v = 0; v + 1 < 7; ++v) {
      wires.push_back({v, v + 1, random.between(1, 30)});
      cuts.push_back(static_cast<double>(wires.back().bytes));
    }
    const auto times = random_times(random, 7, 3);
    auto problem = make_problem(make_graph(7, wires), make_mesh(3), times, Objective::kThroughput);
    problem.execution.engine_contention = false;
    EXPECT_NEAR(must_plan("pipeline", problem, kBrief).value_us, best_pipeline_us(times, cuts, 0, 0), 1e-6)
        << "instance " << i;
  }
}

TEST(Replicate, AddsUpTheRatesOfDevicesThatShareNothing) {
  const auto problem =
      make_problem(make_graph(2, {{0, 1, 1}}), make_mesh(2), {{3, 6}, {3, 6}}, Objective::kThroughput);
  EXPECT_NEAR(must_plan("replicate", problem, kBrief).value_us, 1 / (1 / 6.0 + 1 / 12.0), 1e-9);
}

TEST(Replicate, UsesTheKnownTimeOfTheWholeModel) {
  auto problem = make_problem(make_graph(2, {{0, 1, 1}}), make_cpus({{0, 1}, {0}, {1}}),
                              {{4, 6, 6}, {4, 6, 6}}, Objective::kThroughput);
  auto costs = std::make_shared<CostTable>(*problem.costs);
  for (int d = 1; d <= 2; ++d)
    costs->set_segment({{OpId(0), OpId(1)}, DeviceId(d), {10, Origin::kMeasured, 0}});
  problem.costs = costs;
  EXPECT_NEAR(must_plan("replicate", problem, kBrief).value_us, 5, 1e-9);
  EXPECT_NEAR(must_plan("auto", problem, kBrief).value_us, 5, 1e-9);
}

TEST(Single, RunsTheWholeModelAsOneSegmentWhereThatIsKnownToBeFaster) {
  auto problem = make_problem(make_graph(3, {{0, 1, 1}, {1, 2, 1}}), make_cpus({{0}, {1}}),
                              {{4, 5}, {4, 5}, {4, 5}}, Objective::kLatency);
  auto costs = std::make_shared<CostTable>(*problem.costs);
  costs->set_segment({{OpId(0), OpId(1), OpId(2)}, DeviceId(1), {9, Origin::kMeasured, 0}});
  problem.costs = costs;
  const auto result = must_plan("single", problem, kBrief);
  EXPECT_DOUBLE_EQ(result.value_us, 9);
  EXPECT_EQ(result.plan.segments.size(), 1U);
}

// Two branches: two devices of one core run them side by side, the device of two cores one after the other.
TEST(Auto, ChoosesBetweenOverlappingCoreSets) {
  const auto graph = make_graph(4, {{0, 1, 1}, {0, 2, 1}, {1, 3, 1}, {2, 3, 1}});
  const auto cpus = make_cpus({{0, 1}, {0}, {1}});
  const auto apart =
      make_problem(graph, cpus, {{1, 1, 1}, {10, 11, 11}, {10, 11, 11}, {1, 1, 1}}, Objective::kLatency);
  EXPECT_DOUBLE_EQ(must_plan("auto", apart, kBrief).value_us, 13);
  const auto together =
      make_problem(graph, cpus, {{1, 2, 2}, {10, 20, 20}, {10, 20, 20}, {1, 2, 2}}, Objective::kLatency);
  EXPECT_DOUBLE_EQ(must_plan("auto", together, kBrief).value_us, 22);
}

TEST(Auto, FindsAPlanWhereTheModelFitsOnlyWhenSplit) {
  const auto graph =
      make_graph(6, {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {3, 4, 1}, {4, 5, 1}}, std::vector<int64_t>(6, 30));
  const std::vector<std::vector<double>> times(6, {1, 9, 9});
  for (const Objective o : {Objective::kLatency, Objective::kColdLatency, Objective::kThroughput}) {
    EXPECT_TRUE(must_plan("auto", make_problem(graph, make_mesh(3, 72), times, o)).verified);
  }
}

std::filesystem::path shared_folder() {
  if (const char* set = std::getenv("HEDDLE_SHARED")) return set;
  return std::filesystem::path(HEDDLE_SOURCE_DIR) / ".." / "shared";
}

// The files' times have five decimals of a millisecond: in this unit all of them are whole numbers.
constexpr double kUnitsPerMs = 1e5;

// The instances of HIOS's simulation: HEFT here against the reference makespans, in ms, four devices, no
// contention.
Problem hios_problem(const Json& file) {
  const auto& nodes = file.at("nodes");
  std::vector<Wire> wires;
  std::vector<std::vector<double>> times;
  for (const auto& n : nodes)
    times.push_back(std::vector<double>(4, n.at("time_ms").get<double>() * kUnitsPerMs));
  for (const auto& e : file.at("edges")) {
    const double us = e.at("transfer_ms").get<double>() * kUnitsPerMs;
    wires.push_back({e.at("src").get<int>(), e.at("dst").get<int>(),
                     std::llround(us)});  // the mesh moves 1 byte per unit
  }
  auto problem = make_problem(make_graph(static_cast<int>(nodes.size()), wires), make_mesh(4), times,
                              Objective::kLatency);
  problem.execution = {.link_contention = false, .engine_contention = false};
  return problem;
}

TEST(Heft, AgreesWithTheReferenceOnHiosInstances) {
  const auto folder = shared_folder() / "data" / "hios" / "sim";
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "no public data at " << folder << ": set HEDDLE_SHARED";
  const auto text = read_file((folder / "reference.jsonl").string());
  ASSERT_TRUE(text.ok());
  int rows = 0;
  for (size_t at = 0; at < text->size();) {
    const size_t end = std::min(text->find('\n', at), text->size());
    const Json row = Json::parse(text->substr(at, end - at), nullptr, false);
    at = end + 1;
    if (!row.is_object() || row.at("gpus") != 4 || row.at("transfer") != "transfer_ms") continue;
    const auto name = row.at("instance").get<std::string>();
    const auto file = read_file((folder / (name + ".json")).string());
    ASSERT_TRUE(file.ok()) << name;
    const Json instance = Json::parse(*file);
    const auto problem = hios_problem(instance);
    ASSERT_EQ(problem.graph->num_edges(), instance.at("edges").size()) << name;
    const double reference = row.at("heft").get<double>();
    EXPECT_NEAR(must_plan("heft", problem, kBrief).value_us / kUnitsPerMs, reference, 1e-4)
        << name;  // four decimals there
    ++rows;
  }
  EXPECT_EQ(rows, 30);
}

TEST(PlannersDocument, IsWhatTheRegistryMakes) {
  const auto text = read_file(HEDDLE_SOURCE_DIR "/docs/planners.md");
  ASSERT_TRUE(text.ok()) << "make it with `heddle planners --markdown > docs/planners.md`";
  EXPECT_EQ(*text, planners_markdown())
      << "make it again with `heddle planners --markdown > docs/planners.md`";
}

}  // namespace
}  // namespace heddle
