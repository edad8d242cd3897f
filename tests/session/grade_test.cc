// Placements of other tools: read, graded, written and read again.
#include "heddle/session/grade.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <openvino/openvino.hpp>
#include <random>
#include <set>

#include "heddle/base/json.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/cluster/variants.h"
#include "heddle/graph/zoo.h"
#include "heddle/plan/checker.h"
#include "heddle/runtime/run.h"
#include "small_model.h"

namespace heddle {
namespace {

using testing::HasSubstr;

std::shared_ptr<const Cluster> four_gpus() { return load_cluster("preset:v100").value(); }

std::string error_of(const std::string& text, const Graph& graph,
                     std::optional<PlacementFormat> format = {}) {
  const auto placement = parse_placement(text, format, graph, *four_gpus());
  EXPECT_FALSE(placement.ok());
  return placement.ok() ? "" : placement.error().to_string();
}

std::vector<size_t> devices_in(const std::string& text, const Graph& graph,
                               std::optional<PlacementFormat> format = {}) {
  const auto placement = parse_placement(text, format, graph, *four_gpus());
  EXPECT_TRUE(placement.ok()) << placement.error().to_string();
  std::vector<size_t> devices;
  if (placement.ok())
    for (const DeviceId device : placement->device) devices.push_back(device.index());
  return devices;
}

// Two branches, and ops whose names nest.
std::shared_ptr<const Graph> nested() {
  GraphBuilder builder("nested");
  const TensorId x = builder.add_input("x", DType::kF32, {4});
  const auto add = [&](const std::string& name, const std::vector<TensorId>& inputs) {
    Op op;
    op.name = name;
    op.type = "A";
    op.inputs = inputs;
    op.given_times = {{"*", 10}};
    const OpId id = builder.add_op(op, {{.name = name + ":0", .shape = {4}, .consumers = {}}});
    return builder.outputs_of(id)[0];
  };
  const TensorId a = add("/body/left/conv", {x}), b = add("/body/right/conv", {x});
  const TensorId sum = add("/body/add", {a, b});
  builder.add_output(add("/head", {sum}));
  return builder.build().value();
}

TEST(Placements, TheLongestPrefixCounts) {
  const auto graph = nested();
  EXPECT_EQ(devices_in(R"({"": "gpu4", "body": 1, "body.left": "gpu1", "/body/add": "gpu3"})", *graph),
            (std::vector<size_t>{0, 1, 2, 3}));
  // A prefix ends at a border of the name.
  EXPECT_THAT(error_of(R"({"": 0, "bod": 1})", *graph), HasSubstr("no op 'bod'"));
  EXPECT_EQ(devices_in(R"({"body": 2, "head": 1})", *graph), (std::vector<size_t>{2, 2, 2, 1}));
}

TEST(Placements, MistakesSayWhereAndWhat) {
  const auto graph = nested();
  EXPECT_THAT(error_of(R"({"body": 0})", *graph), HasSubstr("1 op without a device, first '/head'"));
  EXPECT_THAT(error_of(R"({"": "gpu9"})", *graph), HasSubstr("no such device"));
  EXPECT_THAT(error_of(R"({"": 4})", *graph), HasSubstr("there is no device 4; the cluster has 4 devices"));
  EXPECT_THAT(error_of(R"({"": "disk"})", *graph), HasSubstr("weights on disk"));
  EXPECT_THAT(error_of(R"({"": 1.5})", *graph), HasSubstr("expected a device's name or number"));
  EXPECT_THAT(error_of(R"({"body/add": 1, "body.add": 2, "": 0})", *graph), HasSubstr("was given twice"));
  EXPECT_THAT(error_of("{\"\": ", *graph), HasSubstr("line"));
  EXPECT_THAT(error_of("", *graph), HasSubstr(""));
  EXPECT_THAT(error_of("[1, \"x\"]", *graph), HasSubstr("expected an object"));
  EXPECT_THAT(error_of(R"({"/head": 0})", *graph, PlacementFormat::kOpenVino),
              HasSubstr("3 ops without a device"));
  EXPECT_THAT(error_of(R"({"cuts": ["/body/add"], "devices": [0]})", *graph),
              HasSubstr("1 cut need 2 devices, but there are 1"));
  EXPECT_THAT(error_of(R"({"cuts": ["/body/sum"], "devices": [0, 1]})", *graph),
              HasSubstr("no op '/body/sum'"));
  EXPECT_THAT(error_of("3,1", *graph), HasSubstr("no layers in a row"));
  EXPECT_THAT(error_of(R"({"segments": [{"device": 0}]})", *graph), HasSubstr("\"ops\""));
}

// Whatever is in the file, the answer is a placement of every op or an error.
TEST(Placements, BrokenTextsAreErrors) {
  const auto graph = build_zoo_graph("gpt2", {}).value();
  const auto cluster = four_gpus();
  const std::string texts[] = {R"({"": "gpu4", "layer1": 1, "layer0.attend": "cpu"})",
                               R"({"cuts": ["layer6.sum2"], "devices": [0, "gpu2"]})",
                               R"({"segments": [{"device": 0, "ops": ["embedding"]}]})",
                               "3,1.5e3",
                               "7,5",
                               R"({"tensor_split": [1, 0.25]})",
                               R"({"layer_partition": [6, 6]})"};
  std::mt19937_64 random(11);
  int placements = 0, errors = 0;
  for (const std::string& text : texts) {
    for (int i = 0; i < 300; ++i) {
      std::string broken = text;
      for (uint64_t edits = random() % 4; edits-- > 0 && !broken.empty();) {
        const size_t at = random() % broken.size();
        if (random() % 3 == 0)
          broken.resize(at);
        else if (random() % 2 == 0)
          broken[at] = static_cast<char>(random());
        else
          broken.insert(at, 1, "{}[]\",:0-9.e"[random() % 13]);
      }
      const auto placement = parse_placement(broken, {}, *graph, *cluster);
      ++(placement.ok() ? placements : errors);
      if (!placement.ok()) continue;
      ASSERT_EQ(placement->device.size(), graph->num_ops());
      for (const DeviceId device : placement->device) ASSERT_LT(device.index(), cluster->num_devices());
    }
  }
  EXPECT_GT(placements, 0);
  EXPECT_GT(errors, 0);
}

TEST(Placements, CutsFollowTheData) {
  EXPECT_EQ(devices_in(R"({"cuts": ["/body/add"], "devices": ["gpu1", "gpu3"]})", *nested()),
            (std::vector<size_t>{0, 0, 0, 2}));
}

class Layered : public testing::Test {
 protected:
  Layered() : graph_(build_zoo_graph("gpt2", {}).value()), layers_(find_layers(*graph_).value()) {}

