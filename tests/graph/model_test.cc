// Model: how a file becomes a graph, and what is cut out of it. Expected numbers are derived next to each
// model.
#include "heddle/graph/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <openvino/core/graph_util.hpp>
#include <openvino/core/model.hpp>
#include <openvino/op/constant.hpp>

#include "graph/model_files.h"
#include "graph/onnx_writer.h"
#include "heddle/graph/model_content.h"

namespace heddle {
namespace {

using namespace onnx_writer;

std::shared_ptr<const Model> load(const TestFolder& folder, const std::string& content,
                                  const ImportOptions& options = {}) {
  auto model = Model::load(folder.write("model.onnx", content), options);
  EXPECT_TRUE(model.ok()) << (model ? "" : model.error().to_string());
  return model ? *model : nullptr;
}

std::vector<std::string> op_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& op : graph.ops()) names.push_back(op.name);
  return names;
}

// x [1, 2, 4, 4] -> Conv 3x3 to 3 channels with bias -> Relu.
std::string conv_model(const std::string& prefix = "", int64_t pad = 1) {
  const auto p = [&](const char* name) { return prefix + name; };
  return model({{node("Conv", {p("x"), p("w"), p("b")}, {p("c")}, p("conv"),
                      {attribute_ints("pads", {pad, pad, pad, pad})}),
                 node("Relu", {p("c")}, {p("y")}, p("relu"))},
                {value(p("x"), {1, 2, 4, 4})},
                {value(p("y"), {1, 3, 2 + 2 * pad, 2 + 2 * pad})},
                {float_tensor(p("w"), {3, 2, 3, 3}, std::vector<float>(54, 0.5F)),
                 float_tensor(p("b"), {3}, {1, 2, 3})}});
}

TEST(ModelGraph, KeepsOnnxNamesShapesAndTypes) {
  TestFolder folder;
  const auto model = load(folder, conv_model());
  ASSERT_NE(model, nullptr);
  const Graph& g = *model->graph();
  // The importer converts the node 'conv' to a convolution and an addition.
  ASSERT_EQ(g.num_ops(), 3u);
  EXPECT_EQ(op_names(g), (std::vector<std::string>{"conv/Convolution", "conv", "relu"}));
  for (const char* name : {"x", "c", "y"}) {
    const TensorId id = g.find_tensor(name);
    ASSERT_TRUE(id.valid()) << name;
    EXPECT_EQ(id, model->find_onnx_tensor(name));
    EXPECT_EQ(g.tensor(id).dtype, DType::kF32);
  }
  EXPECT_EQ(g.tensor(g.find_tensor("c")).shape, (Shape{1, 3, 4, 4}));
  EXPECT_EQ(g.tensor(g.find_tensor("c")).bytes, 192);
  EXPECT_EQ(g.op(OpId(0)).onnx_names, (std::vector<std::string>{"conv"}));
}

TEST(ModelGraph, CountsFlopsAndBytes) {
  TestFolder folder;
  const auto model = load(folder, conv_model());
  ASSERT_NE(model, nullptr);
  const Graph& g = *model->graph();
  // 48 outputs with 3 * 3 * 2 multiply-adds of 2 operations; bias and Relu take one operation per output.
  EXPECT_EQ(g.op(g.find_op("conv/Convolution")).flops, 48 * 18 * 2);
  EXPECT_EQ(g.op(g.find_op("conv")).flops, 48);
  EXPECT_EQ(g.op(g.find_op("relu")).flops, 48);
  // Input 128, weights 216, output 192.
  EXPECT_EQ(g.op(g.find_op("conv/Convolution")).bytes_accessed, 128 + 216 + 192);
  EXPECT_EQ(g.op(g.find_op("relu")).bytes_accessed, 2 * 192);
}

