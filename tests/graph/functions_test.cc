// Model-local functions: what is imported is the model with every call replaced by its body.
#include <gtest/gtest.h>

#include "graph/model_files.h"
#include "graph/onnx_writer.h"
#include "heddle/graph/model.h"

namespace heddle {
namespace {

using namespace onnx_writer;

std::shared_ptr<const Model> load(const std::string& content) {
  const TestFolder folder;
  auto model = Model::load(folder.write("model.onnx", content));
  EXPECT_TRUE(model.ok()) << (model ? "" : model.error().to_string());
  return model ? *model : nullptr;
}

std::vector<std::string> names_of_ops(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& op : graph.ops()) names.push_back(op.name);
  return names;
}

Shape output_shape(const Model& model) { return model.graph()->tensor(model.graph()->outputs()[0]).shape; }

TEST(ModelFunctions, AreInlinedWithNamesOfTheirOwn) {
  // inner is called twice by outer, outer twice by the model; a value of the model has the name that a value
  // of the first call would get.
  const auto inner = function("inner", {node("Relu", {"a"}, {"m"}), node("Sigmoid", {"m"}, {"b"}, "last")});
  const auto outer = function("outer", {node("inner", {"a"}, {"m"}, "one", {}, "own"),
                                        node("inner", {"m"}, {"b"}, "two", {}, "own")});
  const auto model = load(onnx_writer::model({{node("outer", {"x"}, {"c/m"}, "c", {}, "own"),
                                               node("outer", {"c/m"}, {"y"}, "d", {}, "own")},
                                              {value("x", {2, 3})},
                                              {value("y", {2, 3})},
                                              {}}) +
                          bytes(25, inner) + bytes(25, outer));
  ASSERT_NE(model, nullptr);
  const Graph& graph = *model->graph();
  EXPECT_EQ(graph.num_ops(), 8u);
  for (const auto& op : graph.ops()) EXPECT_EQ(op.onnx_names.size(), 1u) << op.name;
  const auto names = names_of_ops(graph);
  EXPECT_EQ(names[1], "c/one/last");
  EXPECT_EQ(names[7], "d/two/last");
  EXPECT_TRUE(model->find_onnx_tensor("c/m").valid());
}

TEST(ModelFunctions, GetTheirCallersAttributesOrTheirDefaults) {
  const auto flat =
      function("flat", {node("Flatten", {"a"}, {"b"}, "flatten", {attribute_reference("axis", "at", 2)})},
               {attribute_int("at", 2)});
  const auto file = [&](const std::vector<std::string>& attributes) {
    return model({{node("flat", {"x"}, {"y"}, "c", attributes, "own")},
                  {value("x", {2, 3, 4})},
                  {value("y", {-1, -1})},
                  {}}) +
           bytes(25, flat);
  };
  const auto given = load(file({attribute_int("at", 1)})), left_out = load(file({}));
  ASSERT_TRUE(given != nullptr && left_out != nullptr);
  EXPECT_EQ(output_shape(*given), (Shape{2, 12}));
  EXPECT_EQ(output_shape(*left_out), (Shape{6, 4}));
}

TEST(ModelFunctions, InAndAroundSubgraphsReadTheRightValues) {
  const auto twice = function("twice", {node("Add", {"a", "a"}, {"b"}, "add")});
  // The branches read the function's input and call the other function.
  const auto branch = [](const char* type) {
    return graph({{node(type, {"a"}, {"t"}), node("twice", {"t"}, {"o"}, "again", {}, "own")},
                  {},
                  {value("o", {2, 2})},
                  {}});
  };
  const auto choose =
      function("choose",
               {node("Constant", {}, {"c"}, "", {attribute_tensor("value", raw_tensor("", {}, "\1", kBool))}),
                node("ReduceMax", {"a"}, {"max"}, "", {attribute_int("keepdims", 0)}),
                node("Greater", {"max", "max"}, {"is"}),
                node("If", {"is"}, {"b"}, "if",
                     {attribute_graph("then_branch", branch("Relu")),
                      attribute_graph("else_branch", branch("Sigmoid"))})});
  const auto model = load(
      onnx_writer::model(
          {{node("choose", {"x"}, {"y"}, "c", {}, "own")}, {value("x", {2, 2})}, {value("y", {2, 2})}, {}}) +
      bytes(25, twice) + bytes(25, choose));
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->graph()->ops().back().type, "If");
  EXPECT_EQ(output_shape(*model), (Shape{2, 2}));
}

TEST(ModelFunctions, OfAnotherOpsetAreInlinedIfTheirOperatorsAreTheSame) {
  const auto f = function("f", {node("Relu", {"a"}, {"b"})}, {}, 15);
  const auto model =
      load(onnx_writer::model(
               {{node("f", {"x"}, {"y"}, "c", {}, "own")}, {value("x", {2})}, {value("y", {2})}, {}}) +
           bytes(25, f));
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->graph()->num_ops(), 1u);
}

}  // namespace
}  // namespace heddle