  // The number of layers on each device, by the layers' own ops.
  std::vector<int> counts(const std::vector<size_t>& devices) const {
    std::vector<std::set<int>> layers(4);
    for (size_t i = 0; i < devices.size(); ++i)
      if (layers_.of_op[i] < layers_.count) layers[devices[i]].insert(layers_.of_op[i]);
    std::vector<int> sizes;
    for (const auto& of : layers) sizes.push_back(static_cast<int>(of.size()));
    return sizes;
  }

  std::shared_ptr<const Graph> graph_;
  Layers layers_;
};

TEST_F(Layered, LayersAreFoundByTheirNumbers) {
  EXPECT_EQ(layers_.count, 12);
  EXPECT_EQ(layers_.prefix, "layer");
  const Graph& g = *graph_;
  EXPECT_EQ(layers_.of_op[g.find_op("embedding").index()], 0);
  EXPECT_EQ(layers_.of_op[g.find_op("logits").index()], 12);
  for (const Edge& edge : g.edges())
    EXPECT_LE(layers_.of_op[edge.src.index()], layers_.of_op[edge.dst.index()]);
}

TEST_F(Layered, VllmAndLlamaCppShareLayersOut) {
  EXPECT_EQ(counts(devices_in("7,5", *graph_)), (std::vector<int>{7, 5, 0, 0}));
  EXPECT_EQ(counts(devices_in("2,0,6,4", *graph_)), (std::vector<int>{2, 0, 6, 4}));
  // 13 layers with the output: 3/4 of them are below 9.75.
  EXPECT_EQ(counts(devices_in("3,1", *graph_)), (std::vector<int>{10, 2, 0, 0}));
  EXPECT_EQ(counts(devices_in(R"({"tensor_split": [1, 1, 1, 1]})", *graph_)), (std::vector<int>{4, 3, 3, 2}));
  EXPECT_THAT(error_of(R"({"layer_partition": [7, 4]})", *graph_),
              HasSubstr("add up to 11; the model has 12 layers ('layer0' to 'layer11')"));
  EXPECT_THAT(error_of("1,1,1,1,1", *graph_), HasSubstr("5 numbers for 4 devices"));
  EXPECT_THAT(error_of("0,0", *graph_), HasSubstr("all 0"));
}

TEST_F(Layered, EachFormatIsReadAsItWasWritten) {
  ProblemSettings settings;
  settings.cluster = four_gpus();
  settings.coarsening = Coarsening::kNone;
  const SearchSettings search{.time_limit_s = 1};
  const auto graded =
      grade({.path = "zoo:gpt2", .import = {}}, nullptr, "4,2,6", {}, settings, "heft", search, {});
  ASSERT_TRUE(graded.ok()) << graded.error().to_string();
  EXPECT_EQ(graded->placement.format, PlacementFormat::kVllm);
  const PlanFile file = plan_file(graded->session.problem, graded->graded, 1);
  for (const auto format : {PlacementFormat::kDeviceMap, PlacementFormat::kCuts, PlacementFormat::kLlamaCpp,
                            PlacementFormat::kVllm, PlacementFormat::kJson}) {
    const auto text = placement_text(file, *graph_, format);
    ASSERT_TRUE(text.ok()) << placement_format_name(format) << ": " << text.error().to_string();
    const auto again = parse_placement(*text, format, *graph_, *settings.cluster);
    ASSERT_TRUE(again.ok()) << placement_format_name(format) << ": " << again.error().to_string();
    EXPECT_EQ(again->device, graded->placement.device) << placement_format_name(format) << ": " << *text;
  }
  EXPECT_THAT(placement_text(file, *graph_, PlacementFormat::kOpenVino).error().to_string(),
              HasSubstr("is not OpenVINO's"));
}

TEST_F(Layered, WhatAFormatCannotSayIsNamed) {
  ProblemSettings settings;
  settings.cluster = four_gpus();
  const SearchSettings search{.time_limit_s = 1};
  // Layer 0 is split.
  const auto graded = grade({.path = "zoo:gpt2", .import = {}}, nullptr, R"({"": 0, "layer0.norm1": 1})",
                            PlacementFormat::kDeviceMap, settings, "heft", search, {});
  ASSERT_TRUE(graded.ok()) << graded.error().to_string();
  PlanFile file = plan_file(graded->session.problem, graded->graded, 1);
  const auto text = placement_text(file, *graph_, PlacementFormat::kVllm);
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.error().to_string(), HasSubstr("layer 0 is on gpu"));
  file.plan.lane_shares = {0.5, 0.5};
  EXPECT_THAT(placement_text(file, *graph_, PlacementFormat::kDeviceMap).error().to_string(),
              HasSubstr("lanes"));
}

TEST(Grades, AreOfThePlacementAndNeverBetterThanTheBest) {
  ProblemSettings settings;
  settings.cluster = four_gpus();
  const SearchSettings search{.time_limit_s = 1};
  for (const char* text : {R"({"": "gpu2"})", R"({"": "gpu2", "5b": "gpu1"})"}) {
    const auto graded =
        grade({.path = "zoo:inception-v3", .import = {}}, nullptr, text, {}, settings, "auto", search, {});
    ASSERT_TRUE(graded.ok()) << graded.error().to_string();
    const Problem& problem = graded->session.problem;
    EXPECT_TRUE(check(problem, graded->graded.plan, graded->graded.timeline, graded->graded.bound.us).ok());
    EXPECT_TRUE(check(problem, graded->best.plan, graded->best.timeline, graded->best.bound.us).ok());
    EXPECT_LE(graded->best.value_us, graded->graded.value_us);
    EXPECT_GE(graded->graded.value_us, graded->graded.bound.us * (1 - 1e-9));
    for (const Segment& segment : graded->graded.plan.segments) {
      for (const OpId op : finest_ops(*problem.graph, segment.ops))
        EXPECT_EQ(segment.device, graded->placement.device[op.index()]);
    }
  }
}

class GradedModel : public test::SmallModelTest {};

// Measured on this machine; a placement on one core is one segment, whose time is measured as a whole.
TEST_F(GradedModel, APlacementOnOneDeviceIsThatDevicesPlan) {
  const auto cluster = open_cluster("preset:local").value();
  const std::string name = cluster->devices().back().name;
  const auto graded =
      grade(model(), nullptr, R"({"": ")" + name + "\"}", {}, settings_, "auto", {.time_limit_s = 1}, {});
  ASSERT_TRUE(graded.ok()) << graded.error().to_string();
  for (const Segment& segment : graded->graded.plan.segments)
    EXPECT_EQ(hardware_name(graded->session.cluster->device(segment.device).name), name);
  EXPECT_LE(graded->best.value_us, graded->graded.value_us);
}