TEST(ModelGraph, LeadsNamesOfDroppedNodesToTheTensorThatCarriesThem) {
  TestFolder folder;
  const auto model = load(
      folder, onnx_writer::model({{node("Dropout", {"x"}, {"d"}, "drop"), node("Relu", {"d"}, {"r"}, "relu"),
                                   node("Dropout", {"r"}, {"y"}, "out")},
                                  {value("x", {2, 2})},
                                  {value("y", {2, 2})},
                                  {}}));
  ASSERT_NE(model, nullptr);
  const Graph& g = *model->graph();
  EXPECT_EQ(g.tensor(g.inputs()[0]).name, "x");
  EXPECT_EQ(g.tensor(g.outputs()[0]).name, "y");
  EXPECT_EQ(model->find_onnx_tensor("d"), g.inputs()[0]);
  EXPECT_EQ(model->find_onnx_tensor("r"), g.outputs()[0]);
  EXPECT_FALSE(model->find_onnx_tensor("nothing").valid());
}

TEST(ModelGraph, CountsSharedAndExternalWeightsOnce) {
  TestFolder folder;
  folder.write("w.bin", raw_of<float>({9, 1, 2, 3, 4}));
  const auto model =
      load(folder,
           onnx_writer::model(
               {{node("Add", {"x", "w"}, {"a"}, "a"), node("Mul", {"a", "w"}, {"y"}, "m")},
                {value("x", {2, 2})},
                {value("y", {2, 2})},
                {external_tensor("w", {2, 2}, {{"location", "w.bin"}, {"offset", "4"}, {"length", "16"}})}}));
  ASSERT_NE(model, nullptr);
  const Graph& g = *model->graph();
  EXPECT_EQ(g.num_params(), 1u);
  EXPECT_EQ(g.total_param_bytes(), 16);
  EXPECT_EQ(g.op(OpId(0)).params, g.op(OpId(1)).params);
}

// What a plan was made for, and what is cached for it, is known by all of the model's bytes.
TEST(ModelGraph, WeightsInOtherFilesCountForItsHash) {
  TestFolder folder;
  const auto path =
      folder.write("net.onnx", onnx_writer::model({{node("Add", {"x", "w"}, {"y"}, "a")},
                                                   {value("x", {2, 2})},
                                                   {value("y", {2, 2})},
                                                   {external_tensor("w", {2, 2}, {{"location", "w.bin"}})}}));
  const auto hash = [&](const std::vector<float>& weights) {
    folder.write("w.bin", raw_of<float>(weights));
    const auto model = Model::load(path);
    const auto content = model_content(path);
    EXPECT_TRUE(model.ok() && content.ok());
    if (!model.ok() || !content.ok()) return uint64_t{0};
    EXPECT_EQ((*model)->file_hash(), content->hash);
    EXPECT_EQ(content->files.size(), 2u);
    EXPECT_EQ(content->state, files_state(content->files));
    return content->hash;
  };
  const auto before = hash({1, 2, 3, 4});
  EXPECT_NE(before, 0u);
  EXPECT_NE(hash({1, 2, 3, 5}), before);
  EXPECT_EQ(hash({1, 2, 3, 4}), before);
  folder.write("w.bin", std::string());
  EXPECT_FALSE(model_content(path).ok());
}

TEST(ModelGraph, TakesShapesAndBatchForDynamicDimensions) {
  TestFolder folder;
  const GraphParts parts{
      {node("Relu", {"x"}, {"y"})}, {value("x", {-1, 3, -1})}, {value("y", {-1, 3, -1})}, {}};
  ImportOptions options;
  options.shapes["x"] = {4, 3, 5};
  auto model = load(folder, onnx_writer::model(parts), options);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->graph()->tensor(model->graph()->outputs()[0]).shape, (Shape{4, 3, 5}));
  options = {};
  options.batch = 7;
  model = load(folder,
               onnx_writer::model(GraphParts{
                   {node("Relu", {"x"}, {"y"})}, {value("x", {-1, 3})}, {value("y", {-1, 3})}, {}}),
               options);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->graph()->tensor(model->graph()->outputs()[0]).shape, (Shape{7, 3}));
  EXPECT_EQ(model->options().batch, 7);
}

