// Types narrower than float32: what they cost, and plans that keep to a budget.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "heddle/base/random.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/cluster/variants.h"
#include "heddle/graph/model.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/plan_file.h"
#include "heddle/report/explain.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/mixed_model.h"
#include "heddle/runtime/run.h"
#include "heddle/session/session.h"
#include "small_model.h"
#include "wheel_file.h"

namespace heddle {
namespace {

using testing::HasSubstr;

std::vector<Precision> types_here() {
  const auto engines = engines_of(*open_cluster("preset:local").value()).value();
  for (const DeviceEngine& e : engines)
    if (e.engine == "openvino") return e.precisions;
  return {};
}
// The narrowest type of OpenVINO's CPU here; float32 on processors without one.
Precision narrow_here() {
  Precision narrow = Precision::kF32;
  for (const Precision p : types_here())
    if (rounding_of(p) > rounding_of(narrow)) narrow = p;
  return narrow;
}
#define SKIP_WITHOUT_NARROW_TYPE() \
  if (narrow_here() == Precision::kF32) GTEST_SKIP() << "this processor has float32 only"

TEST(Precision, RoundingsAreThoseOfTheTypes) {
  EXPECT_EQ(rounding_of(Precision::kBf16), 0x1p-8);
  EXPECT_EQ(rounding_of(Precision::kFp16), 0x1p-11);
  EXPECT_LT(rounding_of(Precision::kF32), rounding_of(Precision::kTf32));
}

TEST(Precision, AnErrorIsExplainedUpToTwiceTheUnsplitModels) {
  PrecisionError e;
  e.type = Precision::kBf16;
  e.plan = e.unsplit = {{{.output = "y", .largest = 0.5, .mean = 0.1}}, 1};
  e.plan.outputs[0].mean = 0.2;
  EXPECT_TRUE(e.explained());
  e.plan.outputs[0].mean = 0.21;
  EXPECT_FALSE(e.explained());
  e.roundings = 3;  // of a layer, by libtorch
  EXPECT_TRUE(e.explained());
  e.plan.outputs[0].mean = 0.61;
  EXPECT_FALSE(e.explained());
  e.unsplit = {};  // the CPU does not have the type
  EXPECT_FALSE(e.explained()) << "a lost output looks so";
  e.plan.outputs[0].mean = 0.05;
  EXPECT_TRUE(e.explained());
  e.type = Precision::kFp16;
  EXPECT_FALSE(e.explained()) << "more than 64 roundings";
  e.plan.outputs[0].mean = 0.03;
  EXPECT_TRUE(e.explained());
  e.plan.outputs[0].mean = INFINITY;
  EXPECT_FALSE(e.explained());
}

TEST(Precision, ErrorsComeBackFromJsonAsTheyWere) {
  PrecisionError e;
  e.type = Precision::kFp16;
  e.plan = {{{.output = "y",
              .largest = INFINITY,
              .mean = 0.25,
              .cosine = 0.5,
              .kind = DecisionKind::kThreshold,
              .decisions = 10,
              .agreeing = 9,
              .top5 = 5,
              .top5_agreeing = 4}},
            3};
  for (const char* kind : {"none", "argmax", "boxes", "detections", "values", "ctc", "threshold"}) {
    e.plan.outputs[0].kind = decision_kind_named(kind).value();
    const Json json = precision_error_json(e);
    const auto back = precision_error_from_json(JsonCursor(json, "e"));
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    EXPECT_EQ(precision_error_json(*back), json);
  }
  const Json json = precision_error_json(e);
  const auto back = precision_error_from_json(JsonCursor(json, "e"));
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ(back->plan.largest(), INFINITY);
  EXPECT_EQ(back->unsplit.samples, 0);
}

class Budget : public test::SmallModelTest {
 protected:
  // The products of the small model and its rectifier, each a unit.
  void SetUp() override {
    SmallModelTest::SetUp();
    settings_.coarsening = Coarsening::kNone;
    settings_.variants.budget = ErrorBudget();
    settings_.calibration.random = 2;
  }
  Result<Session> open(const std::string& devices = "") {
    if (!devices.empty()) settings_.devices = {devices};
    return open_session(model(), settings_, {});
  }
};

TEST_F(Budget, OfNothingLeavesFloat32) {
  settings_.variants.budget = ErrorBudget{.agreement = 1, .mean = 0};
  auto session = open();
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  const auto result = make_plan(*session, "auto", {.time_limit_s = 1}, {});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(narrowest_type(session->problem, result->plan), Precision::kF32);
  ASSERT_NE(session->problem.precision, nullptr);
  EXPECT_EQ(session->problem.precision->mean, 0);
  EXPECT_TRUE(session->problem.precision->holds());
}

TEST_F(Budget, ThatIsWideTakesWhatIsFastestAndSaysWhatItCosts) {
  SKIP_WITHOUT_NARROW_TYPE();
  settings_.variants.budget = ErrorBudget{.agreement = 0, .mean = 1};
  auto session = open();
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  EXPECT_TRUE(session->problem.precision->units.empty());  // nothing needed to be measured unit by unit
  const auto result = make_plan(*session, "auto", {.time_limit_s = 1}, {});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_TRUE(result->verified);
  EXPECT_GE(session->problem.precision->samples, 2);
}

TEST_F(Budget, BetweenTheUnitsErrorsLetsOnlySomeBeNarrow) {
  SKIP_WITHOUT_NARROW_TYPE();
  // What one product alone costs, found with a budget that nothing narrow keeps to.
  settings_.variants.budget = ErrorBudget{.agreement = 0, .mean = 1e-12};
  auto tight = open();
  ASSERT_TRUE(tight.ok()) << tight.error().to_string();
  std::vector<double> means;
  for (const auto& unit : tight->problem.precision->units)
    if (unit.mean > 0) means.push_back(unit.mean);
  ASSERT_GE(means.size(), 2U);
  const double least = *std::min_element(means.begin(), means.end());
  settings_.variants.budget = ErrorBudget{.agreement = 0, .mean = least * 1.001};
  auto session = open();
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  const auto& choice = *session->problem.precision;
  EXPECT_TRUE(std::ranges::any_of(choice.units, [](const auto& u) { return !u.allowed; }));
  for (const auto& unit : choice.units) {
    EXPECT_TRUE(unit.mean <= choice.most_mean || !unit.allowed);
    for (const DeviceId d : session->problem.usable_devices()) {
      if (session->problem.cluster->device(d).precision == unit.type && !unit.allowed) {
        EXPECT_EQ(session->problem.costs->us(unit.op, d), kImpossible);
      }
    }
  }
  const auto result = make_plan(*session, "auto", {.time_limit_s = 1}, {});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_TRUE(session->problem.precision->holds());

  // The file remembers it all, and the explanation names what stays in float32.
  const PlanFile file = plan_file(session->problem, *result, 1);
  const Json json = plan_to_json(file);
  const auto back = plan_from_json(JsonCursor(json, "plan"));
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ(plan_to_json(*back), json);
  const auto text = explanation_text(explain(file.problem, file.plan, file.predicted, file.bound));
  EXPECT_THAT(text, HasSubstr("Precision: "));
  EXPECT_THAT(text, HasSubstr("not in this type"));
}

TEST_F(Budget, ThatNoDeviceCanKeepIsInfeasibleWithTheLeastError) {
  SKIP_WITHOUT_NARROW_TYPE();
  const auto here = open_cluster("preset:local").value();
  std::vector<std::vector<Variant>> forced(here->num_devices());
  forced[0] = {{"openvino", narrow_here()}};
  settings_.cluster = with_variants(*here, forced).value();
  settings_.variants.budget = ErrorBudget{.agreement = 1, .mean = 1e-12};
  auto session = open(settings_.cluster->devices()[0].name);
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  const auto result = make_plan(*session, "auto", {.time_limit_s = 1}, {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Code::kInfeasible);
  EXPECT_THAT(result.error().to_string(), HasSubstr("the least that was reached is"));
}

TEST_F(Budget, ExcludesPrecisionsAndMakesSenseOnly) {
  settings_.variants.precisions = {"f32"};
  EXPECT_THAT(open().error().to_string(), HasSubstr("give no precision beside it"));
  settings_.variants.precisions.clear();
  settings_.variants.budget->agreement = 1.5;
  EXPECT_THAT(open().error().to_string(), HasSubstr("from 0 to 1"));
  settings_.variants.budget->agreement = 1;
  settings_.measure = false;
  EXPECT_THAT(open().error().to_string(), HasSubstr("on which errors can be measured"));
}

TEST_F(Budget, CanBeInterrupted) {
  Control control;
  control.cancel.cancel();
  const auto session = open_session(model(), settings_, control);
  EXPECT_TRUE(session.ok() || session.error().code() == Code::kCancelled);
}

// The default type is the engine's own; a cluster file may fix another.
TEST_F(Budget, WithoutOneDevicesComputeInTheEnginesOwnType) {
  settings_.variants = {};
  settings_.measure = false;
  const auto session = open();
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  EXPECT_EQ(session->cluster->devices()[0].precision, types_here().front());
  const std::string fixed = R"(name: one
hosts: [{name: host}]
devices:
  - {name: cpu, kind: cpu, cores: "0", backend: openvino, target: "openvino:CPU:1", precision: f32,
     flops: 1TFLOPS, memory_bandwidth: 40GB/s}
)";
  settings_.cluster = parse_cluster_yaml(fixed, "c.yaml").value();
  EXPECT_EQ(open()->cluster->devices()[0].precision, Precision::kF32);
  const Json json = cluster_to_json(*settings_.cluster);
  EXPECT_TRUE(cluster_from_json(JsonCursor(json, "c")).value()->devices()[0].fixed_precision);
}

class RealModel : public testing::Test {
 protected:
  static std::shared_ptr<const Model> load() {
    ImportOptions options;
    options.shapes = {{"x", {1, 3, 48, 320}}};
    const auto model =
        Model::load(wheel_file("rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"), options);
    EXPECT_TRUE(model.ok()) << model.error().to_string();
    return *model;
  }
  static Device cpu(Precision precision) {
    return as_variant(open_cluster("preset:local").value()->devices()[0], {"openvino", precision});
  }
};

TEST_F(RealModel, InPiecesIsTheUnsplitModelWhateverTheChoice) {
  const auto model = load();
  const Graph& graph = *model->graph();
  // Pieces along the topological order.
  std::vector<std::vector<OpId>> pieces;
  const auto order = graph.topological_order();
  for (size_t i = 0; i < order.size(); ++i) {
    if (i % 40 == 0) pieces.emplace_back();
    pieces.back().push_back(order[i]);
  }
  for (auto& piece : pieces) std::ranges::sort(piece);
  const Device devices[] = {cpu(Precision::kF32), cpu(narrow_here())};
  auto mixed = MixedModel::make(model, pieces, devices, {});
  ASSERT_TRUE(mixed.ok()) << mixed.error().to_string();
  const auto inputs = calibration_inputs(*model, {.folder = "", .random = 1}).value();
  const Samples samples = with_references(*model, inputs).value();
  ASSERT_TRUE((*mixed)->set_sample(inputs[0]).ok());
  const auto error_of = [&](const std::vector<uint8_t>& choice) {
    const auto outputs = (*mixed)->run(choice);
    EXPECT_TRUE(outputs.ok()) << outputs.error().to_string();
    return output_error(graph, *outputs, samples.expected[0]);
  };
  const std::vector<uint8_t> wide(pieces.size(), 0), all_narrow(pieces.size(), 1);
  EXPECT_LT(error_of(wide).largest(), 1e-4);
  const double narrow = error_of(all_narrow).mean();
  // One piece in the narrower type errs, and afterwards all is as before.
  std::vector<uint8_t> one = wide;
  one[pieces.size() / 2] = 1;
  EXPECT_LE(error_of(one).mean(), 2 * narrow + rounding_of(narrow_here()));
  EXPECT_LT(error_of(wide).largest(), 1e-4);
}

TEST_F(RealModel, OnRandomCutsOfMixedTypesIsRight) {
  const auto model = load();
  const auto here = open_cluster("preset:local").value();
  std::vector<std::vector<Variant>> variants(here->num_devices());
  for (size_t d = 0; d < variants.size(); ++d) {
    if (here->devices()[d].cores.empty()) continue;
    for (const Precision p : types_here()) variants[d].push_back({"openvino", p});
  }
  Problem problem;
  problem.cluster = with_variants(*here, variants).value();
  problem.graph = model->graph();
  problem.costs = std::make_shared<CostTable>(problem.graph->num_ops(), problem.cluster->num_devices());
  problem.model = ModelReference{model->path(), model->file_hash(), model->options().shapes, {}, 0};
  auto costs = std::make_shared<CostTable>(*problem.costs);
  std::vector<DeviceId> devices;
  for (size_t d = 0; d < problem.cluster->num_devices(); ++d) {
    if (problem.cluster->devices()[d].cores.empty()) continue;
    devices.emplace_back(d);
    for (size_t op = 0; op < problem.graph->num_ops(); ++op) costs->set(OpId(op), DeviceId(d), {.us = 1});
  }
  problem.costs = costs;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Random random(seed);
    Assignment a;
    const auto order = problem.graph->topological_order();
    a.order.assign(order.begin(), order.end());
    a.device.resize(order.size());
    a.segment.resize(order.size());
    // Runs of random length, each on a random device.
    for (size_t i = 0, segment = 0; i < order.size(); ++segment) {
      const auto end = std::min(order.size(), i + 1 + random.below(60));
      const DeviceId device = devices[random.below(devices.size())];
      for (; i < end; ++i) {
        a.device[order[i].index()] = device;
        a.segment[order[i].index()] = static_cast<int>(segment);
      }
    }
    const auto plan = build_plan(problem, a);
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    RunOptions options;
    options.warmups = 0;
    options.repeats = 1;
    options.inputs.seed = seed;
    const auto run = run_plan(problem, *plan, model, options);
    ASSERT_TRUE(run.ok()) << run.error().to_string();
    EXPECT_TRUE(run->outputs_equal) << seed << ": " << run->max_rel_error;
    EXPECT_TRUE(run->right()) << seed;
    EXPECT_EQ(run->precision.has_value(), narrowest_type(problem, *plan) != Precision::kF32);
  }
}

}  // namespace
}  // namespace heddle
