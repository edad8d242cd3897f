#include "heddle/plan/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "heddle/base/json.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "plan_support.h"
#include "workload_support.h"

namespace heddle::test {
namespace {

using testing::HasSubstr;

PlanFile random_file(Random& random, Objective objective) {
  PlanFile file;
  for (;;) {
    RandomShape shape{.ops = 10, .max_devices = 4};
    shape.objective = objective;
    shape.known_segments = true;
    file.problem = random_problem(random, shape);
    auto plan = build_plan(file.problem, random_assignment(random, file.problem));
    if (!plan.ok()) continue;
    file.plan = std::move(*plan);
    break;
  }
  const auto costs = std::make_shared<CostTable>(*file.problem.costs);
  costs->set_core_taken(DeviceId(0), random.uniform(1, 4));
  file.problem.costs = costs;
  file.problem.model =
      ModelReference{"models/net.onnx", 0xfedcba9876543210ULL, {{"x", {1, 3, 8, 8}}}, 4, 1 << 20};
  file.predicted = *evaluate(file.problem, file.plan);
  file.bound = lower_bound(file.problem);
  file.planner = "test";
  file.seed = UINT64_MAX;
  file.planning_s = 0.1;
  return file;
}

Result<PlanFile> again(const PlanFile& file) {
  const std::string text = plan_to_json(file).dump();
  auto json = parse_json(text);
  if (!json.ok()) return std::move(json).error();
  return plan_from_json(JsonCursor(*json));
}

// The workloads of papers bring times of transfers and rules of placement.
PlanFile workload_file(Random& random, uint64_t seed) {
  PlanFile file;
  Assignment decisions;
  if (seed % 3 == 0) {
    file.problem = random_flow_problem(random, {.ops = 10, .devices = 3, .edge_probability = 0.3});
  } else {
    const bool latency = seed % 3 == 1;
    const PlacementOptions options{.objective = latency ? Objective::kLatency : Objective::kThroughput,
                                   .contiguous = !latency,
                                   .pieces = latency ? 20 : 1};
    file.problem =
        random_placement_problem({.nodes = 8, .training = seed % 2 == 0, .anywhere = true}, seed, options);
  }
  for (size_t v = 0; v < file.problem.graph->num_ops(); ++v)
    decisions.device.emplace_back(random.below(file.problem.cluster->num_devices()));
  decisions.order.assign(file.problem.graph->topological_order().begin(),
                         file.problem.graph->topological_order().end());
  file.plan = made(build_plan(file.problem, decisions));
  file.predicted = made(evaluate(file.problem, file.plan));
  file.bound = lower_bound(file.problem);
  file.planner = "test";
  return file;
}

TEST(PlanFile, KeepsHowTypesWereChosen) {
  Random random(44);
  PlanFile file = random_file(random, Objective::kLatency);
  PrecisionChoice choice{.least_agreement = .99, .most_mean = .01, .samples = 4, .units = {}, .agreement = 1};
  // A type that makes outputs infinite; JSON has no infinity.
  choice.units = {
      {OpId(2), Precision::kFp16, .5, std::numeric_limits<double>::infinity(), false},
      {OpId(3), Precision::kBf16, 1, .001, true},
  };
  choice.mean = .001;
  choice.largest = .1;
  file.problem.precision = std::make_shared<const PrecisionChoice>(choice);
  const auto back = again(file);
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  ASSERT_NE(back->problem.precision, nullptr);
  const PrecisionChoice& kept = *back->problem.precision;
  EXPECT_EQ(kept.least_agreement, .99);
  EXPECT_EQ(kept.most_mean, .01);
  EXPECT_EQ(kept.samples, 4);
  EXPECT_EQ(kept.mean, .001);
  EXPECT_EQ(kept.largest, .1);
  EXPECT_TRUE(kept.holds());
  ASSERT_EQ(kept.units.size(), 2u);
  EXPECT_TRUE(std::isfinite(kept.units[0].mean));
  EXPECT_TRUE(kept.forbids(OpId(2), Precision::kFp16));
  EXPECT_FALSE(kept.forbids(OpId(3), Precision::kBf16));
  EXPECT_EQ(plan_to_json(*back), plan_to_json(file));

  const auto refused = [&](const std::function<void(Json&)>& change) {
    Json json = plan_to_json(file);
    change(json["problem"]["precision"]);
    const auto read = plan_from_json(JsonCursor(json));
    return read.ok() ? std::string("it was read") : read.error().to_string();
  };
  EXPECT_THAT(refused([](Json& p) { p["units"][0]["unit"] = 10; }), HasSubstr("unit"));
  EXPECT_THAT(refused([](Json& p) { p["units"][0]["type"] = "int3"; }), HasSubstr("'bf16' or 'fp16'"));
  EXPECT_THAT(refused([](Json& p) { p["agreement"] = 2; }), HasSubstr("agreement"));
  EXPECT_THAT(refused([](Json& p) { p["samples"] = -1; }), HasSubstr("samples"));
}

TEST(PlanFile, KeepsTransferTimesAndRulesOfWorkloads) {
  Random random(43);
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const PlanFile file = workload_file(random, seed);
    const auto back = again(file);
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    EXPECT_EQ(plan_to_json(*back), plan_to_json(file));
    EXPECT_EQ(back->problem.transfers->us, file.problem.transfers->us);
    EXPECT_EQ(back->problem.execution.unlimited_cpus, file.problem.execution.unlimited_cpus);
    EXPECT_EQ(back->predicted.finish_us, file.predicted.finish_us);
    for (const Finding& f : check(back->problem, back->plan, back->predicted, back->bound.us).findings)
      EXPECT_TRUE(f.kind == Violation::kMemory || f.kind == Violation::kPlacement) << f.message;
  }
}

TEST(PlanFile, RefusesTransferTimesThatDoNotFit) {
  Random random(44);
  const Json good = plan_to_json(workload_file(random, 0));
  const auto refused = [&](const std::function<void(Json&)>& change) {
    Json json = good;
    change(json["problem"]);
    return !plan_from_json(JsonCursor(json)).ok();
  };
  EXPECT_TRUE(refused([](Json& p) { p.erase("transfer_us"); }));
  EXPECT_TRUE(refused([](Json& p) { p["execution"].erase("transfers"); }));
  EXPECT_TRUE(refused([](Json& p) { p["execution"]["transfers"] = "by hand"; }));
  EXPECT_TRUE(refused([](Json& p) { p["execution"]["transfers"] = "within-runs"; }));
  EXPECT_TRUE(refused([](Json& p) { p["transfer_us"].erase(0); }));
  EXPECT_TRUE(refused([](Json& p) { p["transfer_us"][0] = {{0, 1}, {1, 0}}; }));
  EXPECT_TRUE(refused([](Json& p) { p["objective"] = "cold-latency"; }));
  EXPECT_TRUE(refused([](Json& p) { p["rules"] = {{"colour", {1, 2}}}; }));
  EXPECT_TRUE(refused([](Json& p) { p["rules"] = {{"colours", {}}}; }));
}

TEST(PlanFile, KeepsEveryNumberToTheLastBitAndVerifiesAfterReading) {
  Random random(41);
  for (int round = 0; round < 60; ++round) {
    const auto objective = static_cast<Objective>(round % 3);
    PlanFile file = random_file(random, objective);
    if (round % 2 == 1) file.bound.proof.claimed_by = "a solver";
    const auto back = again(file);
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    EXPECT_EQ(back->predicted.start_us, file.predicted.start_us);
    EXPECT_EQ(back->predicted.finish_us, file.predicted.finish_us);
    EXPECT_EQ(back->predicted.makespan_us, file.predicted.makespan_us);
    EXPECT_EQ(back->predicted.period_us, file.predicted.period_us);
    EXPECT_EQ(back->predicted.peak_memory_bytes, file.predicted.peak_memory_bytes);
    EXPECT_EQ(back->bound.us, file.bound.us);
    EXPECT_EQ(back->bound.proof.text(), file.bound.proof.text());
    EXPECT_EQ(back->planner, file.planner);
    EXPECT_EQ(back->seed, file.seed);
    EXPECT_EQ(back->problem.model->file_hash, file.problem.model->file_hash);
    EXPECT_EQ(back->problem.model->shapes, file.problem.model->shapes);
    EXPECT_EQ(back->problem.model->batch, file.problem.model->batch);
    EXPECT_EQ(back->problem.model->split_bytes, file.problem.model->split_bytes);
    for (size_t v = 0; v < file.problem.graph->num_ops(); ++v) {
      for (size_t d = 0; d < file.problem.cluster->num_devices(); ++d) {
        const Cost a = file.problem.costs->at(OpId(v), DeviceId(d)),
                   b = back->problem.costs->at(OpId(v), DeviceId(d));
        EXPECT_EQ(a.us, b.us);
        EXPECT_EQ(a.origin, b.origin);
        EXPECT_EQ(a.rel_spread, b.rel_spread);
      }
    }
    EXPECT_EQ(back->problem.costs->segments().size(), file.problem.costs->segments().size());
    for (size_t d = 0; d < file.problem.cluster->num_devices(); ++d)
      EXPECT_EQ(back->problem.costs->core_taken(DeviceId(d)), file.problem.costs->core_taken(DeviceId(d)));
    const CheckReport report = check(back->problem, back->plan, back->predicted, back->bound.us);
    EXPECT_TRUE(report.ok()) << report.findings[0].message;
    EXPECT_EQ(plan_to_json(*back).dump(), plan_to_json(file).dump());
  }
}

TEST(PlanFile, KeepsRoutesAndLanes) {
  Random random(42);
  PlanFile file = random_file(random, Objective::kThroughput);
  const Assignment a = assignment_of(file.problem, file.plan);
  file.plan = *build_plan(file.problem, {{a, 0.25}, {a, 0.75}});
  if (!file.problem.cluster->links().empty()) file.plan.routes = {{{LinkId(0), true}}};
  file.predicted = *evaluate(file.problem, file.plan);
  const auto back = again(file);
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ(back->plan.lane_shares, file.plan.lane_shares);
  EXPECT_EQ(back->plan.routes.size(), file.plan.routes.size());
  EXPECT_TRUE(check(back->problem, back->plan, back->predicted).ok());
}

TEST(PlanFile, WritesAndReadsAFile) {
  Random random(43);
  const PlanFile file = random_file(random, Objective::kLatency);
  const std::string path = testing::TempDir() + "heddle_plan_file_test.json";
  ASSERT_TRUE(write_plan_file(path, file).ok());
  const auto back = read_plan_file(path);
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ(back->predicted.makespan_us, file.predicted.makespan_us);
  std::filesystem::remove(path);
  EXPECT_FALSE(read_plan_file(path).ok());
}

TEST(PlanFile, RefusesWhatIsNoPlanAndNamesThePlace) {
  Random random(44);
  const Json good = plan_to_json(random_file(random, Objective::kLatency));
  const auto message = [&](auto change) -> std::string {
    Json json = good;
    change(json);
    const auto file = plan_from_json(JsonCursor(json));
    return file.ok() ? "accepted" : file.error().to_string();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(message([](Json& j) { j["format"] = "x"; }), "$.format"));
  EXPECT_TRUE(has(message([](Json& j) { j["version"] = 99; }), "newer Heddle"));
  EXPECT_TRUE(has(message([](Json& j) { j["sed"] = 1; }), "sed"));
  EXPECT_TRUE(
      has(message([](Json& j) { j["plan"]["steps"][0]["start_us"] = -1; }), "$.plan.steps[0].start_us"));
  EXPECT_TRUE(has(message([](Json& j) { j["plan"]["steps"][0]["run"] = 1000; }), "$.plan.steps[0].run"));
  EXPECT_TRUE(has(message([](Json& j) { j["plan"]["segments"][0]["device"] = "nope"; }),
                  "$.plan.segments[0].device"));
  EXPECT_TRUE(
      has(message([](Json& j) { j["plan"]["segments"][0]["ops"][0] = -1; }), "$.plan.segments[0].ops"));
  EXPECT_TRUE(has(message([](Json& j) { j["problem"]["objective"] = "speed"; }), "$.problem.objective"));
  EXPECT_TRUE(has(message([](Json& j) { j["problem"]["costs"]["us"].erase(0); }), "$.problem.costs.us"));
  EXPECT_TRUE(
      has(message([](Json& j) { j["problem"]["costs"]["us"][0][0] = -4; }), "$.problem.costs.us[0][0]"));
  EXPECT_TRUE(has(message([](Json& j) { j["problem"]["costs"]["core_taken"][0] = 0.5; }),
                  "$.problem.costs.core_taken[0]"));
  EXPECT_TRUE(has(message([](Json& j) { j["problem"]["model"]["file_hash"] = "zz"; }), "file_hash"));
  EXPECT_TRUE(has(message([](Json& j) { j["plan"]["lane_shares"] = Json::array(); }), "lane"));
}

// Every prefix and many flipped bytes: an error or a plan, never a crash; a plan may be checked.
TEST(PlanFile, SurvivesDamagedText) {
  Random random(45);
  const std::string good = plan_to_json(random_file(random, Objective::kColdLatency)).dump();
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    if (round % 3 == 0) {
      text.resize(random.below(text.size()));
    } else {
      for (int i = 0; i <= round % 4; ++i)
        text[random.below(text.size())] = "0123456789-.e,\"[]{}ntx"[random.below(22)];
    }
    auto json = parse_json(text);
    if (!json.ok()) continue;
    const auto file = plan_from_json(JsonCursor(*json));
    if (file.ok()) (void)check(file->problem, file->plan, file->predicted, file->bound.us);
  }
}

}  // namespace
}  // namespace heddle::test