// Rates and measured times would be those of a batch that no run has.
TEST(ModelGraph, AFixedBatchTakesNoOther) {
  TestFolder folder;
  const auto bytes = onnx_writer::model(
      GraphParts{{node("Relu", {"x"}, {"y"})}, {value("x", {4, 3})}, {value("y", {4, 3})}, {}});
  ImportOptions options;
  options.batch = 8;
  const auto model = load(folder, bytes, options);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->options().batch, std::nullopt);
  EXPECT_THAT(model->notes(), testing::Contains(testing::HasSubstr("no input takes a batch of 8")));
  options.batch = 4;
  const auto same = load(folder, bytes, options);
  ASSERT_NE(same, nullptr);
  EXPECT_EQ(same->options().batch, 4);
}

TEST(ModelGraph, AssumesABatchOfOneAndSaysSo) {
  TestFolder folder;
  const GraphParts parts{{node("Relu", {"x"}, {"y"})}, {value("x", {-1, 3})}, {value("y", {-1, 3})}, {}};
  const auto model = load(folder, onnx_writer::model(parts));
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->graph()->tensor(model->graph()->outputs()[0]).shape, (Shape{1, 3}));
  EXPECT_EQ(model->options().batch, 1);
  EXPECT_EQ(
      model->notes(),
      std::vector<std::string>{"the first dimension of 'x' is not given: batch size 1 is assumed (--batch or "
                               "--shape sets another)"});
  ImportOptions options;
  options.batch = 2;
  EXPECT_TRUE(load(folder, onnx_writer::model(parts), options)->notes().empty());
}

TEST(ModelGraph, GivesDimensionsOfOneNameOneSize) {
  TestFolder folder;
  const GraphParts parts{
      {node("Concat", {"x", "state"}, {"y"}, "", {attribute_int("axis", 2)})},
      {named_value("x", {"batch", "1", "length"}), named_value("state", {"batch", "1", "length"})},
      {named_value("y", {"batch", "1", "both"})},
      {}};
  ImportOptions options;
  options.shapes["x"] = {2, 1, 5};
  const auto model = load(folder, onnx_writer::model(parts), options);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->graph()->tensor(model->graph()->inputs()[1]).shape, (Shape{2, 1, 5}));
  EXPECT_TRUE(model->notes().empty());
}

TEST(ModelGraph, SetsShapesBeforeTheConversionIfAnOperatorNeedsARank) {
  TestFolder folder;
  const GraphParts parts{{node("Squeeze", {"x"}, {"s"}, "squeeze"), node("Conv", {"s", "w"}, {"y"}, "conv")},
                         {named_value("x", {"batch", "2", "1", "6", "width"})},
                         {named_value("y", {"batch", "1", "h", "w"})},
                         {float_tensor("w", {1, 2, 1, 1}, {1, 2})}};
  ImportOptions options;
  options.shapes["x"] = {3, 2, 1, 6, 4};
  const auto model = load(folder, onnx_writer::model(parts), options);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->graph()->tensor(model->graph()->outputs()[0]).shape, (Shape{3, 1, 6, 4}));
}

TEST(ModelGraph, LooksThroughIdentitiesForShapes) {
  TestFolder folder;
  const auto model = load(
      folder,
      onnx_writer::model({{node("Shape", {"x"}, {"s"}), node("Identity", {"s"}, {"t"}),
                           node("Identity", {"x"}, {"z"}, "copy"),
                           node("Reshape", {"z", "t"}, {"r"}, "reshape"), node("Relu", {"r"}, {"y"}, "relu")},
                          {value("x", {2, 3})},
                          {value("y", {2, 3}), value("z", {2, 3})},
                          {}}));
  ASSERT_NE(model, nullptr);
  const Graph& graph = *model->graph();
  EXPECT_EQ(graph.tensor(graph.outputs()[0]).shape, (Shape{2, 3}));
  // The model's output keeps its op.
  EXPECT_EQ(graph.op(graph.tensor(graph.outputs()[1]).producer).name, "copy");
  EXPECT_EQ(model->find_onnx_tensor("z"), graph.outputs()[1]);
}

