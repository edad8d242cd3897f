// Plans that run with the caller's inputs, and changes of hardware by name.
#include "heddle/session/compiled_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/cluster/cluster_yaml.h"
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
