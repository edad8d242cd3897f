// Real models on the backend torch: cut and placed, split where memory forces it, refused where they cannot
// run.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <openvino/core/graph_util.hpp>
#include <openvino/op/ops.hpp>

#include "corpus/corpus.h"
#include "heddle/cluster/variants.h"
#include "heddle/graph/zoo.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/evaluator.h"
#include "heddle/runtime/precision_error.h"
#include "heddle/runtime/profiler.h"
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

// Whether libtorch alone gives the output that came with the model: asked where OpenVINO does not agree,
// whose CPU plugin drops classes of squeezenet's softmax on machines with AVX-512 (992 of 1000 are left).
bool gives_reference(const std::string& model_path) {
  const std::string folder = std::filesystem::path(model_path).parent_path();
  const auto model = Model::load(model_path);
  const auto input = read_value(folder + "/set_0_input_0.pb");
  const ov::Tensor expected = read_tensor(folder + "/set_0_output_0.pb");
  if (!model.ok() || !input || !expected) return false;
  const auto device = open_device(torch_cpu());
  const auto segment = compile_whole(**device, *model);
  if (!segment.ok()) return false;
  const auto outputs = run_whole(**segment, **model, {*input});
  if (!outputs.ok()) return false;
  return difference(*as_openvino((*outputs)[0], expected.get_element_type()), expected, 1e-3, 1e-5).empty();
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
                            const std::string& where = "cpu", Objective objective = Objective::kLatency,
                            size_t pieces = 5) {
  ASSERT_TRUE(std::filesystem::exists(path)) << path << ": run make setup";
  const auto given = torch_problem(path, 2, 0, options, where, objective);
  ASSERT_TRUE(given.ok()) << given.error().to_string();
  const auto plan = build_plan(given->problem, in_turns(*given->problem.graph, pieces, 2));
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  const auto record = run_plan(given->problem, *plan, given->model, {.warmups = 3, .repeats = 1});
  ASSERT_TRUE(record.ok()) << record.error().to_string();
  EXPECT_TRUE(record->verified);
  EXPECT_TRUE(record->outputs_equal || gives_reference(path)) << record->max_rel_error;
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

Problem in_precision(Problem problem, Precision precision) {
  ClusterBuilder builder("narrow");
  const HostId host = builder.add_host({.name = "here", .memory_bytes = 0});
  for (Device device : problem.cluster->devices()) {
    device.host = host;
    const DeviceId id = builder.add_device(as_variant(std::move(device), {"torch", precision}));
    builder.add_link({.a = builder.host_node(host), .b = builder.device_node(id), .bytes_per_s = 1e10});
  }
  problem.cluster = builder.build().value();
  return problem;
}

// Pieces on two accelerators exchange tensors of their type. The plan is compared in float32, too, in which the same
// tensors have twice the bytes.
TEST(TorchPrecision, InPiecesEqualsTheUnsplitModelAndItsErrorIsOfTheType) {
  const std::string path = std::string(HEDDLE_CORPUS) + "/light/test_shufflenet/model.onnx";
  for (const Precision precision : {Precision::kBf16, Precision::kFp16}) {
    auto given = torch_problem(path, 2, 0);
    ASSERT_TRUE(given.ok()) << given.error().to_string();
    given->problem = in_precision(given->problem, precision);
    const auto plan = build_plan(given->problem, in_turns(*given->problem.graph, 5, 2));
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    const auto record = run_plan(given->problem, *plan, given->model, {.warmups = 3, .repeats = 1});
    ASSERT_TRUE(record.ok()) << record.error().to_string();
    EXPECT_TRUE(record->verified);
    EXPECT_TRUE(record->outputs_equal) << record->max_rel_error;
    ASSERT_TRUE(record->precision.has_value());
    EXPECT_EQ(record->precision->type, precision);
    EXPECT_GT(record->precision->plan.mean(), 0);
    EXPECT_LT(record->precision->plan.mean(), 2 * rounding_of(precision));
  }
}

// A square that leaves fp16's range, and a position that is no number of bf16, cross cuts in float32.
TEST(TorchPrecision, ValuesThatStayInFloat32DoSoAcrossCuts) {
  using Constant = ov::op::v0::Constant;
  const auto x = std::make_shared<ov::op::v0::Parameter>(ov::element::f32, ov::Shape{1, 4});
  const auto at = std::make_shared<ov::op::v0::Parameter>(ov::element::i64, ov::Shape{1, 4});
  const auto large =
      std::make_shared<ov::op::v1::Multiply>(x, Constant::create(ov::element::f32, {}, {3000.F}));
  const auto square = std::make_shared<ov::op::v1::Multiply>(large, large);
  const auto mean = std::make_shared<ov::op::v1::ReduceMean>(
      square, Constant::create(ov::element::i64, {1}, {int64_t{1}}), true);
  const auto scaled = std::make_shared<ov::op::v1::Divide>(large, std::make_shared<ov::op::v0::Sqrt>(mean));
  const auto position = std::make_shared<ov::op::v0::Convert>(at, ov::element::f32);
  const auto far =
      std::make_shared<ov::op::v1::Add>(position, Constant::create(ov::element::f32, {}, {1000.F}));
  const auto near =
      std::make_shared<ov::op::v1::Subtract>(far, Constant::create(ov::element::f32, {}, {1000.F}));
  const auto model = std::make_shared<ov::Model>(ov::OutputVector{scaled, near}, ov::ParameterVector{x, at});
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "heddle-cuts-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  ov::save_model(model, folder + "/model.xml", false);
  for (const Precision precision : {Precision::kBf16, Precision::kFp16}) {
    const auto given = torch_problem(folder + "/model.xml", 2, 0);
    ASSERT_TRUE(given.ok()) << given.error().to_string();
    const Problem problem = in_precision(given->problem, precision);
    const Graph& graph = *problem.graph;
    const auto plan = build_plan(problem, in_turns(graph, graph.num_ops(), 2));
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    const auto record = run_plan(problem, *plan, given->model, {.warmups = 0, .repeats = 1});
    ASSERT_TRUE(record.ok()) << record.error().to_string();
    EXPECT_TRUE(record->outputs_equal);
    ASSERT_TRUE(record->precision.has_value());
    for (const TensorError& error : record->precision->plan.outputs)
      EXPECT_LT(error.mean, rounding_of(precision)) << error.output;
  }
  fs::remove_all(folder);
}

TEST(TorchOcr, TrainedModelsInPiecesEqualTheUnsplitModel) {
  const std::string folder = HEDDLE_OCR_MODELS;
  expect_equal_in_pieces(folder + "/ch_PP-OCRv4_det_infer.onnx", {.shapes = {{"x", {1, 3, 160, 160}}}});
  expect_equal_in_pieces(folder + "/ch_PP-OCRv4_rec_infer.onnx", {.shapes = {{"x", {1, 3, 48, 160}}}});
  expect_equal_in_pieces(folder + "/ch_ppocr_mobile_v2.0_cls_infer.onnx",
                         {.shapes = {{"x", {1, 3, 48, 192}}}});
}

// The zoo's networks, small: every op that it has, with random weights.
struct ZooCase {
  std::string name;
  ZooParams params;
};

class TorchZoo : public testing::TestWithParam<ZooCase> {};

TEST_P(TorchZoo, InTwoPiecesEqualsTheUnsplitModel) {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "heddle-zoo-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/model.onnx";
  // OpenLLaMA's weights would make a file of a gigabyte: they are made when it is imported, and all alike.
  const bool random = GetParam().name != "openllama-3b";
  const auto written = write_zoo_onnx(GetParam().name, GetParam().params, path, {.random_weights = random});
  EXPECT_TRUE(written.ok()) << written.error().to_string();
  if (written.ok()) expect_equal_in_pieces(path, {}, "cpu", Objective::kLatency, 2);
  fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, TorchZoo,
    testing::Values(
        ZooCase{"resnet-18", {{"image", "64"}}}, ZooCase{"resnet-50", {{"image", "64"}}},
        ZooCase{"inception-v3", {{"image", "107"}}},
        ZooCase{"nasnet-a-mobile", {{"image", "64"}, {"blocks", "1"}}},
        ZooCase{"gpt2", {{"layers", "1"}, {"seq", "4"}, {"past", "3"}}},
        ZooCase{"openllama-3b", {{"layers", "1"}, {"seq", "3"}, {"past", "2"}}},
        ZooCase{"bert-base", {{"layers", "1"}, {"seq", "8"}}},
        ZooCase{"swin-t", {{"image", "120"}, {"middle", "1"}}},
        ZooCase{"evoformer", {{"layers", "1"}, {"sequences", "6"}, {"residues", "9"}}},
        ZooCase{"gnmt",
                {{"layers", "3"}, {"seq", "4"}, {"target", "3"}, {"hidden", "64"}, {"vocabulary", "100"}}}),
    [](const auto& param) {
      std::string name = param.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

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
  EXPECT_TRUE(record->outputs_equal || gives_reference(path)) << record->max_rel_error;
}

TEST(TorchCapability, AnOpThatIsNotCoveredIsRefusedWhenPlanning) {
  const std::string path = std::string(HEDDLE_CORPUS) + "/node/test_bernoulli_seed_expanded/model.onnx";
  const auto given = torch_problem(path, 2, 0);
  ASSERT_FALSE(given.ok());
  EXPECT_EQ(given.error().code(), Code::kUnsupported);
  EXPECT_NE(given.error().to_string().find("no device of cluster 'accelerators' can run"), std::string::npos)
      << given.error().to_string();
  EXPECT_NE(given.error().to_string().find("(RandomUniform) cannot run on libtorch"), std::string::npos)
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

// Times that another release of libtorch took are measured again.
TEST(TorchBackend, StoredTimesBelongToItsRelease) {
  const auto release = find_backend("torch")->release();
  EXPECT_FALSE(release.empty());
  EXPECT_NE(measuring_fingerprint().find(" | torch " + release), std::string::npos);
}

}  // namespace
}  // namespace heddle