TEST(ModelGraph, PadsOutputsWhoseSizeDependsOnDataAndGivesTheirShape) {
  TestFolder folder;
  const auto model = load(
      folder, onnx_writer::model({{node("Relu", {"x"}, {"r"}, "relu"), node("NonZero", {"r"}, {"i"}, "nz")},
                                  {value("x", {4, 2})},
                                  {value("i", {2, -1}, kInt64)},
                                  {}}));
  ASSERT_NE(model, nullptr);
  const Graph& graph = *model->graph();
  ASSERT_EQ(graph.outputs().size(), 2u);
  EXPECT_EQ(graph.tensor(graph.outputs()[0]).name, "i");
  EXPECT_EQ(graph.tensor(graph.outputs()[0]).shape, (Shape{2, 8}));
  EXPECT_EQ(graph.tensor(graph.outputs()[1]).name, "i.shape");
  EXPECT_EQ(graph.tensor(graph.outputs()[1]).shape, (Shape{2}));
  ASSERT_EQ(model->sized_outputs().size(), 1u);
  EXPECT_EQ(model->sized_outputs()[0].output, 0u);
  EXPECT_EQ(model->sized_outputs()[0].shape, 1u);
  EXPECT_EQ(model->sized_outputs()[0].open, (Shape{2, -1}));
  EXPECT_EQ(model->notes(),
            std::vector<std::string>{"the size of output 'i' depends on data: it is at most 2x8, "
                                     "and the output 'i.shape' has its shape"});
}

TEST(ModelGraph, KeepsNodesThatExchangeValuesOfUnknownSizeInOneRegion) {
  TestFolder folder;
  const auto model = load(
      folder, onnx_writer::model({{node("Relu", {"x"}, {"r"}, "relu"), node("NonZero", {"r"}, {"i"}, "nz"),
                                   node("ReduceSum", {"i"}, {"y"}, "sum", {attribute_int("keepdims", 0)})},
                                  {value("x", {64})},
                                  {value("y", {}, kInt64)},
                                  {}}));
  ASSERT_NE(model, nullptr);
  const Graph& graph = *model->graph();
  const auto region = std::ranges::find(graph.ops(), "Region", &Op::type);
  ASSERT_NE(region, graph.ops().end());
  EXPECT_EQ(region->onnx_names, (std::vector<std::string>{"nz", "sum"}));
  EXPECT_EQ(graph.op(OpId(0)).name, "relu");
}

TEST(ModelGraph, FoldsShapeArithmeticOnceShapesAreKnown) {
  TestFolder folder;
  ImportOptions options;
  options.batch = 3;
  const auto model =
      load(folder,
           onnx_writer::model({{node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}),
                                node("Concat", {"n", "rest"}, {"t"}, "", {attribute_int("axis", 0)}),
                                node("Reshape", {"x", "t"}, {"y"}, "reshape")},
                               {value("x", {-1, 2, 2})},
                               {value("y", {-1, 4})},
                               {int_tensor("zero", {1}, {0}), int_tensor("rest", {1}, {-1})}}),
           options);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(op_names(*model->graph()), std::vector<std::string>{"reshape"});
  EXPECT_EQ(model->graph()->tensor(model->graph()->outputs()[0]).shape, (Shape{3, 4}));
}

TEST(ModelGraph, KeepsSubgraphsWholeAndTheirWeightsWithThem) {
  TestFolder folder;
  const auto branch = [](const char* type) {
    return graph({{node(type, {"x", "w"}, {"o"})}, {}, {value("o", {2})}, {float_tensor("w", {2}, {1, 2})}});
  };
  const auto model = load(folder, onnx_writer::model({{node("If", {"c"}, {"y"}, "choice",
                                                            {attribute_graph("then_branch", branch("Add")),
                                                             attribute_graph("else_branch", branch("Mul"))})},
                                                      {value("c", {}, kBool), value("x", {2})},
                                                      {value("y", {2})},
                                                      {}}));
  ASSERT_NE(model, nullptr);
  const Graph& g = *model->graph();
  ASSERT_EQ(g.num_ops(), 1u);
  EXPECT_EQ(g.op(OpId(0)).type, "If");
  EXPECT_EQ(g.op(OpId(0)).flops, 2);
  EXPECT_EQ(g.total_param_bytes(), 16);
}

