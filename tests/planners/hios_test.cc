// HIOS's and IOS's algorithms: the paper's worked examples, exact small cases, the public reference
// makespans.
#include "hios/hios.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <filesystem>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/plan/hios_workload.h"
#include "hios/ios.h"
#include "hios/stage_planner.h"
#include "planners_support.h"
#include "stage_support.h"

namespace heddle {
namespace {

using namespace test;

// Equal devices; times, edges and transfers in one unit. Ops are numbered from 1, as the paper numbers them.
StageInstance paper_instance(const std::vector<double>& us, const std::vector<StageEdge>& edges, size_t width,
                             double utilization) {
  constexpr size_t kDevices = 2;
  StageInput in;
  in.ops = us.size();
  in.devices = kDevices;
  in.width = width;
  for (const double t : us) {
    in.us.insert(in.us.end(), kDevices, t);
    in.utilization.insert(in.utilization.end(), kDevices, utilization);
  }
  for (const StageEdge& e : edges) in.edges.push_back({e.from - 1, e.to - 1, e.bytes});
  in.latency_us.assign(kDevices * kDevices, 0);
  in.us_per_byte.assign(kDevices * kDevices, 1);
  return StageInstance(std::move(in));
}

// Figure 4 with weights that give every number of the paper's text.
StageInstance figure4() {
  return paper_instance(
      {2, 3, 2, 2, 1, 4, 2, 4},
      {{1, 2, 2}, {1, 3, 2}, {2, 4, 2}, {3, 5, 1}, {4, 6, 1}, {5, 6, 1}, {5, 7, 2}, {6, 8, 1}, {7, 8, 1}}, 1,
      1);
}

TEST(HiosExample, Figure4PathsTriesAndMapping) {
  const StageInstance instance = figure4();
  const auto priorities = hios_priorities(instance);
  EXPECT_EQ(priorities.indicator, (std::vector<double>{21, 17, 14, 12, 11, 9, 7, 4}));
  std::vector<uint32_t> device(8, kUnmapped);
  std::vector<double> finish;
  EXPECT_EQ(longest_valid_path(instance, priorities, device), (std::vector<uint32_t>{0, 1, 3, 5, 7}));
  for (const uint32_t v : {0, 1, 3, 5, 7}) device[v] = 0;
  // 3, 5, 7 would be longer, but 5 feeds 6, which is mapped.
  EXPECT_EQ(longest_valid_path(instance, priorities, device), (std::vector<uint32_t>{2, 4}));
  device[2] = device[4] = 0;
  EXPECT_EQ(append_in_order(instance, priorities.order, device, finish), 18);
  device[2] = device[4] = 1;
  EXPECT_EQ(append_in_order(instance, priorities.order, device, finish), 16);
  EXPECT_EQ(longest_valid_path(instance, priorities, device), (std::vector<uint32_t>{6}));
  device[6] = 0;
  EXPECT_EQ(append_in_order(instance, priorities.order, device, finish), 18);
  device[6] = 1;
  EXPECT_EQ(append_in_order(instance, priorities.order, device, finish), 16);
  const auto schedule = hios_lp_inter(instance, {});
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ(schedule->devices[0], (std::vector<Stage>{{0}, {1}, {3}, {5}, {7}}));
  EXPECT_EQ(schedule->devices[1], (std::vector<Stage>{{2}, {4}, {6}}));
  EXPECT_EQ(time_stages(instance, *schedule)->makespan_us, 16);
}

TEST(HiosExample, Figure5GroupsTwoPairs) {
  // A pair of 4 and 3 takes 6, and so does one of 5 and 2: half of 7 and half of the busy 5.
  const StageInstance instance = paper_instance(
      {4, 4, 2, 3, 5, 3, 2}, {{1, 2, 1}, {1, 3, 1}, {1, 4, 1}, {2, 5, 1}, {3, 6, 1}, {4, 7, 2}, {3, 5, 2}}, 2,
      5.0 / 7);
  EXPECT_EQ(hios_priorities(instance).order, (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6}));
  StageSchedule schedule;
  schedule.devices = {{{0}, {1}, {3}, {4}, {6}}, {{2}, {5}}};
  EXPECT_EQ(time_stages(instance, schedule)->makespan_us, 18);
  const auto grouped = hios_parallelize(instance, schedule, {});
  EXPECT_EQ(grouped.devices[0], (std::vector<Stage>{{0}, {1, 3}, {4, 6}}));
  EXPECT_EQ(grouped.devices[1], schedule.devices[1]);
  EXPECT_NEAR(time_stages(instance, grouped)->makespan_us, 16, 1e-9);
}

// Rejected windows must leave no trace, and stages that wait for each other around another device are none.
TEST(HiosParallelize, NeverWorseAndAlwaysFeasible) {
  Random random(5);
  for (int i = 0; i < 300; ++i) {
    RandomStages options;
    options.ops = 4 + random.below(20);
    options.devices = 1 + random.below(4);
    options.width = 1 + random.below(4);
    options.density = random.uniform(0, 0.5);
    options.whole = random.chance(0.3);
    const auto instance = random_stages(random, options);
    for (const auto inter : {hios_lp_inter, hios_mr_inter, heft_inter}) {
      const auto plain = inter(instance, {});
      ASSERT_TRUE(plain.ok()) << plain.error().to_string();
      const auto before = time_stages(instance, *plain);
      ASSERT_TRUE(before.ok()) << before.error().to_string();
      const auto after = time_stages(instance, hios_parallelize(instance, *plain, {}));
      ASSERT_TRUE(after.ok()) << after.error().to_string();
      EXPECT_LE(after->makespan_us, before->makespan_us);
    }
  }
}

TEST(Hios, UnequalDevicesGiveFeasibleSchedulesAboveTheOptimum) {
  Random random(6);
  for (int i = 0; i < 60; ++i) {
    RandomStages options;
    options.ops = 3 + random.below(3);
    options.unequal = true;
    options.whole = random.chance(0.5);
    const auto instance = random_stages(random, options);
    const double best = brute_force_stages(instance);
    for (const auto inter : {hios_lp_inter, hios_mr_inter, heft_inter}) {
      const auto schedule = inter(instance, {});
      ASSERT_TRUE(schedule.ok()) << schedule.error().to_string();
      const auto timed = time_stages(instance, hios_parallelize(instance, *schedule, {}));
      ASSERT_TRUE(timed.ok()) << timed.error().to_string();
      EXPECT_GE(timed->makespan_us, best * (1 - 1e-12));
    }
  }
}

// What a stage of these groups takes: each group is one item with the sums of its ops' times and of their
// utilization times time.
double ios_stage_us(const StageInstance& instance, const IosGroups& groups) {
  std::vector<StageItem> items;
  for (const auto& group : groups) {
    auto& item = items.emplace_back();
    for (const uint32_t v : group) {
      item.us += instance.us(v, 0);
      item.busy_us += instance.busy_us(v, 0);
    }
  }
  return instance.sharing(0).us(items);
}

// The least sum of stage times over all sequences of stages, forwards from the sources.
double best_sequence(const StageInstance& instance, const IosPruning& pruning, uint32_t done,
                     std::vector<double>& memo) {
  const auto n = static_cast<uint32_t>(instance.num_ops());
  if (done == (1U << n) - 1) return 0;
  if (memo[done] >= 0) return memo[done];
  double best = kNoTime;
  for (uint32_t set = 1; set < (1U << n); ++set) {
    if ((set & done) != 0) continue;
    bool closed = true;
    std::vector<uint32_t> part(n);
    for (uint32_t v = 0; v < n; ++v) part[v] = v;
    for (uint32_t pass = 0; pass < n; ++pass) {
      for (uint32_t v = 0; v < n; ++v) {
        if (((set >> v) & 1) == 0) continue;
        for (const auto& in : instance.inputs(v)) {
          closed = closed && (((set | done) >> in.op) & 1);
          if ((set >> in.op) & 1) part[v] = part[in.op] = std::min(part[v], part[in.op]);
        }
      }
    }
    if (!closed) continue;
    IosGroups groups;
    for (uint32_t root = 0; root < n; ++root) {
      std::vector<uint32_t> group;
      for (uint32_t v = 0; v < n; ++v)
        if (((set >> v) & 1) && part[v] == root) group.push_back(v);
      if (group.size() > pruning.group_ops) closed = false;
      if (!group.empty()) groups.push_back(group);
    }
    if (!closed || groups.size() > pruning.groups) continue;
    best =
        std::min(best, ios_stage_us(instance, groups) + best_sequence(instance, pruning, done | set, memo));
  }
  return memo[done] = best;
}

TEST(Ios, IsExactOnSmallGraphs) {
  Random random(7);
  for (int i = 0; i < 60; ++i) {
    RandomStages options;
    options.ops = 1 + random.below(8);
    options.devices = 1;
    options.width = 3;
    options.density = random.uniform(0, 0.6);
    const auto instance = random_stages(random, options);
    const IosPruning pruning{.groups = 1 + random.below(3), .group_ops = 1 + random.below(3)};
    const auto order = hios_priorities(instance).order;
    const auto result = ios_schedule(instance, 0, order, pruning, {});
    EXPECT_TRUE(result.exact);
    std::vector<double> memo(size_t{1} << instance.num_ops(), -1);
    EXPECT_NEAR(result.us, best_sequence(instance, pruning, 0, memo), 1e-6);
    // Every op once, after what it reads.
    std::vector<size_t> when(instance.num_ops(), SIZE_MAX);
    size_t place = 0;
    for (const auto& groups : result.stages) {
      EXPECT_LE(groups.size(), pruning.groups);
      for (const auto& group : groups) {
        EXPECT_LE(group.size(), pruning.group_ops);
        for (const uint32_t v : group) {
          EXPECT_EQ(when[v], SIZE_MAX);
          when[v] = place++;
          for (const auto& in : instance.inputs(v)) EXPECT_LT(when[in.op], when[v]);
        }
      }
    }
    EXPECT_EQ(place, instance.num_ops());
  }
}

TEST(Ios, CutsWhatIsTooLargeIntoParts) {
  Random random(8);
  RandomStages options;
  options.ops = 150;
  options.devices = 1;
  options.density = 0.02;
  const auto instance = random_stages(random, options);
  const auto result = ios_schedule(instance, 0, hios_priorities(instance).order, {}, {});
  EXPECT_FALSE(result.exact);
  double sequential = 0, least = 0;
  for (size_t v = 0; v < 150; ++v) {
    sequential += instance.us(v, 0);
    least += least_work_us(instance, v, 0);
  }
  EXPECT_LT(result.us, sequential);
  EXPECT_GE(result.us, least * (1 - 1e-9));
}

// Through the builder, the evaluator and the checker the flat instance's times come out again.
TEST(StagePlanners, PlansAreTimedAsTheirInstances) {
  Random random(9);
  for (int i = 0; i < 20; ++i) {
    const size_t ops = 5 + random.below(20);
    auto problem =
        make_problem(make_graph(static_cast<int>(ops), random_wires(random, static_cast<int>(ops), 0.2)),
                     make_mesh(3), random_times(random, ops, 3), Objective::kLatency);
    problem.execution.link_contention = problem.execution.engine_contention = false;
    problem.execution.stage_width = 2;
    auto costs = std::make_shared<CostTable>(*problem.costs);
    for (size_t d = 0; d < 3; ++d) {
      costs->set_stage_model(DeviceId(d), {.serial = 0.4, .overlap = 0.6, .launch_us = 0.01});
      for (size_t v = 0; v < ops; ++v) costs->set_utilization(OpId(v), DeviceId(d), random.uniform(0.3, 1));
    }
    problem.costs = costs;
    const auto instance = stage_instance_of(problem, problem.usable_devices());
    const auto lp = hios_lp_inter(instance, {});
    ASSERT_TRUE(lp.ok());
    const auto expected = time_stages(instance, hios_parallelize(instance, *lp, {}));
    const auto result = run_planner(*find_planner("hios-lp"), problem, {});
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_TRUE(result->verified);
    EXPECT_NEAR(result->value_us, expected->makespan_us, 1e-6 * expected->makespan_us);
    const auto ios = run_planner(*find_planner("ios"), problem, {});
    const auto sequential = run_planner(*find_planner("sequential"), problem, {});
    ASSERT_TRUE(ios.ok() && sequential.ok());
    EXPECT_LE(ios->value_us, sequential->value_us * (1 + 1e-12));
  }
}

TEST(StagePlanners, APassedDeadlineStillGivesAPlan) {
  Random random(10);
  const auto problem = make_problem(make_graph(40, random_wires(random, 40, 0.1)), make_mesh(3),
                                    random_times(random, 40, 3), Objective::kLatency);
  for (const char* name : {"hios-lp", "hios-mr", "ios", "heft-stages", "sequential"}) {
    PlannerOptions options;
    options.deadline = Deadline::after_seconds(0);
    const auto result = run_planner(*find_planner(name), problem, options);
    EXPECT_TRUE(result.ok()) << name << ": " << result.error().to_string();
  }
}

struct Reference {
  Json row;
  Problem problem;
};

std::vector<Reference> references(const std::string& folder) {
  std::vector<Reference> list;
  const auto text = read_file(folder + "reference.jsonl");
  EXPECT_TRUE(text.ok());
  for (size_t at = 0; text.ok() && at < text->size();) {
    const size_t end = std::min(text->find('\n', at), text->size());
    const auto row = parse_json(text->substr(at, end - at));
    at = end + 1;
    EXPECT_TRUE(row.ok());
    HiosWorkloadOptions options;
    options.devices = (*row)["gpus"].get<int>();
    options.transfer_by_reader = (*row)["transfer"] == "transfer_ms_code";
    auto problem = read_hios_workload(folder + (*row)["instance"].get<std::string>() + ".json", options);
    EXPECT_TRUE(problem.ok()) << problem.error().to_string();
    list.push_back({*row, std::move(*problem)});
  }
  return list;
}

std::string public_instances() {
  const char* shared = std::getenv("HEDDLE_SHARED");
  return std::string(shared ? shared : HEDDLE_SOURCE_DIR "/../shared") + "/data/hios/sim/";
}

// Every row: an independent implementation's makespans for the same definitions. IOS may be better, for a
// group here is any connected set.
TEST(HiosPublicInstances, MakespansAreThoseOfTheReference) {
  const auto folder = public_instances();
  if (!file_exists(folder + "reference.jsonl")) GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
  for (const auto& [row, problem] : references(folder)) {
    const auto instance = stage_instance_of(problem, problem.usable_devices());
    const auto expect = [&, &row = row](const char* key, const StageSchedule& schedule) {
      const double ms = time_stages(instance, schedule)->makespan_us / 1000;
      EXPECT_NEAR(ms, row[key].get<double>(), 1e-4 * ms) << row["instance"] << row["transfer"] << key;
    };
    const auto lp = hios_lp_inter(instance, {}), mr = hios_mr_inter(instance, {}),
               heft = heft_inter(instance, {});
    ASSERT_TRUE(lp.ok() && mr.ok() && heft.ok());
    expect("inter_lp", *lp);
    expect("hios_lp", hios_parallelize(instance, *lp, {}));
    expect("inter_mr", *mr);
    expect("hios_mr", hios_parallelize(instance, *mr, {}));
    expect("heft", *heft);
    expect("heft_group2", hios_parallelize(instance, *heft, {}));
    if (row["gpus"] != 4) continue;  // one device: the same for every number
    const auto order = hios_priorities(instance).order;
    const double ios_ms = ios_schedule(instance, 0, order, {}, {}).us / 1000;
    EXPECT_LE(ios_ms, row["ios"].get<double>() + 1e-4);
    EXPECT_GE(ios_ms, row["ios"].get<double>() * 0.995);
  }
}

TEST(HiosPublicInstances, PlannersGiveTheSameThroughBuilderAndChecker) {
  const auto folder = public_instances();
  if (!file_exists(folder + "reference.jsonl")) GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
  const auto list = references(folder);
  const std::pair<const char*, const char*> kNames[] = {
      {"sequential", "sequential"},  {"hios-lp-inter", "inter_lp"}, {"hios-lp", "hios_lp"},
      {"hios-mr-inter", "inter_mr"}, {"hios-mr", "hios_mr"},        {"heft-stages", "heft_group2"}};
  for (size_t i = 0; i < list.size(); i += 29) {
    for (const auto& [planner, key] : kNames) {
      const auto result = run_planner(*find_planner(planner), list[i].problem, {});
      ASSERT_TRUE(result.ok()) << result.error().to_string();
      EXPECT_NEAR(result->value_us / 1000, list[i].row[key].get<double>(), 1e-3) << planner;
      EXPECT_LE(result->bound.us, result->value_us);
    }
  }
}

}  // namespace
}  // namespace heddle
