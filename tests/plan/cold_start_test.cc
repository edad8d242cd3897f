// The cold start: loads and what avoids them. Direct host access, parameters that are resident, dropped or
// come over another device's bus, and fixed factors for shared links.
#include <gtest/gtest.h>

#include "brute_force.h"
#include "heddle/base/json.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/evaluator.h"
#include "heddle/plan/plan_file.h"

namespace heddle::test {
namespace {

// Two ops in a chain, 20 and 30 bytes of parameters, 5 us each, on GPUs whose loads take 1 us + 1 us a byte.
// With direct host access they take 12 and 40 us.
Problem chain(int gpus = 1, bool with_bus = false, int64_t memory = 0) {
  auto graph = make_graph({{"a", {}, 4, {{"wa", 20}}}, {"b", {"a"}, 2, {{"wb", 30}}, true}});
  Problem p =
      make_problem(graph, make_gpu_cluster(gpus, 2, with_bus, memory),
                   std::vector<std::vector<double>>(2, std::vector<double>(static_cast<size_t>(gpus), 5)),
                   Objective::kColdLatency);
  auto costs = std::make_shared<CostTable>(*p.costs);
  for (size_t d = 0; d < static_cast<size_t>(gpus); ++d) {
    costs->set_host_access(OpId(0), DeviceId(d), 12);
    costs->set_host_access(OpId(1), DeviceId(d), 40);
  }
  p.costs = costs;
  return p;
}

Assignment on(const Problem& p, std::vector<size_t> devices, std::vector<uint8_t> host_access = {}) {
  Assignment a;
  for (const size_t d : devices) a.device.emplace_back(d);
  a.order.assign(p.graph->topological_order().begin(), p.graph->topological_order().end());
  a.host_access = std::move(host_access);
  return a;
}

Timeline timed(const Problem& p, const Plan& plan) {
  const auto t = evaluate(p, plan);
  EXPECT_TRUE(t.ok()) << t.error().to_string();
  const CheckReport report = check(p, plan, *t, lower_bound(p).us);
  EXPECT_TRUE(report.ok()) << report.findings[0].message;
  return *t;
}
double makespan(const Problem& p, const Assignment& a) { return timed(p, *build_plan(p, a)).makespan_us; }

// Without contention the first op reads in place for 12 us while the other's load takes 31; then 5 us. With
// contention the load waits until the link is free.
TEST(HostAccess, OverlapsWithLoadsWhereLinksAreNotShared) {
  Problem p = chain();
  EXPECT_EQ(makespan(p, on(p, {0, 0})), 21 + 31 + 5);
  EXPECT_EQ(makespan(p, on(p, {0, 0}, {1, 0})), 12 + 31 + 5);
  EXPECT_EQ(makespan(p, on(p, {0, 0}, {1, 1})), 12 + 40);
  p.execution.link_contention = false;
  EXPECT_EQ(makespan(p, on(p, {0, 0}, {1, 0})), 31 + 5);
  // A load, issued at once, comes before the run that reads in place: they need not wait for each other now.
  EXPECT_EQ(makespan(p, on(p, {0, 0}, {0, 1})), 21 + 5 + 40);
}

// Section 3.4: twice the devices that share the bus; transfers x 1.5 over one direct link, else x the
// devices.
TEST(HostAccess, TakesLongerByFixedFactorsWhereSharingIsFixed) {
  Problem alone = chain(2);
  alone.execution.fixed_sharing = true;
  EXPECT_EQ(makespan(alone, on(alone, {0, 0}, {1, 0})), 31 + 5);  // 2 x 12 meanwhile
  EXPECT_EQ(makespan(alone, on(alone, {0, 0}, {1, 1})), 2 * 12 + 2 * 40);
  Problem shared = chain(2, /*with_bus=*/true);
  shared.execution.fixed_sharing = true;
  EXPECT_EQ(makespan(shared, on(shared, {0, 0}, {1, 1})), 4 * 12 + 4 * 40);
  // a runs from 21 to 26; its 4 bytes go over two links, latency 2, 4 us x 2 devices. b's load, which holds
  // the second GPU's copy engine, ends at 31 (own link) or 21 + 31 (bus).
  EXPECT_EQ(makespan(alone, on(alone, {0, 1})), 31 + 10 + 5);
  EXPECT_EQ(makespan(shared, on(shared, {0, 1})), 52 + 10 + 5);
  alone.execution.engine_contention = false;
  EXPECT_EQ(makespan(alone, on(alone, {0, 1})), 26 + 10 + 5);
  EXPECT_EQ(sharing_factor(*alone.cluster, alone.cluster->load_route(DeviceId(0))->hops), 1.5);
}

TEST(Resident, NeedsNoLoad) {
  Problem p = chain();
  p.resident = {{}, {}};
  p.resident.resize(static_cast<size_t>(p.cluster->num_memory_pools()));
  const auto pool = static_cast<size_t>(p.cluster->memory_pool(DeviceId(0)));
  p.resident[pool] = {ParamId(1)};
  ASSERT_TRUE(validate(p).ok()) << validate(p).error().to_string();
  EXPECT_EQ(makespan(p, on(p, {0, 0})), 21 + 5 + 5);
  p.resident[pool] = {ParamId(0), ParamId(1)};
  EXPECT_EQ(makespan(p, on(p, {0, 0})), 5 + 5);
  EXPECT_NEAR(lower_bound(p).us, 10, 1e-6);
  p.resident[pool] = {ParamId(1), ParamId(0)};
  EXPECT_FALSE(validate(p).ok());
}

// What is read in place takes no memory; what is dropped makes room. Parameters 20 and 30, tensors 4 and 2.
TEST(Memory, HoldsOnlyParametersThatAreThere) {
  Problem p = chain();
  const auto pool = static_cast<size_t>(p.cluster->memory_pool(DeviceId(0)));
  const auto peak = [&](const Assignment& a) { return timed(p, *build_plan(p, a)).peak_memory_bytes[pool]; };
  EXPECT_EQ(peak(on(p, {0, 0})), 20 + 30 + 4 + 2);
  EXPECT_EQ(peak(on(p, {0, 0}, {1, 0})), 30 + 4 + 2);
  EXPECT_EQ(peak(on(p, {0, 0}, {1, 1})), 4 + 2);
  p.execution.parameter_drops = true;
  // b's load (21 to 52) begins while a's parameters are still read (until 26).
  EXPECT_EQ(peak(on(p, {0, 0})), 20 + 30 + 4);
  Plan kept = *build_plan(p, on(p, {0, 0}));
  ASSERT_TRUE(kept.segments[0].drops_params);
  kept.segments[0].drops_params = false;
  EXPECT_EQ(timed(p, kept).peak_memory_bytes[pool], 20 + 30 + 4 + 2);
}

// Half of the parameters over the other GPU's link and on to the first one (DeepPlan's parallel
// transmission).
TEST(ParallelTransmission, LoadsOverAnotherDevicesLink) {
  ClusterBuilder builder("pair");
  const HostId host = builder.add_host({.name = "h", .memory_bytes = 0});
  std::vector<DeviceId> gpus;
  std::vector<LinkId> links;
  for (int i = 0; i < 2; ++i) {
    Device d;
    d.name = "g" + std::to_string(i);
    d.device_class = "g";
    d.host = host;
    d.copy_engines = 0;
    gpus.push_back(builder.add_device(d));
    links.push_back(builder.add_link({.name = "pcie" + std::to_string(i),
                                      .a = builder.host_node(host),
                                      .b = builder.device_node(gpus.back()),
                                      .bytes_per_s = 1e6,
                                      .latency_us = 1,
                                      .duplex = Duplex::kFull,
                                      .bus = {}}));
  }
  links.push_back(builder.add_link({.name = "nvlink",
                                    .a = builder.device_node(gpus[0]),
                                    .b = builder.device_node(gpus[1]),
                                    .bytes_per_s = 4e6,
                                    .latency_us = 1,
                                    .duplex = Duplex::kFull,
                                    .bus = {}}));
  Problem p = chain(2);
  p.cluster = *builder.build();
  Assignment a = on(p, {0, 0});
  EXPECT_EQ(makespan(p, a), 21 + 31 + 5);
  a.routes = {{{links[1], true}, {links[2], false}}};
  a.load_route = {-1, 0};
  EXPECT_EQ(makespan(p, a), 32 + 5);  // 2 us of latency, 30 at the pace of the slower link
  const Plan plan = *build_plan(p, a);
  EXPECT_EQ(assignment_of(p, plan).load_route, a.load_route);
  a.routes = {{{links[1], true}}};
  EXPECT_FALSE(build_plan(p, a).ok());  // it ends at the other GPU
  a.load_route = {-1, 1};
  EXPECT_FALSE(build_plan(p, a).ok());
}

TEST(ColdStart, IsRefusedWhereItHasNoPlace) {
  const Problem p = chain();
  Problem warm = p;
  warm.objective = Objective::kLatency;
  EXPECT_FALSE(build_plan(warm, on(p, {0, 0}, {1, 0})).ok());
  const Plan plan = *build_plan(p, on(p, {0, 0}, {1, 0}));
  const Timeline t = timed(p, plan);
  EXPECT_FALSE(evaluate(warm, plan).ok());
  EXPECT_FALSE(check(warm, plan, t).ok());
  Plan dropping = plan;
  dropping.segments[1].drops_params = true;
  EXPECT_FALSE(evaluate(p, dropping).ok());
  EXPECT_FALSE(check(p, dropping, t).ok());
  Plan loads_nothing = plan;  // the load's segment reads in place now
  for (Segment& s : loads_nothing.segments) s.host_access = true;
  EXPECT_FALSE(evaluate(p, loads_nothing).ok());
  EXPECT_FALSE(check(p, loads_nothing, t).ok());
  Plan in_memory = plan;  // nobody loads a's parameters
  for (Segment& s : in_memory.segments) s.host_access = false;
  EXPECT_FALSE(evaluate(p, in_memory).ok());
  EXPECT_FALSE(check(p, in_memory, t).ok());
}

TEST(ColdStart, RejectsMalformedProblems) {
  Problem p = chain();
  auto costs = std::make_shared<CostTable>(*p.costs);
  costs->set_host_access(OpId(0), DeviceId(0), -1);
  p.costs = costs;
  EXPECT_FALSE(validate(p).ok());
  p = chain();
  p.resident.resize(7);
  EXPECT_FALSE(validate(p).ok());
  p = chain();
  p.objective = Objective::kThroughput;
  p.execution.fixed_sharing = true;
  EXPECT_FALSE(validate(p).ok());
}

Problem random_cold(Random& random, int ops, int devices) {
  return random_problem(random, {.ops = ops,
                                 .max_devices = devices,
                                 .edge_probability = 0.3,
                                 .objective = Objective::kColdLatency,
                                 .known_segments = random.chance(0.3),
                                 .cold_start = true});
}

TEST(ColdStart, IsTimedAsTheNaiveSimulatorDoesAndPassesTheChecker) {
  Random random(71);
  int plans = 0, in_place = 0;
  for (int round = 0; round < 300; ++round) {
    const Problem p = random_cold(random, static_cast<int>(random.between(1, 14)), 4);
    ASSERT_TRUE(validate(p).ok()) << validate(p).error().to_string();
    const Plan plan = random_plan(random, p);
    if (plan.steps.empty()) continue;
    const auto t = evaluate(p, plan);
    ASSERT_TRUE(t.ok()) << round << ": " << t.error().to_string();
    const NaiveTimes naive = naive_times(p, plan);
    for (size_t i = 0; i < plan.steps.size(); ++i)
      ASSERT_NEAR(t->start_us[i], naive.start[i], 1e-9 * (1 + naive.makespan)) << round << " step " << i;
    const CheckReport report = check(p, plan, *t, lower_bound(p).us);
    ASSERT_TRUE(report.ok()) << round << ": " << report.findings[0].message;
    ++plans;
    for (const Segment& s : plan.segments) in_place += s.host_access;
  }
  EXPECT_GT(plans, 200);
  EXPECT_GT(in_place, 200);
}

// The builder's own order: evaluate() finds its times, and nothing can be checked away.
TEST(ColdStart, IsBuiltInTheOrderOfItsStarts) {
  Random random(72);
  for (int round = 0; round < 200; ++round) {
    const Problem p = random_cold(random, static_cast<int>(random.between(1, 20)), 4);
    Assignment a = random_assignment(random, p);
    if (random.chance(0.5)) a.segment = merge_segments(p, a);
    const auto plan = build_plan(p, a);
    if (!plan.ok()) continue;
    const Timeline t = timed(p, *plan);
    for (size_t i = 1; i < t.start_us.size(); ++i) ASSERT_LE(t.start_us[i - 1], t.start_us[i]) << round;
    const Assignment again = assignment_of(p, *plan);
    EXPECT_NEAR(timed(p, *build_plan(p, again)).makespan_us, t.makespan_us, 1e-9 * t.makespan_us) << round;
  }
}

TEST(ColdStart, BoundNeverExceedsTheBruteForceOptimum) {
  Random random(73);
  int count = 0;
  double closeness = 0;
  for (int round = 0; round < 150; ++round) {
    RandomShape shape{
        .ops = static_cast<int>(random.between(2, 3)), .max_devices = 3, .edge_probability = 0.4};
    shape.objective = Objective::kColdLatency;
    shape.cold_start = true;
    const Problem p = random_problem(random, shape);
    const double best = BruteForce(p).best();
    if (!(best < kImpossible) || best == 0) continue;
    const double bound = lower_bound(p).us;
    ASSERT_LE(bound, best * (1 + 1e-9)) << round;
    closeness += bound / best;
    ++count;
  }
  EXPECT_GT(count, 90);
  EXPECT_GT(closeness / count, 0.75);
}

TEST(ColdStart, IsKeptByPlanFiles) {
  Random random(74);
  for (int round = 0; round < 40; ++round) {
    PlanFile file;
    file.problem = random_cold(random, 10, 4);
    auto plan = build_plan(file.problem, random_assignment(random, file.problem));
    if (!plan.ok()) continue;
    file.plan = std::move(*plan);
    file.predicted = *evaluate(file.problem, file.plan);
    file.bound = lower_bound(file.problem);
    auto json = parse_json(plan_to_json(file).dump());
    ASSERT_TRUE(json.ok());
    const auto back = plan_from_json(JsonCursor(*json));
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    EXPECT_EQ(plan_to_json(*back), plan_to_json(file));
    EXPECT_EQ(back->predicted.peak_memory_bytes, file.predicted.peak_memory_bytes);
    EXPECT_EQ(lower_bound(back->problem).us, file.bound.us);
  }
}

}  // namespace
}  // namespace heddle::test
