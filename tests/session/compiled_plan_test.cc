// Plans that run with the caller's inputs, and changes of hardware by name.
#include "heddle/session/compiled_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/base/json.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/graph/generators.h"
#include "heddle/graph/graph_json.h"
#include "heddle/plan/cold_start.h"
#include "heddle/runtime/run.h"
#include "heddle/session/hardware_changes.h"
#include "small_model.h"

namespace heddle {
namespace {

using testing::HasSubstr;

class CompiledPlanTest : public test::SmallModelTest {
 protected:
  void SetUp() override {
    SmallModelTest::SetUp();
    settings_.coarsening = Coarsening::kNone;
    settings_.variants.precisions = {"f32"};  // whose outputs are compared
    auto opened = open_session(model(), settings_, {});
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    session_ = std::move(*opened);
    auto planned = make_plan(session_, "heft", {}, {});
    ASSERT_TRUE(planned.ok()) << planned.error().to_string();
    result_ = std::move(*planned);
  }

  Session session_;
  PlanResult result_;
};

TEST_F(CompiledPlanTest, OutputsAreTheUnsplitModelsOnTheSameInputs) {
  auto compiled = CompiledPlan::create(session_.problem, result_.plan, session_.loaded.model, {});
  ASSERT_TRUE(compiled.ok()) << compiled.error().to_string();
  EXPECT_TRUE((*compiled)->moves_data());
  for (const uint64_t seed : {1, 2}) {
    InputOptions options;
    options.seed = seed;
    const auto inputs = make_inputs(*session_.loaded.graph, options).value();
    const std::vector<TensorView> views = {inputs[0].view()};
    const auto request = (*compiled)->run(views, {});
    ASSERT_TRUE(request.ok()) << request.error().to_string();
    const auto expected = reference_outputs(*session_.loaded.model, inputs).value();
    ASSERT_EQ(request->outputs.size(), 1u);
    EXPECT_TRUE(compare_tensors(request->outputs[0].view(), expected[0].view(), 1e-3, 1e-5).equal);
    EXPECT_EQ(request->record.steps.size(), result_.plan.steps.size());
    EXPECT_GT(request->record.measured_us, 0);
    EXPECT_DOUBLE_EQ(request->record.predicted_us, result_.timeline.makespan_us);
  }
}

TEST_F(CompiledPlanTest, InputsThatDoNotFitAreNamed) {
  auto compiled = CompiledPlan::create(session_.problem, result_.plan, session_.loaded.model, {}).value();
  EXPECT_THAT(compiled->run({}, {}).error().to_string(), HasSubstr("got 0 inputs; the plan takes 1"));
  const TensorValue wide = make_tensor(DType::kF32, {1, 65}).value();
  const std::vector<TensorView> views = {wide.view()};
  const auto refused = compiled->run(views, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kInvalidInput);
  EXPECT_THAT(refused.error().to_string(), HasSubstr("'x' is f32 of shape 1x65; expected f32 of shape 1x64"));
}

// What is measured of whole segments also holds where other devices change.
TEST_F(CompiledPlanTest, OtherDevicesBecomeFasterAndThePlanStays) {
  for (const auto& device : session_.cluster->devices()) {
    const auto change = scaled_hardware(session_.problem, device.name, 2);
    ASSERT_TRUE(change.ok()) << change.error().to_string();
    const auto rows = replan(session_, {*change}, settings_, "heft", {}, {});
    ASSERT_TRUE(rows.ok()) << rows.error().to_string();
    EXPECT_LE((*rows)[1].result.value_us, (*rows)[0].result.value_us * (1 + 1e-9)) << device.name;
  }
}

TEST_F(CompiledPlanTest, ADeviceAsFastAsItIsKeepsItsMeasuredTimes) {
  const CostTable& before = *session_.problem.costs;
  for (size_t d = 0; d < session_.cluster->num_devices(); ++d) {
    const DeviceId id(d);
    const auto change = scaled_hardware(session_.problem, session_.cluster->device(id).name, 1);
    ASSERT_TRUE(change.ok()) << change.error().to_string();
    const auto same = with_edits(session_, change->edits, settings_);
    ASSERT_TRUE(same.ok()) << same.error().to_string();
    for (size_t u = 0; u < before.num_ops(); ++u) {
      EXPECT_EQ(same->costs->us(OpId(u), id), before.us(OpId(u), id));
      EXPECT_EQ(same->costs->at(OpId(u), id).origin, Origin::kMeasured);
    }
    for (const SegmentCost& segment : before.segments())
      EXPECT_EQ(same->costs->segment(segment.ops, segment.device).us, segment.cost.us);
  }
}

// Wide layers of ops whose times are given for the class of preset:v100.
class ChangesOfGpus : public test::SmallModelTest {
 protected:
  void SetUp() override {
    SmallModelTest::SetUp();
    const auto graph = generate_layered({.ops = 12,
                                         .layers = 3,
                                         .deps = 20,
                                         .transfer_share = 0,
                                         .min_transfer_us = 1,
                                         .device_class_factors = {{"V100", 1}}});
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    std::ofstream(folder_ / "g.json") << graph_to_json(**graph).dump();
    settings_.cluster = load_cluster("preset:v100").value();
  }
  Session open(const std::string& path = "g.json") {
    auto session = open_session(
        {.path = path.ends_with(".json") ? (folder_ / path).string() : path, .import = {}}, settings_, {});
    EXPECT_TRUE(session.ok()) << session.error().to_string();
    return session.ok() ? std::move(*session) : Session();
  }
  Problem after(const Session& session, const std::vector<Result<HardwareChange>>& changes) {
    std::vector<ProblemEdit> edits;
    for (const auto& change : changes) {
      EXPECT_TRUE(change.ok()) << change.error().to_string();
      edits.insert(edits.end(), change->edits.begin(), change->edits.end());
    }
    auto problem = with_edits(session, edits, settings_);
    EXPECT_TRUE(problem.ok()) << problem.error().to_string();
    return problem.ok() ? std::move(*problem) : Problem();
  }
  static double us(const Problem& problem, size_t op, const std::string& device) {
    return problem.costs->us(OpId(op), problem.cluster->find_device(device));
  }
};

TEST_F(ChangesOfGpus, AScaledOneHasItsGivenTimesInProportion) {
  const Session session = open();
  const Problem& before = session.problem;
  const Problem same = after(session, {scaled_hardware(before, "gpu1", 1)});
  const Problem changed = after(session, {scaled_hardware(before, "gpu1", 2), more_devices(before, "gpu1"),
                                          scaled_hardware(before, "gpu2", 0.5)});
  for (size_t op = 0; op < before.graph->num_ops(); ++op) {
    EXPECT_EQ(us(same, op, "gpu1"), us(before, op, "gpu1"));
    EXPECT_EQ(us(changed, op, "gpu1"), us(before, op, "gpu1") / 2);
    EXPECT_EQ(us(changed, op, "gpu1-more"), us(before, op, "gpu1") / 2);
    EXPECT_EQ(us(changed, op, "gpu2"), us(before, op, "gpu2") * 2);
    EXPECT_EQ(us(changed, op, "gpu3"), us(before, op, "gpu3"));
  }
}

TEST_F(ChangesOfGpus, AnAddedOneMayBeUsedAndARemovedOneNeedNotBeThere) {
  settings_.devices = {"gpu1", "gpu2"};
  const Session session = open();
  const auto rows =
      replan(session,
             {more_devices(session.problem, "gpu1").value(), more_devices(session.problem, "gpu3").value(),
              fewer_devices(session.problem, "gpu2").value()},
             settings_, "heft", {}, {});
  ASSERT_TRUE(rows.ok()) << rows.error().to_string();
  const Problem &one = (*rows)[1].problem, &unused = (*rows)[2].problem, &less = (*rows)[3].problem;
  EXPECT_EQ(one.usable_devices().size(), 3U);
  EXPECT_TRUE(one.may_use(one.cluster->find_device("gpu1-more")));
  EXPECT_LT((*rows)[1].result.value_us, (*rows)[0].result.value_us);
  EXPECT_EQ(unused.usable_devices().size(), 2U);
  EXPECT_EQ(less.usable_devices(), std::vector{less.cluster->find_device("gpu1")});
  const auto none =
      with_edits(session, {{.cluster = {.remove = "gpu1"}}, {.cluster = {.remove = "gpu2"}}}, settings_);
  EXPECT_THAT(none.error().to_string(), HasSubstr("no device is left"));
}

TEST_F(ChangesOfGpus, AnAddedOneRunsStagesAsTheOneItIsLike) {
  settings_.stage_width = 2;
  const auto whole = settings_.cluster;
  settings_.cluster = edit_cluster(*whole, {.remove = "gpu4"}).value();
  const Session session = open();
  const auto check = [&](const Problem& problem, const std::string& added) {
    const DeviceId id = problem.cluster->find_device(added);
    ASSERT_TRUE(id.valid());
    EXPECT_EQ(problem.costs->stage_model(id), kSimulatedStages);
    for (size_t op = 0; op < problem.graph->num_ops(); ++op)
      EXPECT_EQ(problem.costs->utilization(OpId(op), id), problem.graph->op(OpId(op)).utilization);
  };
  check(after(session, {more_devices(session.problem, "gpu1")}), "gpu1-more");
  check(with_cluster(session, whole, settings_).value(), "gpu4");
}

// What is read in place is read over the device's link, at the rate that the link has after the change.
TEST_F(ChangesOfGpus, EstimatesOfReadingInPlaceFollowTheLink) {
  settings_.objective = Objective::kColdLatency;
  settings_.host_access = true;
  const Session session = open("zoo:resnet-18");
  const Cluster& cluster = *session.cluster;
  const std::string link = cluster.link(cluster.load_route(DeviceId(0))->hops.front().link).name;
  const Problem changed = after(
      session, {scaled_hardware(session.problem, link, 0.25), scaled_hardware(session.problem, "gpu1", 2)});
  int slower = 0;
  for (size_t u = 0; u < changed.graph->num_ops(); ++u) {
    const OpId ops[] = {OpId(u)};
    const int64_t bytes = changed.graph->param_bytes(ops);
    if (bytes == 0) continue;
    const double in_place = changed.costs->host_access_us(ops[0], DeviceId(0));
    EXPECT_EQ(in_place, std::max(changed.costs->us(ops[0], DeviceId(0)),
                                 changed.cluster->load_route(DeviceId(0))->time_us(bytes)));
    slower += in_place > session.problem.costs->host_access_us(ops[0], DeviceId(0));
  }
  EXPECT_GT(slower, 0);
}

TEST(HardwareChanges, NameDevicesClassesAndLinks) {
  Problem problem;
  problem.cluster = load_cluster("preset:v100").value();
  EXPECT_EQ(more_devices(problem, "V100", 2)->edits.size(), 2u);
  EXPECT_EQ(more_devices(problem, "V100", 2)->what, "2 more V100");
  EXPECT_EQ(fewer_devices(problem, "gpu2")->what, "without gpu2");
  EXPECT_EQ(scaled_hardware(problem, "V100", 2)->edits.size(), 4u);
  EXPECT_EQ(scaled_hardware(problem, "memory", 0.5)->edits.size(), 1u);
  EXPECT_THAT(more_devices(problem, "V10").error().to_string(), HasSubstr("did you mean 'V100'"));
  EXPECT_THAT(fewer_devices(problem, "V100", 4).error().to_string(), HasSubstr("one must stay"));
  EXPECT_THAT(more_devices(problem, "V100", 0).error().to_string(), HasSubstr("expected 1 to 1000"));
  EXPECT_THAT(scaled_hardware(problem, "gpu1", -1).error().to_string(), HasSubstr("above 0"));
  EXPECT_THAT(scaled_hardware(problem, "transfers", 2).error().to_string(),
              HasSubstr("no such device or link"));
  // Two of one kind have names of their own.
  std::shared_ptr<const Cluster> cluster = problem.cluster;
  const HardwareChange two = more_devices(problem, "gpu1", 2).value();
  for (const auto& edit : two.edits) cluster = edit_cluster(*cluster, edit.cluster).value();
  EXPECT_TRUE(cluster->find_device("gpu1-more").valid());
  EXPECT_TRUE(cluster->find_device("gpu1-more2").valid());
}

}  // namespace
}  // namespace heddle
