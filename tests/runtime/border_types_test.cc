// The types of tensors between segments: in the plan's memory, in segments and over ranks.
#include "executor/border_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "executor/memory_plan.h"
#include "graph/onnx_writer.h"
#include "heddle/base/own_cores.h"
#include "heddle/base/random.h"
#include "heddle/graph/model.h"
#include "heddle/graph/narrow.h"
#include "heddle/plan/builder.h"
#include "heddle/runtime/rank_run.h"
#include "heddle/runtime/run.h"
#include "rank_support.h"

namespace heddle {
namespace {

using testing::ElementsAre;
constexpr DType kWide = DType::kF32, kNarrow = DType::kBF16;

// x -> a -> (b, c) -> d -> y; `n` is an integer from a to d.
std::shared_ptr<const Graph> diamond() {
  GraphBuilder builder("diamond");
  const TensorId x = builder.add_input("x", kWide, {6});
  const auto add = [&](const char* name, std::vector<TensorId> inputs, std::vector<Tensor> outputs) {
    return builder.outputs_of(
        builder.add_op(Op{.name = name, .type = "Op", .inputs = std::move(inputs)}, std::move(outputs)));
  };
  const auto a =
      add("a", {x},
          {{.name = "ta", .dtype = kWide, .shape = {6}}, {.name = "n", .dtype = DType::kI64, .shape = {2}}});
  const auto b = add("b", {a[0]}, {{.name = "tb", .dtype = kWide, .shape = {6}}});
  const auto c = add("c", {a[0]}, {{.name = "tc", .dtype = kWide, .shape = {6}}});
  const auto d = add("d", {b[0], c[0], a[1]}, {{.name = "y", .dtype = kWide, .shape = {6}}});
  builder.add_output(d[0]);
  return builder.build().value();
}

// Each op a segment, on devices[lane][op].
Plan plan_of(const std::vector<std::vector<int>>& devices) {
  Plan plan;
  plan.lane_shares.assign(devices.size(), 1 / static_cast<double>(devices.size()));
  for (size_t lane = 0; lane < devices.size(); ++lane) {
    for (size_t op = 0; op < devices[lane].size(); ++op)
      plan.segments.push_back({.name = "s",
                               .ops = {OpId(op)},
                               .device = DeviceId(devices[lane][op]),
                               .lane = static_cast<int>(lane)});
  }
  return plan;
}

std::vector<DType> types_of(const Graph& graph) {
  std::vector<DType> types;
  for (const char* name : {"x", "ta", "n", "tb", "tc", "y"})
    types.push_back(graph.tensor(graph.find_tensor(name)).dtype);
  return types;
}

TEST(BorderTypes, AreNarrowWhereTheProducerAndAllReadersAre) {
  Problem problem;
  problem.graph = diamond();
  const DType of_device[] = {kWide, kNarrow, kNarrow, DType::kF16};
  const auto types = [&](std::vector<int> devices) {
    const auto graphs = lane_graphs(problem, nullptr, plan_of({std::move(devices)}), of_device);
    EXPECT_TRUE(graphs.ok()) << graphs.error().to_string();
    return types_of(*graphs->front());
  };
  // The model's input and output and the integer keep their types.
  EXPECT_THAT(types({1, 2, 1, 2}), ElementsAre(kWide, kNarrow, DType::kI64, kNarrow, kNarrow, kWide));
  EXPECT_THAT(types({1, 1, 0, 1}), ElementsAre(kWide, kWide, DType::kI64, kNarrow, kWide, kWide));
  EXPECT_THAT(types({0, 1, 1, 1}), ElementsAre(kWide, kWide, DType::kI64, kNarrow, kNarrow, kWide));
  EXPECT_THAT(types({1, 1, 3, 3}), ElementsAre(kWide, kWide, DType::kI64, kWide, DType::kF16, kWide));
}

TEST(BorderTypes, HalveTheBytesOfFloat32AndLeaveThoseOfIntegers) {
  Problem problem;
  problem.graph = diamond();
  const DType of_device[] = {kNarrow};
  const auto graph = lane_graphs(problem, nullptr, plan_of({{0, 0, 0, 0}}), of_device).value().front();
  EXPECT_EQ(graph->tensor(graph->find_tensor("ta")).bytes, 12);
  EXPECT_EQ(graph->tensor(graph->find_tensor("n")).bytes, 16);
  EXPECT_EQ(graph->tensor(graph->find_tensor("y")).bytes, 24);
  for (size_t op = 0; op < graph->num_ops(); ++op)
    EXPECT_EQ(graph->op(OpId(op)).name, problem.graph->op(OpId(op)).name);
}

TEST(BorderTypes, LanesOfTheSameTypesShareAGraph) {
  Problem problem;
  problem.graph = diamond();
  const DType of_device[] = {kWide, kNarrow, kNarrow};
  const auto graphs =
      lane_graphs(problem, nullptr, plan_of({{1, 1, 1, 1}, {2, 2, 2, 2}, {0, 1, 1, 1}, {0, 0, 0, 0}}),
                  of_device)
          .value();
  EXPECT_EQ(graphs[0], graphs[1]);
  EXPECT_NE(graphs[0], graphs[2]);
  EXPECT_EQ(graphs[3], problem.graph);
}

// A chain of products, each with a rectifier: on a processor without narrow types its plans are in float32.
class NarrowChain : public testing::Test {
 protected:
  static constexpr int kLayers = 6;
  static constexpr int64_t kWidth = 96;

