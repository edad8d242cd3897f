#include "heddle/graph/narrow.h"

#include <gtest/gtest.h>

#include "heddle/graph/zoo.h"

namespace heddle {
namespace {

std::shared_ptr<const Graph> small_graph() {
  GraphBuilder builder("g");
  const TensorId x = builder.add_input("x", DType::kF32, {8});
  const ParamId weights = builder.add_param({"w", 400});
  const ParamId indices = builder.add_param({"i", 64, DType::kI64});
  Op first{.name = "a", .type = "Gather", .inputs = {x}, .params = {weights, indices}};
  first.bytes_accessed = 128;  // a part of the 528 bytes that it touches
  const OpId a = builder.add_op(first, {{.name = "h", .dtype = DType::kF32, .shape = {8}},
                                        {.name = "n", .dtype = DType::kI64, .shape = {1}}});
  const TensorId h = builder.outputs_of(a)[0];
  Op second{.name = "b", .type = "Relu", .inputs = {h}};
  second.bytes_accessed = 64;
  const OpId b = builder.add_op(second, {{.name = "y", .dtype = DType::kF32, .shape = {8}}});
  builder.add_output(builder.outputs_of(b)[0]);
  return builder.build().value();
}

TEST(Narrow, HalvesWhatIsFloat32InsideAndLeavesTheBorders) {
  const auto graph = small_graph();
  const auto half = narrowed(*graph, DType::kF16).value();
  EXPECT_EQ(half->tensor(half->find_tensor("x")).bytes, 32);
  EXPECT_EQ(half->tensor(half->find_tensor("x")).dtype, DType::kF32);
  EXPECT_EQ(half->tensor(half->find_tensor("h")).bytes, 16);
  EXPECT_EQ(half->tensor(half->find_tensor("h")).dtype, DType::kF16);
  EXPECT_EQ(half->tensor(half->find_tensor("n")).bytes, 8);
  EXPECT_EQ(half->tensor(half->find_tensor("y")).bytes, 32);
  EXPECT_EQ(half->total_param_bytes(), 200 + 64);
  EXPECT_EQ(half->op(OpId(0)).bytes_accessed, 128 * 320 / 536);
  EXPECT_EQ(half->op(OpId(1)).bytes_accessed, 48);
}

TEST(Narrow, OfTensorsAloneLeavesParameters) {
  const auto graph = small_graph();
  const auto half = narrowed(*graph, DType::kF16, Narrowed::kTensors).value();
  EXPECT_EQ(half->tensor(half->find_tensor("h")).bytes, 16);
  EXPECT_EQ(half->total_param_bytes(), graph->total_param_bytes());
  EXPECT_EQ(half->op(OpId(0)).bytes_accessed, 128 * 520 / 536);
}

TEST(Narrow, TensorsGetTheTypesThatAreAskedFor) {
  const auto graph = small_graph();
  std::vector<DType> types;
  for (const Tensor& t : graph->tensors()) types.push_back(t.name == "h" ? DType::kBF16 : t.dtype);
  const auto typed = with_tensor_types(*graph, types).value();
  EXPECT_EQ(typed->tensor(typed->find_tensor("h")).bytes, 16);
  EXPECT_EQ(typed->tensor(typed->find_tensor("h")).dtype, DType::kBF16);
  for (const char* name : {"x", "n", "y"})
    EXPECT_EQ(typed->tensor(typed->find_tensor(name)).bytes, graph->tensor(graph->find_tensor(name)).bytes);
  // And back.
  for (DType& type : types)
    if (type == DType::kBF16) type = DType::kF32;
  EXPECT_EQ(with_tensor_types(*typed, types).value()->tensor(graph->find_tensor("h")).bytes, 32);
}

TEST(Narrow, KeepsNumbersNamesAndWires) {
  for (const char* name : {"resnet-50", "bert-base"}) {
    const auto graph = build_zoo_graph(name).value();
    const auto half = narrowed(*graph, DType::kBF16).value();
    ASSERT_EQ(half->num_ops(), graph->num_ops());
    ASSERT_EQ(half->num_edges(), graph->num_edges());
    for (size_t i = 0; i < graph->num_ops(); ++i) {
      EXPECT_EQ(half->op(OpId(i)).name, graph->op(OpId(i)).name);
      EXPECT_EQ(half->op(OpId(i)).flops, graph->op(OpId(i)).flops);
      EXPECT_LE(half->op(OpId(i)).bytes_accessed, graph->op(OpId(i)).bytes_accessed);
    }
    EXPECT_NEAR(static_cast<double>(half->total_param_bytes()),
                static_cast<double>(graph->total_param_bytes()) / 2, 1e4);
    // What is narrow already stays.
    EXPECT_EQ(narrowed(*half, DType::kBF16).value()->total_param_bytes(), half->total_param_bytes());
  }
}

}  // namespace
}  // namespace heddle