TEST(ModelGraph, MakesAConstantOutputAnOp) {
  TestFolder folder;
  const auto model = load(folder, onnx_writer::model({{node("Relu", {"x"}, {"y"}, "relu")},
                                                      {value("x", {2})},
                                                      {value("y", {2}), value("w", {2})},
                                                      {float_tensor("w", {2}, {1, 2})}}));
  ASSERT_NE(model, nullptr);
  const TensorId w = model->graph()->outputs()[1];
  ASSERT_TRUE(model->graph()->tensor(w).producer.valid());
  EXPECT_EQ(model->graph()->op(model->graph()->tensor(w).producer).type, "Constant");
  EXPECT_EQ(model->graph()->total_param_bytes(), 8);
}

TEST(ModelGraph, IsTheSameEachTime) {
  TestFolder folder;
  const auto first = load(folder, conv_model()), second = load(folder, conv_model());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(op_names(*first->graph()), op_names(*second->graph()));
  EXPECT_EQ(first->file_hash(), second->file_hash());
  for (size_t i = 0; i < first->graph()->num_tensors(); ++i)
    EXPECT_EQ(first->graph()->tensor(TensorId(i)).name, second->graph()->tensor(TensorId(i)).name);
  for (size_t i = 0; i < first->graph()->num_params(); ++i)
    EXPECT_EQ(first->graph()->param(ParamId(i)).name, second->graph()->param(ParamId(i)).name);
}

TEST(ModelGraph, OfAnOpenVinoFileIsThatOfTheOnnxFile) {
  TestFolder folder;
  const auto onnx = load(folder, conv_model());
  ASSERT_NE(onnx, nullptr);
  ov::save_model(onnx->whole(), folder.path("saved.xml"), false);
  const auto saved = Model::load(folder.path("saved.xml"));
  ASSERT_TRUE(saved.ok()) << saved.error().to_string();
  EXPECT_EQ(op_names(*(*saved)->graph()), op_names(*onnx->graph()));
  EXPECT_EQ((*saved)->graph()->total_param_bytes(), onnx->graph()->total_param_bytes());
  EXPECT_EQ((*saved)->graph()->total_flops(), onnx->graph()->total_flops());
}

TEST(ModelCut, HasInputsAndOutputsInTensorOrder) {
  TestFolder folder;
  const auto model = load(folder, conv_model());
  ASSERT_NE(model, nullptr);
  const std::vector<OpId> middle = {model->graph()->find_op("conv")};
  const auto segment = model->cut(middle);
  ASSERT_TRUE(segment.ok());
  EXPECT_EQ(segment->inputs, model->graph()->op(middle[0]).inputs);
  EXPECT_EQ(segment->outputs, std::vector<TensorId>{model->graph()->find_tensor("c")});
  EXPECT_EQ(segment->model->get_parameters()[0]->get_shape(), (ov::Shape{1, 3, 4, 4}));
}

TEST(ModelCut, SharesWeightsWithTheModel) {
  TestFolder folder;
  const auto model = load(folder, conv_model());
  ASSERT_NE(model, nullptr);
  const auto weights = [](const ov::Model& m) {
    std::vector<const void*> data;
    for (const auto& op : m.get_ordered_ops())
      if (const auto c = ov::as_type_ptr<ov::op::v0::Constant>(op); c && ov::shape_size(c->get_shape()) == 54)
        data.push_back(c->get_data_ptr());
    return data;
  };
  const std::vector<OpId> all = {OpId(0), OpId(1), OpId(2)};
  const auto segment = model->cut(all);
  ASSERT_TRUE(segment.ok());
  ASSERT_EQ(weights(*model->whole()).size(), 1u);
  EXPECT_EQ(weights(*segment->model), weights(*model->whole()));
}

TEST(ModelCut, RefusesEmptyForeignAndNonConvexSets) {
  TestFolder folder;
  const auto model = load(folder, conv_model());
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->cut({}).error().to_string(), "a segment needs at least one op");
  EXPECT_EQ(model->cut(std::vector<OpId>{OpId(9)}).error().to_string(),
            "a segment names an op that the model does not have");
  EXPECT_EQ(model->cut(std::vector<OpId>{OpId(0), OpId(2)}).error().to_string(),
            "the segment around op 'conv/Convolution' is not convex: a path leaves it and comes back");
}