  void SetUp() override {
    using namespace onnx_writer;
    const auto openvino = find_backend("openvino")->precisions(device(0, Precision::kF32));
    if (!openvino.ok() || openvino->size() < 2) GTEST_SKIP() << "this processor has float32 only";
    narrow_ = openvino->front() == Precision::kF32 ? openvino->back() : openvino->front();
    Random random(7);
    std::vector<std::string> nodes, weights;
    for (int i = 0; i < kLayers; ++i) {
      const std::string n = std::to_string(i);
      std::vector<float> values(static_cast<size_t>(kWidth * kWidth));
      for (float& v : values) v = static_cast<float>(random.uniform(-0.2, 0.2));
      weights.push_back(float_tensor("w" + n, {kWidth, kWidth}, values));
      nodes.push_back(
          node("MatMul", {i == 0 ? "x" : "r" + std::to_string(i - 1), "w" + n}, {"m" + n}, "product" + n));
      nodes.push_back(node("Relu", {"m" + n}, {i + 1 == kLayers ? "y" : "r" + n}, "rectifier" + n));
    }
    path_ =
        std::filesystem::temp_directory_path() / ("heddle-borders-" + std::to_string(::getpid()) + ".onnx");
    std::ofstream(path_, std::ios::binary)
        << onnx_writer::model({nodes, {value("x", {32, kWidth})}, {value("y", {32, kWidth})}, weights});
    model_ = Model::load(path_.string(), {}).value();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  static Device device(int number, Precision precision) {
    Device d;
    d.name = "cpu" + std::to_string(number);
    d.kind = DeviceKind::kCpu;
    d.device_class = "cpu";
    d.host = HostId(0);
    d.backend = "openvino";
    d.cores = {own_cores()[static_cast<size_t>(number) % own_cores().size()]};
    d.precision = precision;
    return d;
  }

  // Devices of these types; segment i of `segments` is on device i modulo their number.
  void plan(const std::vector<Precision>& types, int segments) {
    ClusterBuilder builder("here");
    builder.add_host({.name = "here", .memory_bytes = 0});
    for (size_t d = 0; d < types.size(); ++d) builder.add_device(device(static_cast<int>(d), types[d]));
    problem_.cluster = builder.build().value();
    problem_.graph = model_->graph();
    problem_.model = ModelReference{model_->path(), model_->file_hash(), {}, {}, 0};
    const size_t n = problem_.graph->num_ops();
    auto costs = std::make_shared<CostTable>(n, types.size());
    Assignment a;
    const auto order = problem_.graph->topological_order();
    a.order.assign(order.begin(), order.end());
    a.device.resize(n);
    a.segment.resize(n);
    for (size_t i = 0; i < n; ++i) {
      const int s = static_cast<int>(i) * segments / static_cast<int>(n);
      a.segment[order[i].index()] = s;
      a.device[order[i].index()] = DeviceId(static_cast<size_t>(s) % types.size());
      for (size_t d = 0; d < types.size(); ++d) costs->set(OpId(i), DeviceId(d), {.us = 1});
    }
    problem_.costs = costs;
    plan_ = build_plan(problem_, a).value();
  }

  int64_t tensor_bytes() const {
    const auto executor = Executor::create(problem_, plan_, model_);
    EXPECT_TRUE(executor.ok()) << executor.error().to_string();
    return executor.ok() ? (*executor)->memory().front().tensor_bytes : 0;
  }

  Precision narrow_ = Precision::kF32;
  std::filesystem::path path_;
  std::shared_ptr<const Model> model_;
  Problem problem_;
  Plan plan_;
};

TEST_F(NarrowChain, HoldsItsTensorsInTwoBytes) {
  // The output and two tensors between segments.
  const int64_t tensor = 32 * kWidth * 4;
  plan({Precision::kF32, Precision::kF32}, 3);
  EXPECT_EQ(tensor_bytes(), 3 * tensor);
  plan({narrow_, narrow_}, 3);
  EXPECT_EQ(tensor_bytes(), tensor + 2 * tensor / 2);
  plan({narrow_, Precision::kF32}, 3);  // neighbours of different types
  EXPECT_EQ(tensor_bytes(), 3 * tensor);
}

// In float32 the devices hold in four bytes what the problem counted in two.
TEST_F(NarrowChain, HasTheTypesOfTheOpenedDevicesNotOfTheProblem) {
  plan({narrow_, narrow_}, 3);
  problem_.graph = narrowed(*model_->graph(), DType::kBF16, Narrowed::kTensors).value();
  const DType wide[] = {DType::kF32, DType::kF32}, narrow[] = {DType::kBF16, DType::kBF16};
  const auto held = [&](std::span<const DType> types, TensorId t) {
    return lane_graphs(problem_, model_.get(), plan_, types).value().front()->tensor(t);
  };
  for (size_t t = 0; t < problem_.graph->num_tensors(); ++t) {
    EXPECT_EQ(held(wide, TensorId(t)).bytes, model_->graph()->tensor(TensorId(t)).bytes);
    EXPECT_EQ(held(narrow, TensorId(t)).bytes, problem_.graph->tensor(TensorId(t)).bytes);
  }
}

TEST_F(NarrowChain, IsRightAndErrsNoMoreThanItsRoundingsExplain) {
  for (const int segments : {1, 2, 4, kLayers}) {
    plan({narrow_, narrow_}, segments);
    const auto record = run_plan(problem_, plan_, model_, {.warmups = 0, .repeats = 1});
    ASSERT_TRUE(record.ok()) << record.error().to_string();
    EXPECT_TRUE(record->right()) << segments;
    ASSERT_TRUE(record->precision.has_value());
    // The float32 run shows that the partition is right, the types' error is apart from it.
    EXPECT_LT(record->max_rel_error, 1e-3);
    // Each layer rounds once, each border once more; sums of rounded values err less than their number.
    EXPECT_LE(record->precision->plan.mean(), 2 * kLayers * rounding_of(narrow_)) << segments;
    EXPECT_GT(record->precision->plan.mean(), 0) << segments;
  }
}

TEST_F(NarrowChain, OverRanksIsComparedInFloat32AndInItsOwnTypes) {
  for (const std::vector<Precision>& types :
       {std::vector{narrow_, narrow_}, std::vector{narrow_, Precision::kF32}}) {
    plan(types, 4);
    test::on_ranks(2, [&](RankGroup& group) {
      RankRunOptions options;
      options.rank_of_device = {0, 1};
      options.run.warmups = 0;
      options.run.repeats = 2;
      const auto record = run_plan_on_ranks(group, problem_, plan_, model_, options);
      ASSERT_TRUE(record.ok()) << record.error().to_string();
      if (group.rank() != 0) return;
      EXPECT_TRUE(record->right());
      EXPECT_THAT(record->outputs_compared, ElementsAre("y"));
      ASSERT_TRUE(record->precision.has_value());
      EXPECT_GT(record->precision->plan.mean(), rounding_of(Precision::kF32));
      EXPECT_LT(record->max_rel_error, 1e-3);
      EXPECT_LT(record->max_abs_error, 1e-3);
    });
  }
}

}  // namespace
}  // namespace heddle
