// The pipeline as a library: a model's file to a plan of measured segments, without a command line.
#include "heddle/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <mutex>
#include <set>

#include "heddle/cluster/cluster_yaml.h"
#include "heddle/plan/checker.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/run.h"
#include "heddle/session/replan.h"
#include "small_model.h"

namespace heddle {
namespace {

using testing::HasSubstr;

// Keeps what work was reported.
class Sink final : public ProgressSink {
 public:
  void report(const ProgressUpdate& update) override {
    const std::lock_guard lock(mutex_);
    what_.insert(update.what);
    if (update.what == cancel_at_) cancel_.cancel();
  }
  // Cancels when that is reported.
  void cancel_at(const std::string& what, const CancelToken& token) {
    cancel_at_ = what;
    cancel_ = token;
  }
  bool saw(const std::string& what) const { return what_.contains(what); }

 private:
  std::mutex mutex_;
  std::set<std::string> what_;
  std::string cancel_at_;
  CancelToken cancel_;
};

class SessionTest : public test::SmallModelTest {
 protected:
  void SetUp() override {
    SmallModelTest::SetUp();
    settings_.coarsening = Coarsening::kNone;
    control_.progress = &sink_;
  }

  Sink sink_;
  Control control_;
};

TEST_F(SessionTest, AModelBecomesAPlanOfMeasuredSegmentsThatRuns) {
  auto session = open_session(model(), settings_, control_);
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  EXPECT_TRUE(session->may_measure);
  EXPECT_TRUE(session->profiled.complete);
  EXPECT_GT(session->profiled.measured, 0);
  EXPECT_TRUE(sink_.saw("measuring units"));
  const auto result = make_plan(*session, "auto", {.time_limit_s = 0.2}, control_);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_TRUE(check(session->problem, result->plan, result->timeline).ok());
  for (const Segment& segment : result->plan.segments)
    EXPECT_TRUE(segment.ops.size() == 1 ||
                session->problem.costs->knows_segment(segment.ops, segment.device));
  RunOptions run;
  run.repeats = 2;
  const auto ran = run_plan(session->problem, result->plan, session->loaded.model, run);
  ASSERT_TRUE(ran.ok()) << ran.error().to_string();
  EXPECT_TRUE(ran->outputs_equal);
}

TEST_F(SessionTest, WhatWasMeasuredIsNotMeasuredAgain) {
  ASSERT_TRUE(open_session(model(), settings_, control_).ok());
  const auto again = open_session(model(), settings_, control_);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(again->profiled.measured, 0);
  EXPECT_EQ(again->profiled.present, again->profiled.requested);
}

class CoreTakenTest : public SessionTest {
 protected:
  static bool is_beside(const ProfileRecord& record) { return record.key.target.ends_with(", a core taken"); }
  // The records of a session that has measured, with another slowdown, in a store of their own, which the settings name
  // from then on.
  void keep(const Session& session, double slowdown, double spread) {
    settings_.store = (folder_ / ("store-" + std::to_string(++stores_) + ".sqlite")).string();
    const auto store = ProfileStore::open(settings_.store, measuring_fingerprint()).value();
    const auto records = session.store->all().value();
    for (ProfileRecord record : records) {
      if (is_beside(record)) {
        if (slowdown == 0) continue;
        ProfileKey alone = record.key;
        alone.target.resize(alone.target.size() - std::string(", a core taken").size());
        record.median_us = slowdown * session.store->find(alone).value()->median_us;
        record.rel_spread = spread;
      }
      ASSERT_TRUE(store->put(record).ok());
    }
  }
  double slowdown() {
    settings_.measure = false;
    const auto session = open_session(model(), settings_, control_);
    settings_.measure = true;
    const auto devices = session.value().problem.usable_devices();
    return session.value().problem.costs->core_taken(devices.front());
  }

