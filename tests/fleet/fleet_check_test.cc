// The checker reports each fault of a plan by name. Files survive a round trip; errors in malformed files are
// explained.
#include "heddle/fleet/fleet_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "fleet_support.h"
#include "heddle/base/json.h"
#include "heddle/fleet/fleet_planner.h"

namespace heddle {
namespace {

using testing::HasSubstr;

struct Planned {
  Fleet fleet;
  FleetPlan plan;
};

Planned planned() {
  Random random(21);
  while (true) {
    auto fleet = random_fleet(random, {.models = 2, .max_count = 6, .share_levels = 2});
    auto plan = plan_fleet(fleet, "auto");
    if (!plan.ok()) continue;
    for (const auto& m : plan->models)
      for (const auto& p : m.pipelines)
        if (p.partitions.size() == 2) return {fleet, *plan};
  }
}

// The first pipeline with two partitions.
FleetPipeline& two_parts(FleetPlan& plan) {
  for (auto& m : plan.models)
    for (auto& p : m.pipelines)
      if (p.partitions.size() == 2) return p;
  return plan.models[0].pipelines[0];
}

std::string first_problem(const Planned& p) {
  const auto problems = fleet_plan_problems(p.fleet, p.plan);
  return problems.empty() ? "" : problems[0];
}

TEST(FleetChecker, AcceptsAPlanAndNamesWhatIsWrongWithItsCopies) {
  const auto good = planned();
  EXPECT_EQ(first_problem(good), "");
  auto bad = good;
  bad.plan.models[0].pipelines[0].rate_per_s *= 1.001;
  EXPECT_THAT(first_problem(bad), HasSubstr("its pools sustain"));
  bad = good;
  bad.plan.models[1].rate_per_s += 1;
  EXPECT_THAT(first_problem(bad), HasSubstr("its pipelines sustain"));
  bad = good;
  bad.plan.value *= 1.1;
  EXPECT_THAT(first_problem(bad), HasSubstr("the plan claims the value"));
  bad = good;
  bad.plan.bound = bad.plan.value * 0.9;
  EXPECT_THAT(first_problem(bad), HasSubstr("which so is no bound"));
  const auto status = check_planned(bad.fleet, bad.plan);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kInternal);
  const std::string text = status.error().to_string();
  EXPECT_THAT(text, HasSubstr(bad.plan.proof.text()));
  // Fleet and plan are kept, and say the same when they are read.
  const std::string name = kept_files(text);
  const auto fleet = read_fleet(name + "-fleet.json");
  ASSERT_TRUE(fleet.ok()) << text;
  const auto plan = read_fleet_plan(name + "-plan.json", *fleet);
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  EXPECT_THAT(fleet_plan_problems(*fleet, *plan), testing::Contains(HasSubstr("which so is no bound")));
  std::filesystem::remove(name + "-fleet.json");
  std::filesystem::remove(name + "-plan.json");
  bad = good;
  two_parts(bad.plan).partitions[1].block_from += 1;
  EXPECT_THAT(first_problem(bad), HasSubstr("do not continue the chain"));
  bad = good;
  two_parts(bad.plan).partitions.pop_back();
  EXPECT_THAT(first_problem(bad), HasSubstr("do not continue the chain"));
  bad = good;
  two_parts(bad.plan).batch = 99;
  EXPECT_THAT(first_problem(bad), HasSubstr("there is no time"));
  bad = good;
  two_parts(bad.plan).partitions[0].share = 3;
  EXPECT_THAT(first_problem(bad), HasSubstr("has no share 1/3"));
  bad = good;
  two_parts(bad.plan).partitions[0].count = 0;
  EXPECT_THAT(first_problem(bad), HasSubstr("a pool of 0"));
  bad = good;
  for (auto& m : bad.fleet.models) m.slo_us = m.margin_us + 1;
  EXPECT_THAT(first_problem(bad), HasSubstr("the SLO is"));
  bad = good;
  for (auto& c : bad.fleet.classes) c.count = 0;
  EXPECT_THAT(first_problem(bad), HasSubstr("devices of 0"));
  bad = good;
  for (auto& c : bad.fleet.classes) c.memory_bytes = 100;
  for (auto& m : bad.fleet.models) m.parameter_bytes.assign(static_cast<size_t>(m.blocks), 1000);
  EXPECT_THAT(first_problem(bad), HasSubstr("bytes of parameters"));
}

TEST(FleetCheck, APlanIsHeldAgainstAnotherPlansBound) {
  const Planned good = planned();
  FleetPlan plan = good.plan;
  EXPECT_TRUE(hold_against(good.fleet, plan, plan.value * 2, {"another", ""}).ok());
  EXPECT_EQ(plan.bound, plan.value * 2);
  EXPECT_TRUE(hold_against(good.fleet, plan, plan.value * (1 - 1e-6), {"solved", "HiGHS 1.15.1"}).ok());
  EXPECT_EQ(plan.bound, plan.value) << "within the solvers' tolerance";
  const auto status = hold_against(good.fleet, plan, plan.value * .99, {"solved", "HiGHS 1.15.1"});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().to_string(),
              HasSubstr("(claimed by HiGHS 1.15.1: solved); one of the two is wrong"));
  const std::string text = status.error().to_string();
  const std::string name = kept_files(text);
  EXPECT_TRUE(std::filesystem::remove(name + "-fleet.json"));
  EXPECT_TRUE(std::filesystem::remove(name + "-plan.json"));
}

class FleetFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("fleet_files_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string wrong(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    const auto fleet = read_fleet(path(name));
    if (fleet.ok()) return "accepted";
    const auto all = fleet.error().to_string();
    const auto at = all.find(name);
    return at == std::string::npos ? all : all.substr(at);
  }
  std::filesystem::path folder_;
};

TEST_F(FleetFiles, FleetsAndPlansReadBackTheSameFromBothForms) {
  const auto [fleet, plan] = planned();
  for (const char* suffix : {"json", "yaml"}) {
    const auto fleet_path = path(std::string("f.") + suffix), plan_path = path(std::string("p.") + suffix);
    ASSERT_TRUE(write_fleet(fleet_path, fleet).ok());
    const auto again = read_fleet(fleet_path);
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    EXPECT_EQ(to_json(*again), to_json(fleet));
    ASSERT_TRUE(write_fleet_plan(plan_path, plan, fleet).ok());
    const auto read = read_fleet_plan(plan_path, *again);
    ASSERT_TRUE(read.ok()) << read.error().to_string();
    EXPECT_EQ(to_json(*read, fleet), to_json(plan, fleet));
    EXPECT_TRUE(check_fleet_plan(*again, *read).ok());
  }
}

constexpr const char* kYaml = R"(format: heddle-fleet
version: 1
classes:
  - {name: gpu, count: 2, nic: 10Gbit/s}
models:
  - name: net
    slo: 20ms
    cut_bytes: [1, 2, 1]
    latency_us: {gpu: [[[1000, 2000]]]}
)";

TEST_F(FleetFiles, QuantitiesMayHaveUnits) {
  std::ofstream(path("f.yaml")) << kYaml;
  const auto fleet = read_fleet(path("f.yaml"));
  ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
  EXPECT_EQ(fleet->name, "f");
  EXPECT_DOUBLE_EQ(fleet->models[0].slo_us, 20000);
  EXPECT_DOUBLE_EQ(fleet->classes[0].nic_bytes_per_s, 1.25e9);
  EXPECT_EQ(fleet->models[0].blocks, 2);
}

TEST_F(FleetFiles, MalformedFleetsAreExplainedWithTheirPlace) {
  const std::string yaml = kYaml;
  const auto with = [&](const std::string& from, const std::string& to) {
    auto text = yaml;
    text.replace(text.find(from), from.size(), to);
    return wrong("f.yaml", text);
  };
  EXPECT_THAT(with("count: 2", "count: -2"), HasSubstr("f.yaml:4: $.classes[0].count: "));
  EXPECT_THAT(with("count: 2", "count: 0"), HasSubstr("there is no device"));
  EXPECT_THAT(with("count: 2", "cuont: 2"), HasSubstr("did you mean 'count'?"));
  EXPECT_THAT(with("1000, 2000", ".nan, 2000"),
              HasSubstr("f.yaml:9: model 'net': $.models[0].latency_us.gpu[0][0][0]"));
  EXPECT_THAT(with("1000, 2000", "0, 2000"),
              HasSubstr("model 'net' on class 'gpu', share 1/1, batch 1, block 0: the time in us is 0"));
  EXPECT_THAT(with("1000, 2000", "1000"), HasSubstr("times of 1 blocks; the model has 2"));
  EXPECT_THAT(with("{gpu: [[[1000, 2000]]]}", "{}"), HasSubstr("there is no time on any class"));
  EXPECT_THAT(with("{gpu: [[[1000, 2000]]]}", "{gpo: []}"), HasSubstr("did you mean 'gpu'?"));
  EXPECT_THAT(with("slo: 20ms", "slo: soon"), HasSubstr("f.yaml:7: $.models[0].slo: is the string 'soon'"));
  EXPECT_THAT(with("slo: 20ms", "slo: 20ms\n    margin: 20ms"), HasSubstr("leaves nothing of slo_us"));
  EXPECT_THAT(with("heddle-fleet", "heddle-flaat"), HasSubstr("expected 'heddle-fleet'"));
  EXPECT_THAT(with("cut_bytes: [1, 2, 1]", "cut_bytes: [1]"), HasSubstr("one more than there are blocks"));
  EXPECT_THAT(with("version: 1", "version: 2"), HasSubstr("reads up to version 1"));
  EXPECT_THAT(wrong("f.json", "{\"format\": "), HasSubstr("line 1"));
  EXPECT_THAT(wrong("f.json", ""), HasSubstr("empty"));
  EXPECT_THAT(wrong("f.yaml", "[[[["), HasSubstr("f.yaml:1"));
  EXPECT_THAT(wrong("f.yaml", "&a [*a]"), HasSubstr("f.yaml"));
}

TEST(FleetValidation, RefusesNumbersThatAreNone) {
  Random random(2);
  const auto good = random_fleet(random, {});
  ASSERT_TRUE(check_fleet(good).ok());
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const double wrong : {nan, inf, -1.0}) {
    auto fleet = good;
    fleet.models[0].latency_us[0][0][0][1] = wrong;
    EXPECT_FALSE(check_fleet(fleet).ok());
    fleet = good;
    fleet.models[1].weight = wrong;
    EXPECT_FALSE(check_fleet(fleet).ok());
    fleet = good;
    fleet.classes[0].nic_bytes_per_s = wrong;
    EXPECT_FALSE(check_fleet(fleet).ok());
    fleet = good;
    fleet.models[0].cut_bytes[2] = wrong;
    EXPECT_FALSE(check_fleet(fleet).ok());
  }
}

}  // namespace
}  // namespace heddle