uint64_t signature_of_all(const Model& model) {
  std::vector<OpId> all;
  for (size_t i = 0; i < model.graph()->num_ops(); ++i) all.emplace_back(i);
  return model.signature(all);
}

TEST(ModelSignature, DependsOnStructureAndAttributesButNotOnNames) {
  TestFolder folder;
  const auto a = load(folder, conv_model()), b = load(folder, conv_model("other_")),
             c = load(folder, conv_model("", 0));
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(signature_of_all(*a), signature_of_all(*b));
  EXPECT_NE(signature_of_all(*a), signature_of_all(*c));
}

// Engines keep packed weights as they are, so a segment with others takes another time.
TEST(ModelSignature, DependsOnHowWeightsAreStored) {
  TestFolder folder;
  constexpr int kUint8 = 2, kFloat16 = 10;
  const std::vector<int64_t> dims = {256, 512};
  const auto product = [&](const std::string& unpack, const std::vector<std::string>& tensors) {
    return load(folder, onnx_writer::model({{unpack, node("MatMul", {"x", "w"}, {"y"}, "m")},
                                            {value("x", {2, 256})},
                                            {value("y", {2, 512})},
                                            tensors}));
  };
  const std::string cast = node("Cast", {"p"}, {"w"}, "u", {attribute_int("to", onnx_writer::kFloat)});
  const auto of_halves =
      product(cast, {raw_tensor("p", dims, std::string(size_t{256} * 512 * 2, '\0'), kFloat16)});
  const auto of_bytes = product(cast, {raw_tensor("p", dims, std::string(size_t{256} * 512, '\1'), kUint8)});
  const auto of_others = product(cast, {raw_tensor("p", dims, std::string(size_t{256} * 512, '\2'), kUint8)});
  ASSERT_TRUE(of_halves && of_bytes && of_others);
  const auto sign = [](const Model& model) {
    return model.signature(std::vector<OpId>{model.graph()->find_op("m")});
  };
  EXPECT_NE(sign(*of_halves), sign(*of_bytes));
  EXPECT_EQ(sign(*of_bytes), sign(*of_others));
}

// The same block twice in one model, with its ops in another order, and once with other edges.
TEST(ModelSignature, IsThatOfTheBlockWhereverItStands) {
  TestFolder folder;
  const auto model = load(
      folder,
      onnx_writer::model({{node("Relu", {"x"}, {"a1"}, "a1"), node("Sigmoid", {"x"}, {"b1"}, "b1"),
                           node("Sub", {"a1", "b1"}, {"c1"}, "c1"), node("Sigmoid", {"c1"}, {"b2"}, "b2"),
                           node("Relu", {"c1"}, {"a2"}, "a2"), node("Sub", {"a2", "b2"}, {"c2"}, "c2"),
                           node("Relu", {"c2"}, {"a3"}, "a3"), node("Sigmoid", {"c2"}, {"b3"}, "b3"),
                           node("Sub", {"b3", "a3"}, {"y"}, "c3")},
                          {value("x", {2, 2})},
                          {value("y", {2, 2})},
                          {}}));
  ASSERT_NE(model, nullptr);
  const auto sign = [&](const std::vector<std::string>& names) {
    std::vector<OpId> ops;
    for (const auto& name : names) ops.push_back(model->graph()->find_op(name));
    return model->signature(ops);
  };
  EXPECT_EQ(sign({"a1", "b1", "c1"}), sign({"a2", "b2", "c2"}));
  EXPECT_EQ(sign({"a1", "b1", "c1"}), sign({"c1", "b1", "a1"}));
  EXPECT_NE(sign({"a1", "b1", "c1"}), sign({"a3", "b3", "c3"}));
  EXPECT_NE(sign({"a1", "b1"}), sign({"a1", "b1", "c1"}));
}

}  // namespace
}  // namespace heddle