 private:
  int stores_ = 0;
};

TEST_F(CoreTakenTest, IsMeasuredOncePerKindOfDevice) {
  const auto session = open_session(model(), settings_, control_);
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  std::set<std::string> targets, beside;
  for (const DeviceId d : session->problem.usable_devices())
    targets.insert(core_taken_target(session->cluster->device(d).target));
  const auto records = session->store->all().value();
  for (const ProfileRecord& record : records)
    if (is_beside(record)) beside.insert(record.key.target);
  EXPECT_EQ(beside, targets);
  const auto again = open_session(model(), settings_, control_);
  EXPECT_EQ(again.value().profiled.measured, 0);
}

TEST_F(CoreTakenTest, IsTakenFromTheStoreUnlessOtherWorkDisturbedIt) {
  const auto session = open_session(model(), settings_, control_);
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  keep(*session, 2.5, 0.05);
  EXPECT_DOUBLE_EQ(slowdown(), 2.5);
  const auto elsewhere =
      with_cluster(*open_session(model(), settings_, control_), session->cluster, settings_);
  EXPECT_DOUBLE_EQ(elsewhere.value().costs->core_taken(DeviceId(0)), 2.5);
  keep(*session, 0.9, 0.05);
  EXPECT_DOUBLE_EQ(slowdown(), 1);
  keep(*session, 2.5, 0.5);
  EXPECT_EQ(slowdown(), 0);
}

TEST_F(CoreTakenTest, ProfilesWithoutItAreCompleted) {
  const auto session = open_session(model(), settings_, control_);
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  keep(*session, 0, 0);
  const auto completed = open_session(model(), settings_, control_);
  ASSERT_TRUE(completed.ok()) << completed.error().to_string();
  const auto records = completed->store->all().value();
  EXPECT_TRUE(std::ranges::any_of(records, is_beside));
  for (const ProfileRecord& record : records) {
    ProfileKey alone = record.key;
    if (!is_beside(record)) continue;
    alone.target.resize(alone.target.size() - std::string(", a core taken").size());
    EXPECT_GE(record.median_us, completed->store->find(alone).value()->median_us);
  }
}

TEST_F(SessionTest, CancelledMeasuringGoesOnWithEstimates) {
  sink_.cancel_at("measuring units", control_.cancel);
  auto session = open_session(model(), settings_, control_);
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  EXPECT_FALSE(session->profiled.complete);
  const auto result = make_plan(*session, "heft", {}, {});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_TRUE(result->verified);
}

TEST_F(SessionTest, CancelledPlanningGivesTheBestSoFar) {
  settings_.cluster = open_cluster("preset:v100").value();
  auto session = open_session({.path = "zoo:nasnet-a-large", .import = {}}, settings_, control_);
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  EXPECT_FALSE(session->may_measure);
  sink_.cancel_at("planner local-search", control_.cancel);
  const auto result = make_plan(*session, "local-search", {.time_limit_s = 1000}, control_);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(result->stop, StopReason::kCancelled);
  // There is nothing to give of a search that does not begin.
  const auto none = make_plan(*session, "local-search", {}, control_);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), Code::kCancelled);
}

TEST_F(SessionTest, APlanFileNamesTheModelThatItIsFor) {
  settings_.measure = false;
  auto session = open_session(model(), settings_, control_);
  ASSERT_TRUE(session.ok());
  const auto result = make_plan(*session, "single", {}, control_);
  ASSERT_TRUE(result.ok());
  const PlanFile file = plan_file(session->problem, *result, 1);
  const auto loaded = load_model_of(file.problem, "plan.json");
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  EXPECT_EQ((*loaded)->file_hash(), session->loaded.model->file_hash());
  std::ofstream(folder_ / "model.onnx", std::ios::app | std::ios::binary) << "\x72\x02hi";
  const auto changed = load_model_of(file.problem, "plan.json");
  ASSERT_FALSE(changed.ok());
  EXPECT_THAT(changed.error().to_string(), HasSubstr("plan.json"));
}

TEST_F(SessionTest, OtherHardwareIsPlannedForFromTheFirstPlansDecisions) {
  settings_.cluster = open_cluster("preset:v100").value();
  auto session = open_session({.path = "zoo:resnet-18", .import = {}}, settings_, control_);
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  const std::vector<HardwareChange> changes = {{"the same", {}, settings_.cluster},
                                               {"other devices", {}, open_cluster("preset:a6000").value()}};
  const auto rows = replan(*session, changes, settings_, "heft", {}, control_);
  ASSERT_TRUE(rows.ok()) << rows.error().to_string();
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[0].what, "as it is");
  EXPECT_DOUBLE_EQ((*rows)[1].result.value_us, (*rows)[0].result.value_us);
  for (const Replanned& row : *rows) EXPECT_TRUE(row.result.verified) << row.what;
  const auto carried = carry_over((*rows)[0].problem, (*rows)[0].result.plan, (*rows)[1].problem);
  ASSERT_TRUE(carried.has_value());
  EXPECT_EQ(carried->segments.size(), (*rows)[0].result.plan.segments.size());
}

TEST(ClassFactors, AreOfTheRatesAtTheDevicesSpeeds) {
  using testing::ElementsAre;
  using testing::Pair;
  const auto cluster = open_cluster("preset:v100-hetero").value();
  EXPECT_THAT(class_factors(*cluster),
              ElementsAre(Pair("V100-1500MHz", 1), Pair("V100-135MHz", testing::DoubleEq(1500.0 / 135))));
}

