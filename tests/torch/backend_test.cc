// Real models on the backend torch: cut and placed, split where memory forces it, refused where they cannot
// run.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/evaluator.h"
#include "heddle/runtime/capability.h"
#include "heddle/runtime/run.h"
#include "torch/support.h"

namespace heddle {
namespace {

struct TorchProblem {
  std::shared_ptr<const Model> model;
  Problem problem;
};

// Accelerators with memories of their own, all of them libtorch's CPU; every op takes as long as its weight.
Result<TorchProblem> torch_problem(const std::string& path, int devices, int64_t memory_bytes,
                                   const ImportOptions& options = {}, const std::string& where = "cpu",
                                   Objective objective = Objective::kLatency) {
  TorchProblem result;
  HEDDLE_ASSIGN_OR_RETURN(result.model, Model::load(path, options));
  ClusterBuilder builder("accelerators");
  const HostId host = builder.add_host({.name = "here", .memory_bytes = 0});
  for (int d = 0; d < devices; ++d) {
    Device device;
    device.name = "torch" + std::to_string(d);
    device.kind = DeviceKind::kGpu;
    device.device_class = "torch";
    device.host = host;
    device.memory_bytes = memory_bytes;
    device.backend = "torch";
    device.backend_device = where;
    const DeviceId id = builder.add_device(device);
    builder.add_link({.a = builder.host_node(host), .b = builder.device_node(id), .bytes_per_s = 1e10});
  }
  HEDDLE_ASSIGN_OR_RETURN(result.problem.cluster, builder.build());
  result.problem.graph = result.model->graph();
  result.problem.objective = objective;
  const Graph& graph = *result.problem.graph;
  CostTable costs(graph.num_ops(), static_cast<size_t>(devices));
  for (size_t op = 0; op < graph.num_ops(); ++op) {
    for (int d = 0; d < devices; ++d)
      costs.set(OpId(op), DeviceId(d),
                {.us = 1 + graph.op(OpId(op)).flops / 1e6, .origin = Origin::kGiven, .rel_spread = 0});
  }
  HEDDLE_RETURN_IF_ERROR(
      forbid_refused(*result.model, graph, *result.problem.cluster, result.problem.usable_devices(), costs));
  result.problem.costs = std::make_shared<const CostTable>(std::move(costs));
  return result;
}

// Pieces of a topological order, in turns on the devices.
Assignment in_turns(const Graph& graph, size_t pieces, int devices) {
  Assignment a;
  const auto order = graph.topological_order();
  a.order.assign(order.begin(), order.end());
  a.device.resize(order.size());
  a.segment.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t piece = i * pieces / order.size();
    a.segment[order[i].index()] = static_cast<int>(piece);
    a.device[order[i].index()] = DeviceId(static_cast<int>(piece) % devices);
  }
  return a;
}

// Several requests, so that segments are captured and launched as graphs too.
void expect_equal_in_pieces(const std::string& path, const ImportOptions& options = {},
                            const std::string& where = "cpu", Objective objective = Objective::kLatency) {
  ASSERT_TRUE(std::filesystem::exists(path)) << path << ": run make setup";
  const auto given = torch_problem(path, 2, 0, options, where, objective);
  ASSERT_TRUE(given.ok()) << given.error().to_string();
  const auto plan = build_plan(given->problem, in_turns(*given->problem.graph, 5, 2));
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  const auto record = run_plan(given->problem, *plan, given->model, {.warmups = 3, .repeats = 1});
  ASSERT_TRUE(record.ok()) << record.error().to_string();
  EXPECT_TRUE(record->verified);
  EXPECT_TRUE(record->outputs_equal) << record->max_rel_error;
}

class TorchLight : public testing::TestWithParam<const char*> {};

TEST_P(TorchLight, InPiecesEqualsTheUnsplitModel) {
  expect_equal_in_pieces(std::string(HEDDLE_CORPUS) + "/light/test_" + GetParam() + "/model.onnx");
}

// Without squeezenet: its made-up weights give 1,000 equal numbers of 4.9e9 to the last softmax, so that the
// outputs hang on their last bits, which differ from processor to processor.
INSTANTIATE_TEST_SUITE_P(Light, TorchLight,
                         testing::Values("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2",
                                         "resnet50", "shufflenet", "vgg19", "zfnet512"),
                         [](const auto& param) { return std::string(param.param); });

TEST(TorchCold, ParametersComeByTheirLoads) {
  expect_equal_in_pieces(std::string(HEDDLE_CORPUS) + "/light/test_shufflenet/model.onnx", {}, "cpu",
                         Objective::kColdLatency);
}

TEST(TorchOcr, TrainedModelsInPiecesEqualTheUnsplitModel) {
  const std::string folder = HEDDLE_OCR_MODELS;
  expect_equal_in_pieces(folder + "/ch_PP-OCRv4_det_infer.onnx", {.shapes = {{"x", {1, 3, 160, 160}}}});
  expect_equal_in_pieces(folder + "/ch_PP-OCRv4_rec_infer.onnx", {.shapes = {{"x", {1, 3, 48, 160}}}});
  expect_equal_in_pieces(folder + "/ch_ppocr_mobile_v2.0_cls_infer.onnx",
                         {.shapes = {{"x", {1, 3, 48, 192}}}});
}

TEST(TorchMemory, AModelLargerThanOneDeviceRunsSplitAndAPlanThatDoesNotFitIsRefused) {
  const std::string path = std::string(HEDDLE_CORPUS) + "/light/test_shufflenet/model.onnx";
  const auto model = Model::load(path, {});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  // The parameters alone fill it.
  const auto given = torch_problem(path, 3, (*model)->graph()->total_param_bytes());
  ASSERT_TRUE(given.ok()) << given.error().to_string();
  // One device holds the whole model by this plan: nothing is loaded.
  const auto too_large = build_plan(given->problem, in_turns(*given->problem.graph, 1, 3));
  ASSERT_TRUE(too_large.ok());
  const auto refused = run_plan(given->problem, *too_large, given->model, {.warmups = 0, .repeats = 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kInfeasible);
  EXPECT_NE(refused.error().to_string().find("device 'torch0' has "), std::string::npos)
      << refused.error().to_string();
  const auto split = build_plan(given->problem, in_turns(*given->problem.graph, 3, 3));
  ASSERT_TRUE(split.ok());
  const auto timeline = evaluate(given->problem, *split);
  ASSERT_TRUE(timeline.ok());
  EXPECT_TRUE(check(given->problem, *split, *timeline).ok());
  const auto record = run_plan(given->problem, *split, given->model, {.warmups = 0, .repeats = 1});
  ASSERT_TRUE(record.ok()) << record.error().to_string();
  EXPECT_TRUE(record->outputs_equal) << record->max_rel_error;
}

TEST(TorchCapability, AnOpThatIsNotCoveredIsRefusedWhenPlanning) {
  const std::string path = std::string(HEDDLE_CORPUS) + "/node/test_roialign_aligned_true/model.onnx";
  const auto given = torch_problem(path, 2, 0);
  ASSERT_FALSE(given.ok());
  EXPECT_EQ(given.error().code(), Code::kUnsupported);
  EXPECT_NE(given.error().to_string().find("no device of cluster 'accelerators' can run"), std::string::npos)
      << given.error().to_string();
  EXPECT_NE(given.error().to_string().find("(ROIAlign) cannot run on libtorch"), std::string::npos)
      << given.error().to_string();
}

// Two devices on one GPU: two memories, copies between them.
class TorchCudaLight : public testing::TestWithParam<const char*> {};

TEST_P(TorchCudaLight, InPiecesEqualsTheUnsplitModel) {
  if (local_gpus().gpus.empty()) GTEST_SKIP() << "no CUDA device here";
  const std::string path = std::string(HEDDLE_CORPUS) + "/light/test_" + GetParam() + "/model.onnx";
  expect_equal_in_pieces(path, {}, "cuda:0");
  expect_equal_in_pieces(path, {}, "cuda:0", Objective::kColdLatency);
}

INSTANTIATE_TEST_SUITE_P(Light, TorchCudaLight, testing::Values("inception_v1", "resnet50", "shufflenet"),
                         [](const auto& param) { return std::string(param.param); });

TEST(TorchDevice, UnknownDevicesAndModelsThatAreNotThereAreErrors) {
  Device device = torch_cpu();
  device.backend_device = "abacus";
  const auto opened = open_device(device);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().to_string().find("'abacus'"), std::string::npos) << opened.error().to_string();
  const auto cpu = open_device(torch_cpu());
  ASSERT_TRUE(cpu.ok());
  const auto segment = (*cpu)->compile({.name = "none"}, 1);
  ASSERT_FALSE(segment.ok());
  EXPECT_EQ(segment.error().code(), Code::kInvalidInput);
}

}  // namespace
}  // namespace heddle
