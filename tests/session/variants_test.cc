// Engines and precisions of a problem's devices, and plans that choose among them.
#include "heddle/cluster/variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "heddle/base/json.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/plan/checker.h"
#include "heddle/report/explain.h"
#include "heddle/runtime/backend.h"
#include "heddle/session/session.h"
#include "small_model.h"

namespace heddle {
namespace {

using testing::HasSubstr;

// Two ops that need nothing of each other. The first is faster with one engine, the second with the other.
constexpr const char* kFork = R"({"format": "heddle-graph", "version": 1, "name": "fork",
  "inputs": [{"name": "x", "dtype": "f32", "shape": [4]}],
  "ops": [
    {"name": "left", "type": "A", "inputs": ["x"], "outputs": [{"name": "l", "dtype": "f32", "shape": [4]}],
     "given_times": {"cpu": 10, "cpu+onnxruntime": 30}},
    {"name": "right", "type": "B", "inputs": ["x"], "outputs": [{"name": "r", "dtype": "f32", "shape": [4]}],
     "given_times": {"cpu": 30, "cpu+onnxruntime": 10}}],
  "outputs": ["l", "r"]})";
constexpr const char* kOneCore = R"(name: one
hosts: [{name: host}]
devices:
  - {name: cpu, kind: cpu, cores: "0", engines: [openvino, onnxruntime]}
)";

class VariantPlan : public test::SmallModelTest {
 protected:
  ModelSpec graph() const {
    const auto path = folder_ / "g.json";
    std::ofstream(path) << kFork;
    return {.path = path.string(), .import = {}};
  }
};

// The importer makes several ops of a Gemm, a product and a sum among them; ONNX Runtime runs the node only.
TEST_F(VariantPlan, UnitsAreWholeNodesIfOnnxRuntimeMayRunThem) {
  using namespace onnx_writer;
  const std::vector<float> weights(16, 0.5F);
  const auto path = folder_ / "gemm.onnx";
  std::ofstream(path, std::ios::binary) << onnx_writer::model(
      {{node("Gemm", {"x", "w", "b"}, {"m"}, "gemm"), node("Relu", {"m"}, {"y"}, "relu")},
       {value("x", {1, 4})},
       {value("y", {1, 4})},
       {float_tensor("w", {4, 4}, weights), float_tensor("b", {4}, {1, 2, 3, 4})}});
  const ModelSpec spec{.path = path.string(), .import = {}};
  settings_.coarsening = Coarsening::kNone;
  settings_.measure = false;
  const auto units = [&](const std::string& engines) {
    const std::string rates = "flops: 1TFLOPS, memory_bandwidth: 40GB/s, engines: [" + engines + "]";
    settings_.cluster = parse_cluster_yaml(
                            "name: one\nhosts: [{name: host}]\ndevices:\n"
                            "  - {name: cpu, kind: cpu, cores: \"0\", " +
                                rates + "}\n",
                            "c.yaml")
                            .value();
    const auto session = open_session(spec, settings_, {});
    EXPECT_TRUE(session.ok()) << session.error().to_string();
    return session->problem.graph->num_ops();
  };
  EXPECT_GT(units("openvino"), 2U);
  EXPECT_EQ(units("openvino, onnxruntime"), 2U);
}

TEST_F(VariantPlan, EachSegmentGetsTheFasterEngineAndNoneRunAtOnce) {
  settings_.cluster = parse_cluster_yaml(kOneCore, "c.yaml").value();
  auto session = open_session(graph(), settings_, {});
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  const auto result = make_plan(*session, "auto", {.time_limit_s = 2}, {});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_DOUBLE_EQ(result->value_us, 20);
  EXPECT_NEAR(result->bound.us, 20, 1e-6);
  EXPECT_TRUE(result->verified);
  const auto listed = make_plan(*session, "met", {.time_limit_s = 2}, {});
  ASSERT_TRUE(listed.ok()) << listed.error().to_string();
  EXPECT_DOUBLE_EQ(listed->value_us, 20);
  ASSERT_EQ(result->plan.segments.size(), 2U);
  EXPECT_NE(result->plan.segments[0].device, result->plan.segments[1].device);

  const auto explanation = explain(session->problem, result->plan, result->timeline, result->bound);
  ASSERT_EQ(explanation.variants.size(), 2U);
  for (const auto& choice : explanation.variants) {
    ASSERT_EQ(choice.times.size(), 2U);
    for (const auto& time : choice.times) EXPECT_DOUBLE_EQ(time.us, time.chosen ? 10 : 30);
  }
  EXPECT_THAT(explanation_text(explanation), HasSubstr("* 10"));
}

TEST_F(VariantPlan, HardwareIsNamedWithItsVariantsAndAVariantAlone) {
  settings_.cluster = parse_cluster_yaml(kOneCore, "c.yaml").value();
  settings_.devices = {"cpu"};
  EXPECT_EQ(open_session(graph(), settings_, {}).value().problem.usable_devices().size(), 2U);
  settings_.devices = {"cpu+onnxruntime"};
  EXPECT_EQ(open_session(graph(), settings_, {}).value().problem.usable_devices().size(), 1U);
}

TEST_F(VariantPlan, UnknownEnginesAndPrecisionsAreRefused) {
  settings_.variants.engines = {"openvin"};
  EXPECT_THAT(open_session(model(), settings_, {}).error().to_string(), HasSubstr("did you mean 'openvino'"));
  settings_.variants = {.engines = {}, .precisions = {"f8"}};
  EXPECT_THAT(open_session(model(), settings_, {}).error().to_string(), HasSubstr("expected 'f32'"));
}

TEST_F(VariantPlan, GraphsWithGivenTimesTakeNoEngine) {
  settings_.variants.engines = {"openvino"};
  EXPECT_THAT(open_session(graph(), settings_, {}).error().to_string(), HasSubstr("are for models"));
}

