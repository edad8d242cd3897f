// Segments on ONNX Runtime's CPU, alone and beside OpenVINO's: the outputs equal those of the whole model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "heddle/base/own_cores.h"
#include "heddle/graph/model.h"
#include "heddle/graph/onnx_cut.h"
#include "heddle/plan/builder.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/executor.h"
#include "heddle/runtime/run.h"
#include "wheel_file.h"

namespace heddle {
namespace {

// 0: ONNX Runtime on the first core, 1: OpenVINO on the same core, 2: ONNX Runtime on two cores.
std::shared_ptr<const Cluster> mixed_devices() {
  ClusterBuilder builder("mixed");
  const HostId host = builder.add_host({.name = "here", .memory_bytes = 0});
  std::vector<int> cores = own_cores();
  if (cores.size() > 2) cores.resize(2);
  const auto add = [&](const std::string& name, const std::string& backend, std::vector<int> set) {
    Device device;
    device.name = name;
    device.kind = DeviceKind::kCpu;
    device.device_class = backend + std::to_string(set.size());
    device.host = host;
    device.backend = backend;
    device.backend_device = "CPU";
    device.target = backend + ":CPU:" + std::to_string(set.size());
    device.cores = std::move(set);
    builder.add_device(device);
  };
  add("ort0", "onnxruntime", {cores.front()});
  add("ov0", "openvino", {cores.front()});
  add("orts", "onnxruntime", cores);
  return builder.build().value();
}

struct MixedModel {
  std::shared_ptr<const Model> model;
  Problem problem;
};

std::optional<MixedModel> load_mixed(const std::string& name, const ImportOptions& options = {}) {
  const std::string path = wheel_model(name);
  if (path.empty()) return std::nullopt;
  MixedModel loaded{Model::load(path, options).value(), {}};
  loaded.problem.graph = loaded.model->graph();
  loaded.problem.cluster = mixed_devices();
  auto costs = std::make_shared<CostTable>(loaded.problem.graph->num_ops(), 3);
  for (size_t op = 0; op < loaded.problem.graph->num_ops(); ++op)
    for (size_t d = 0; d < 3; ++d)
      costs->set(OpId(op), DeviceId(d), {.us = 10, .origin = Origin::kGiven, .rel_spread = 0});
  loaded.problem.costs = costs;
  return loaded;
}

// Places at which the topological order can be cut so that every tensor that crosses is a value of the file.
std::vector<size_t> node_boundaries(const std::shared_ptr<const Model>& model) {
  const OnnxParts& parts = *model->onnx_parts().value();
  const Graph& graph = *model->graph();
  const auto order = graph.topological_order();
  std::vector<size_t> found;
  std::set<TensorId> crossing;
  for (size_t i = 0; i < order.size(); ++i) {
    for (const TensorId output : graph.op(order[i]).outputs) crossing.insert(output);
    std::erase_if(crossing, [&](TensorId tensor) {
      const auto consumers = graph.tensor(tensor).consumers;
      return std::all_of(consumers.begin(), consumers.end(), [&](OpId reader) {
        return graph.topological_position(reader) <= static_cast<int>(i);
      });
    });
    if (std::all_of(crossing.begin(), crossing.end(), [&](TensorId tensor) { return parts.has(tensor); }))
      found.push_back(i + 1);
  }
  return found;
}

// Segments of about the same number of boundaries, on the devices in turns.
Assignment cut_in_turns(const std::shared_ptr<const Model>& model, size_t segments,
                        const std::vector<int>& devices) {
  const Graph& graph = *model->graph();
  const auto order = graph.topological_order();
  const auto places = node_boundaries(model);
  EXPECT_GT(places.size(), segments);
  Assignment a;
  a.order.assign(order.begin(), order.end());
  a.device.resize(order.size());
  a.segment.resize(order.size());
  for (size_t i = 0, segment = 0; i < order.size(); ++i) {
    while (segment + 1 < segments && i >= places[(segment + 1) * places.size() / segments]) ++segment;
    a.segment[order[i].index()] = static_cast<int>(segment);
    a.device[order[i].index()] = DeviceId(devices[segment % devices.size()]);
  }
  return a;
}

void expect_equal_outputs(const MixedModel& loaded, size_t segments, const std::vector<int>& devices) {
  const auto plan = build_plan(loaded.problem, cut_in_turns(loaded.model, segments, devices));
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  const auto record = run_plan(loaded.problem, *plan, loaded.model, {.warmups = 1, .repeats = 2});
  ASSERT_TRUE(record.ok()) << record.error().to_string();
  EXPECT_TRUE(record->verified);
  EXPECT_TRUE(record->outputs_equal) << segments << " segments: " << record->max_abs_error;
  EXPECT_LT(record->max_abs_error, 1e-4);
}

TEST(OnnxRuntime, WholeModelsAndCutsEqualOpenVinos) {
  // SqueezeNet is left out: its constant weights make equal classes, and rounding alone decides between them.
  for (const char* name : {"light_inception_v1.onnx", "light_shufflenet.onnx"}) {
    SCOPED_TRACE(name);
    const auto loaded = load_mixed(name);
    if (!loaded) GTEST_SKIP() << "the wheel onnx is not in .venv";
    expect_equal_outputs(*loaded, 1, {2});
    expect_equal_outputs(*loaded, 3, {0});
    expect_equal_outputs(*loaded, 6, {0, 2});
  }
}

TEST(OnnxRuntime, SegmentsAlternateWithOpenVinosOnTheSameAndOnOtherCores) {
  const auto loaded = load_mixed("light_shufflenet.onnx");
  if (!loaded) GTEST_SKIP() << "the wheel onnx is not in .venv";
  expect_equal_outputs(*loaded, 4, {1, 0});
  expect_equal_outputs(*loaded, 5, {1, 2});
}

TEST(OnnxRuntime, TrainedModelsEqualTheWholeModel) {
  const auto loaded = load_mixed("ch_ppocr_mobile_v2.0_cls_infer.onnx", {.shapes = {{"x", {1, 3, 48, 192}}}});
  if (!loaded) GTEST_SKIP() << "the wheel rapidocr-onnxruntime is not in .venv";
  expect_equal_outputs(*loaded, 1, {0});
  expect_equal_outputs(*loaded, 4, {0, 1});
}

TEST(OnnxRuntime, EverySlotHasItsOwnTensors) {
  const auto loaded = load_mixed("light_shufflenet.onnx");
  if (!loaded) GTEST_SKIP() << "the wheel onnx is not in .venv";
  const Graph& graph = *loaded->problem.graph;
  const Plan plan = build_plan(loaded->problem, cut_in_turns(loaded->model, 3, {0, 1})).value();
  auto executor = Executor::create(loaded->problem, plan, loaded->model, {.in_flight = 3});
  ASSERT_TRUE(executor.ok()) << executor.error().to_string();
  constexpr int kRequests = 6;
  std::vector<std::vector<TensorValue>> inputs, expected;
  for (uint64_t k = 0; k < kRequests; ++k) {
    inputs.push_back(make_inputs(graph, {.seed = k + 1}).value());
    expected.push_back(reference_outputs(*loaded->model, inputs.back()).value());
  }
  std::vector<char> equal(kRequests, 0);
  const auto result =
      (*executor)->run_stream({.requests = kRequests,
                               .fill =
                                   [&](int64_t request, int slot) {
                                     const TensorValue& value = inputs[static_cast<size_t>(request)][0];
                                     std::memcpy((*executor)->inputs(slot)[0].data, value.data.get(),
                                                 static_cast<size_t>(value.bytes));
                                   },
                               .done =
                                   [&](const RequestTiming& t) {
                                     const auto request = static_cast<size_t>(t.request);
                                     equal[request] = compare_tensors((*executor)->outputs(t.slot)[0],
                                                                      expected[request][0].view(), 1e-3, 1e-5)
                                                          .equal;
                                   }});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(std::count(equal.begin(), equal.end(), 1), kRequests);
}

TEST(OnnxRuntime, AProviderThatIsNotThereIsRefusedInOneLine) {
  Device device;
  device.name = "gpu0";
  device.backend = "onnxruntime";
  device.backend_device = "CUDA";
  const auto opened = open_device(device);
  ASSERT_FALSE(opened.ok());
  const std::string text = opened.error().to_string();
  EXPECT_NE(text.find("device 'gpu0' asks ONNX Runtime for 'CUDA'; expected 'CPU'"), std::string::npos)
      << text;
  EXPECT_NE(text.find("CPUExecutionProvider"), std::string::npos) << text;
}

TEST(OnnxRuntime, ASegmentThatEndsInsideANodeNamesTheNode) {
  const auto loaded = load_mixed("light_shufflenet.onnx");
  if (!loaded) GTEST_SKIP() << "the wheel onnx is not in .venv";
  const Graph& graph = *loaded->model->graph();
  const auto opened = loaded->model->onnx_parts();
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  const OnnxParts* const parts = *opened;
  for (size_t i = 0; i < graph.num_ops(); ++i) {
    const auto& op = graph.op(OpId(i));
    const TensorId output = op.outputs[0];
    if (parts->has(output)) continue;
    const auto cut = parts->cut(op.inputs, op.outputs);
    ASSERT_FALSE(cut.ok());
    EXPECT_NE(cut.error().to_string().find("ends at tensor"), std::string::npos) << cut.error().to_string();
    EXPECT_NE(cut.error().to_string().find(op.onnx_names.front()), std::string::npos)
        << cut.error().to_string();
    return;
  }
  FAIL() << "the importer split no node";
}

TEST(OnnxRuntime, RefusesNothingOfAModelThatItRuns) {
  const auto loaded = load_mixed("light_shufflenet.onnx");
  if (!loaded) GTEST_SKIP() << "the wheel onnx is not in .venv";
  const auto refusals =
      find_backend("onnxruntime")->refusals(loaded->problem.cluster->device(DeviceId(0)), *loaded->model);
  ASSERT_EQ(refusals.size(), loaded->model->graph()->num_ops());
  for (const auto& refusal : refusals) EXPECT_FALSE(refusal) << refusal->to_string();
}

}  // namespace
}  // namespace heddle