// Hardware of two types, on which plans follow from the types alone, beside a GPU; the units' errors are made up.
Result<Session> session_of_two_types(const std::string& host_memory) {
  ProblemSettings settings;
  HEDDLE_ASSIGN_OR_RETURN(settings.cluster, parse_cluster_yaml(R"(name: types
hosts: [{name: server, memory: )" + host_memory + R"(}]
devices:
  - {name: cpu, kind: cpu, cores: "0", precisions: [f32, bf16], flops: 1e12, memory_bandwidth: 100GB/s}
  - {name: gpu, kind: gpu, memory: 16GiB, flops: 1e12, memory_bandwidth: 100GB/s}
links: [{from: server, to: gpu, bandwidth: 10GB/s}]
)",
                                                               "types.yaml"));
  HEDDLE_ASSIGN_OR_RETURN(Session session,
                          open_session({.path = "zoo:resnet-18", .import = {}}, settings, {}));
  auto choice = std::make_shared<PrecisionChoice>();
  choice->units.push_back({.op = OpId(0), .type = Precision::kBf16});
  session.problem.precision = std::move(choice);
  return session;
}

TEST(PlansOfTypes, DoNotStandForAPlannerThatFails) {
  auto session = session_of_two_types("64GiB");
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  const auto refused = make_plan(*session, "cold-search", {}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kUnsupported);
}

TEST(PlansOfTypes, ThatDoNotFitLeaveThePlannersPlan) {
  auto session = session_of_two_types("1MiB");
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  const auto result = make_plan(*session, "single", {}, {});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_TRUE(result->verified);
  for (const Segment& segment : result->plan.segments)
    EXPECT_EQ(session->cluster->device(segment.device).name, "gpu");
}

// A flow workload and the plan of it bring their whole problem; both are planned, and planned for other hardware.
TEST_F(SessionTest, FilesWithAWholeProblemArePlannedAsTheyAre) {
  const std::string path = folder_ / "flows.json";
  std::ofstream(path) << R"({"name": "flows", "devices": [{"id": 0, "memory": 8}, {"id": 1, "memory": 8}],
    "ops": [{"id": 0, "time": [15, 20], "memory": 3}, {"id": 1, "time": [10, 10], "memory": 3},
            {"id": 2, "time": [20, 22], "memory": 3}],
    "edges": [{"src": 0, "dst": 1, "flow": 3, "time": [[0, 5], [7, 0]]},
              {"src": 0, "dst": 2, "flow": 4, "time": [[0, 1], [1, 0]]}]})";
  ProblemSettings settings;
  auto session = open_session({.path = path, .import = {}}, settings, control_);
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  EXPECT_FALSE(session->may_measure);
  const auto result = make_plan(*session, "auto", {.time_limit_s = 1}, control_);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  const std::string plan = folder_ / "flows-plan.json";
  ASSERT_TRUE(write_plan_file(plan, plan_file(session->problem, *result, 1)).ok());
  const auto again = open_session({.path = plan, .import = {}}, settings, control_);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  const auto rows =
      replan(*again, {{"device1 x 2", {{.cluster = {.scale = "device1", .factor = 2}}}, nullptr}}, settings,
             "flow-search", {.time_limit_s = 1}, control_);
  ASSERT_TRUE(rows.ok()) << rows.error().to_string();
  EXPECT_DOUBLE_EQ((*rows)[0].result.value_us, result->value_us);
  EXPECT_LT((*rows)[1].result.value_us, result->value_us);
  settings.units = 2;
  EXPECT_FALSE(open_session({.path = plan, .import = {}}, settings, control_).ok());
}

TEST_F(SessionTest, SettingsThatCannotBeAreErrorsThatNameThem) {
  const auto refused = [&](const ModelSpec& spec) {
    const auto session = open_session(spec, settings_, control_);
    EXPECT_FALSE(session.ok());
    if (session.ok()) return std::string();
    EXPECT_EQ(session.error().code(), Code::kInvalidInput);
    return session.error().to_string();
  };
  const ModelSpec zoo{.path = "zoo:resnet-18", .import = {}};
  settings_.cluster = open_cluster("preset:v100").value();
  settings_.devices = {"gpu9"};
  EXPECT_THAT(refused(zoo), HasSubstr("device gpu9"));
  settings_.devices = {"gpu1"};
  settings_.host_access = true;
  EXPECT_THAT(refused(zoo), HasSubstr("host access"));
  settings_.host_access = false;
  settings_.simulation.emplace();
  EXPECT_THAT(refused(zoo), HasSubstr("simulation instances"));
  settings_.simulation.reset();
  settings_.stage_times = StageTimes::kSerial;
  EXPECT_THAT(refused(zoo), HasSubstr("stage"));
  settings_.stage_width = 2;
  settings_.stage_times = StageTimes::kMeasured;
  EXPECT_THAT(refused(zoo), HasSubstr("nothing can be measured"));
  ModelSpec batched = zoo;
  batched.import.batch = 2;
  EXPECT_THAT(refused(batched), HasSubstr("a batch size is about importing a model"));
  auto nameless = open_session(zoo, {}, control_);
  ASSERT_TRUE(nameless.ok()) << nameless.error().to_string();
  EXPECT_THAT(make_plan(*nameless, "hefd", {}, control_).error().to_string(), HasSubstr("'heft'"));
}

}  // namespace
}  // namespace heddle