// OpenVINO's own plugin for several devices takes the affinities, and its outputs are those of the model.
TEST_F(GradedModel, HeteroTakesTheAffinities) {
  auto session = open_session(model(), settings_, {}).value();
  const auto result = make_plan(session, "single", {}, {}).value();
  const auto text = placement_text(plan_file(session.problem, result, 1), *session.loaded.graph,
                                   PlacementFormat::kOpenVino);
  ASSERT_TRUE(text.ok()) << text.error().to_string();
  const Json affinities = parse_json(*text).value();
  const auto whole = session.loaded.model->whole()->clone();
  size_t taken = 0;
  for (const auto& node : whole->get_ops()) {
    const auto at = affinities.find(node->get_friendly_name());
    taken += at != affinities.end() ? 1 : 0;
    // Inputs, outputs and constants follow; OpenVINO wants an affinity on every node.
    node->get_rt_info()["affinity"] = at != affinities.end() ? at->get<std::string>() : "CPU";
  }
  EXPECT_EQ(taken, affinities.size());
  ov::Core core;
  auto request = core.compile_model(whole, "HETERO:CPU", ov::hint::inference_precision(ov::element::f32))
                     .create_infer_request();
  const auto inputs = make_inputs(*session.loaded.graph).value();
  const ov::Tensor in(ov::element::f32, {1, 64}, inputs[0].data.get());
  request.set_input_tensor(in);
  request.infer();
  const auto expected = reference_outputs(*session.loaded.model, inputs).value();
  auto out = request.get_output_tensor();
  const TensorView got{
      DType::kF32, {1, 32}, reinterpret_cast<std::byte*>(out.data<float>()), expected[0].bytes};
  EXPECT_TRUE(compare_tensors(got, expected[0].view(), 1e-3, 1e-5).equal);
}

}  // namespace
}  // namespace heddle
