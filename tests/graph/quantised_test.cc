#include "heddle/graph/quantised.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/graph/coarsen.h"

namespace heddle {
namespace {

using testing::ElementsAre;

// A quantised product between a float32 one and one that reads an image of 8 bits.
class Quantised : public testing::Test {
 protected:
  TensorId add(const char* name, const char* type, TensorId input, DType dtype = DType::kF32) {
    Op op{.name = name, .type = type, .inputs = {input}};
    op.flops = 100;
    const OpId id =
        builder_.add_op(std::move(op), {{.name = std::string("t_") + name, .dtype = dtype, .shape = {4}}});
    return builder_.outputs_of(id)[0];
  }
  std::shared_ptr<const Graph> build() {
    const TensorId image = builder_.add_input("image", DType::kU8, {4});
    const TensorId first = add("first", "Convolution", add("scaled", "Convert", image));
    const TensorId codes = add("codes", "Convert", add("levels", "FakeQuantize", first), DType::kU8);
    const TensorId values = add("scale", "Multiply", add("shift", "Subtract", add("back", "Convert", codes)));
    const TensorId second = add("second", "Convolution", values);
    builder_.add_output(add("third", "MatMul", add("rectifier", "Relu", second)));
    return builder_.build().value();
  }
  GraphBuilder builder_{"quantised"};
};

TEST_F(Quantised, ProductsReadWhatWasQuantisedBefore) {
  const auto graph = build();
  const auto int8 = int8_products(*graph);
  for (size_t op = 0; op < graph->num_ops(); ++op)
    EXPECT_EQ(int8[op], graph->op(OpId(op)).name == "second") << graph->op(OpId(op)).name;
}

TEST_F(Quantised, UnitsSayWhetherTheirProductsAllAreInInt8) {
  const auto graph = build();
  const auto types = [](const Graph& units) {
    std::vector<bool> list;
    for (const Op& op : units.ops()) list.push_back(is_int8(op));
    return list;
  };
  const auto fine = with_int8_types(graph, *graph).value();
  for (const Op& op : fine->ops()) EXPECT_EQ(is_int8(op), op.name == "second") << op.name;
  EXPECT_EQ(fine->op(fine->find_op("second")).type, "Convolution+int8");
  // The float32 products apart from the quantised one, then with it.
  std::vector<int> apart(graph->num_ops(), 0), together(graph->num_ops(), 0);
  for (size_t op = 0; op < graph->num_ops(); ++op) {
    const int at = graph->topological_position(OpId(op));
    apart[op] = at < graph->topological_position(graph->find_op("codes"))        ? 0
                : at <= graph->topological_position(graph->find_op("rectifier")) ? 1
                                                                                 : 2;
    together[op] = apart[op] == 0 ? 0 : 1;
  }
  EXPECT_THAT(types(*with_int8_types(coarsen(*graph, apart).value(), *graph).value()),
              ElementsAre(false, true, false));
  EXPECT_THAT(types(*with_int8_types(coarsen(*graph, together).value(), *graph).value()),
              ElementsAre(false, false));
}

TEST_F(Quantised, AModelWithoutThemStaysAsItIs) {
  const TensorId x = builder_.add_input("x", DType::kF32, {4});
  builder_.add_output(add("product", "MatMul", x));
  const auto graph = builder_.build().value();
  EXPECT_EQ(with_int8_types(graph, *graph).value(), graph);
}

}  // namespace
}  // namespace heddle