// bf16 and fp16 are here on some machines only.
TEST_F(VariantPlan, APrecisionIsPlannedIfTheDeviceHasItAndRefusedElse) {
  const auto here = open_cluster("preset:local").value();
  const auto engines = engines_of(*here);
  ASSERT_TRUE(engines.ok()) << engines.error().to_string();
  settings_.measure = false;
  settings_.devices = {here->devices()[0].name};
  for (const Precision precision : {Precision::kTf32, Precision::kBf16, Precision::kFp16}) {
    settings_.variants = {.engines = {"openvino"}, .precisions = {precision_name(precision)}};
    const bool has = std::any_of(engines->begin(), engines->end(), [&](const DeviceEngine& e) {
      return e.device == DeviceId(0) && e.engine == "openvino" &&
             std::find(e.precisions.begin(), e.precisions.end(), precision) != e.precisions.end();
    });
    const auto session = open_session(model(), settings_, {});
    ASSERT_EQ(session.ok(), has);
    if (has) {
      EXPECT_EQ(session->cluster->devices()[0].precision, precision);
    } else {
      EXPECT_EQ(session.error().code(), Code::kInvalidInput);
      EXPECT_THAT(session.error().to_string(), HasSubstr("in hardware"));
    }
  }
}

TEST_F(VariantPlan, ADeviceThatLacksAPrecisionIsNotOpened) {
  Device device = open_cluster("preset:local").value()->devices()[0];
  device.precision = Precision::kTf32;  // OpenVINO has it nowhere
  const auto opened = open_device(device);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), Code::kInvalidInput);
  EXPECT_THAT(opened.error().to_string(),
              HasSubstr("tf32, which openvino does not have in hardware here; it has '"));
}

TEST_F(VariantPlan, AutoIsWhatTheEngineTakesByItself) {
  const auto here = open_cluster("preset:local").value();
  const auto engines = engines_of(*here).value();
  const auto chosen =
      choose_variants(here, {.engines = {"openvino"}, .precisions = {"auto"}}, {here->devices()[0].name});
  ASSERT_TRUE(chosen.ok()) << chosen.error().to_string();
  EXPECT_EQ((*chosen)->devices()[0].precision, engines.front().precisions.front());
}

// Hardware that is not here takes its rate from the catalogue, and hands over what its type holds.
class AbsentCards : public test::SmallModelTest {
 protected:
  void SetUp() override {
    SmallModelTest::SetUp();
    settings_.coarsening = Coarsening::kNone;
  }
  Result<Session> open(const std::string& devices, std::vector<std::string> precisions,
                       const std::string& path = "") {
    const auto file = folder_ / "box.yaml";
    std::ofstream(file) << "name: box\nhosts: [{name: host}]\ndevices:\n" << devices;
    auto cluster = open_cluster(file.string());
    if (!cluster.ok()) return cluster.error();
    settings_.cluster = *cluster;
    settings_.variants.precisions = std::move(precisions);
    return open_session(path.empty() ? model() : ModelSpec{.path = path, .import = {}}, settings_, {});
  }
  static constexpr const char* kTwo = "  - {name: a, class: L4}\n  - {name: b, class: T4}\n";
};

TEST_F(AbsentCards, OnePrecisionHalvesWhatTravelsAndWhatIsStored) {
  for (const std::string& path : {std::string(), std::string("zoo:resnet-50")}) {
    const auto wide = open(kTwo, {}, path), narrow = open(kTwo, {"fp16"}, path);
    ASSERT_TRUE(wide.ok() && narrow.ok()) << narrow.error().to_string();
    const Problem &w = wide->problem, &n = narrow->problem;
    EXPECT_EQ(n.cluster->devices()[0].precision, Precision::kFp16);
    EXPECT_GT(n.cluster->devices()[0].peak_flops, w.cluster->devices()[0].peak_flops);
    EXPECT_EQ(2 * n.graph->total_param_bytes(), w.graph->total_param_bytes());
    for (size_t e = 0; e < n.graph->num_edges(); ++e)
      EXPECT_EQ(2 * n.graph->edges()[e].bytes, w.graph->edges()[e].bytes);
    EXPECT_LT(n.costs->us(OpId(0), DeviceId(0)), w.costs->us(OpId(0), DeviceId(0)));
    // On other hardware the sizes follow its types.
    EXPECT_EQ(with_cluster(*narrow, wide->cluster, settings_)->graph->total_param_bytes(),
              w.graph->total_param_bytes());
  }
}

TEST_F(AbsentCards, DevicesOfDifferentTypesHandOverFloat32) {
  const auto mixed = open("  - {name: a, class: L4, precision: fp16}\n  - {name: b, class: T4}\n", {});
  ASSERT_TRUE(mixed.ok()) << mixed.error().to_string();
  EXPECT_EQ(mixed->problem.graph->total_param_bytes(), mixed->loaded.graph->total_param_bytes());
}

TEST_F(AbsentCards, ATypeWithoutARateIsRefusedByName) {
  const auto expect_error = [&](const std::string& devices, std::vector<std::string> precisions,
                                const std::string& what) {
    const auto session = open(devices, std::move(precisions));
    ASSERT_FALSE(session.ok());
    EXPECT_THAT(session.error().to_string(), HasSubstr(what));
  };
  expect_error("  - {name: a, class: T4}\n", {"bf16"},
               "device 'a' does not compute in bf16: T4 has no such rate");
  expect_error("  - {name: a, class: L4, flops: 1TFLOPS}\n", {"fp16"}, "'a' has a rate of its own, for f32");
  expect_error(kTwo, {"f32", "fp16"}, "has one type in a plan");
}

}  // namespace
}  // namespace heddle
