// ImportOptions::split_bytes: which products are split, what the pieces contain, and that nothing else
// changes. cli.ColdVerb and cli.Workflow test that the pieces compute the same.
#include <gtest/gtest.h>

#include <numeric>
#include <openvino/core/model.hpp>
#include <openvino/op/constant.hpp>

#include "graph/model_files.h"
#include "graph/onnx_writer.h"
#include "heddle/graph/model.h"

namespace heddle {
namespace {

using namespace onnx_writer;

std::vector<float> counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

constexpr int64_t kRows = 300, kColumns = 40;  // 48,000 bytes

// x [2, 40] times the transposed w [300, 40], followed by a Relu.
std::string transposed_model() {
  return model({{node("Gemm", {"x", "w"}, {"m"}, "gemm", {attribute_int("transB", 1)}),
                 node("Relu", {"m"}, {"y"}, "relu")},
                {value("x", {2, kColumns})},
                {value("y", {2, kRows})},
                {float_tensor("w", {kRows, kColumns}, counting(kRows * kColumns))}});
}

struct Piece {
  std::vector<size_t> shape;
  std::vector<float> values;  // empty if not constant
  const void* data = nullptr;
};

// The constant inputs of the products, in the graph's order.
std::vector<Piece> pieces_of(const Model& model) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < model.graph()->num_ops(); ++i) {
    if (model.graph()->op(OpId(i)).type != "MatMul") continue;
    const std::vector<OpId> alone = {OpId(i)};
    const auto segment = model.cut(alone);
    EXPECT_TRUE(segment.ok());
    for (const auto& op : segment->model->get_ordered_ops()) {
      if (std::string_view(op->get_type_name()) != "MatMul") continue;
      Piece piece{op->get_input_shape(1), {}, nullptr};
      if (const auto c = ov::as_type_ptr<ov::op::v0::Constant>(op->get_input_node_shared_ptr(1))) {
        piece.values = c->cast_vector<float>();
        piece.data = c->get_data_ptr();
      }
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

std::shared_ptr<const Model> load(const TestFolder& folder, const std::string& content, int64_t bytes) {
  ImportOptions options;
  options.split_bytes = bytes;
  auto model = Model::load(folder.write("model.onnx", content), options);
  EXPECT_TRUE(model.ok()) << (model ? "" : model.error().to_string());
  return model ? *model : nullptr;
}

TEST(ModelSplit, ATransposedMatrixIsSplitByRowsOfItsOwnMemory) {
  TestFolder folder;
  const auto whole = load(folder, transposed_model(), 0);
  const auto split = load(folder, transposed_model(), 20'000);
  ASSERT_TRUE(whole && split);
  EXPECT_EQ(pieces_of(*whole).size(), 1u);
  const auto pieces = pieces_of(*split);
  // 300 rows are five blocks of 64, the last one shorter. In three pieces, one of two whole blocks would be too large.
  ASSERT_EQ(pieces.size(), 4u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(pieces[i].shape, (std::vector<size_t>{64, kColumns}));
  EXPECT_EQ(pieces[3].shape, (std::vector<size_t>{108, kColumns}));
  std::vector<float> joined;
  for (const Piece& p : pieces) joined.insert(joined.end(), p.values.begin(), p.values.end());
  EXPECT_EQ(joined, counting(kRows * kColumns));
  EXPECT_EQ(static_cast<const float*>(pieces[1].data),
            static_cast<const float*>(pieces[0].data) + 64 * kColumns);
  const Graph& g = *split->graph();
  EXPECT_EQ(g.num_ops(), whole->graph()->num_ops() + 4);
  EXPECT_EQ(g.total_param_bytes(), whole->graph()->total_param_bytes());
  EXPECT_EQ(g.total_flops(), whole->graph()->total_flops());
  // The whole model still has what the file has.
  EXPECT_EQ(split->whole()->get_ordered_ops().size(), whole->whole()->get_ordered_ops().size());
}

TEST(ModelSplit, AMatrixIsSplitByColumns) {
  TestFolder folder;
  const std::string content = model({{node("MatMul", {"x", "w"}, {"y"})},
                                     {value("x", {2, 5, kColumns})},
                                     {value("y", {2, 5, kRows})},
                                     {float_tensor("w", {kColumns, kRows}, counting(kRows * kColumns))}});
  const auto split = load(folder, content, 30'000);
  ASSERT_TRUE(split);
  const auto pieces = pieces_of(*split);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].shape, (std::vector<size_t>{kColumns, 128}));
  EXPECT_EQ(pieces[1].shape, (std::vector<size_t>{kColumns, 172}));
  // The concatenation's output has the file's tensor name.
  const Graph& g = *split->graph();
  const TensorId joint = split->find_onnx_tensor("y");
  ASSERT_EQ(g.outputs()[0], joint);
  EXPECT_EQ(g.tensor(joint).shape, (Shape{2, 5, kRows}));
  EXPECT_EQ(g.op(g.tensor(joint).producer).type, "Concat");
}

// The light models in the wheel onnx have weights that repeat one number.
TEST(ModelSplit, AMatrixOfOneNumberIsNeverMadeWhole) {
  TestFolder folder;
  const std::string one = attribute_tensor("value", float_tensor("", {1}, {0.5F}));
  const std::string content = model({{node("ConstantOfShape", {"s"}, {"w"}, "", {one}),
                                      node("Gemm", {"x", "w"}, {"y"}, "gemm", {attribute_int("transB", 1)})},
                                     {value("x", {1, 1000})},
                                     {value("y", {1, 1000})},
                                     {int_tensor("s", {2}, {1000, 1000})}});
  const auto split = load(folder, content, 2'048'000);
  ASSERT_TRUE(split);
  const auto pieces = pieces_of(*split);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].shape, (std::vector<size_t>{512, 1000}));
  EXPECT_EQ(pieces[1].shape, (std::vector<size_t>{488, 1000}));
  EXPECT_TRUE(pieces[0].values.empty());
}

TEST(ModelSplit, NoPieceIsLargerThanAskedForUnlessABlockIs) {
  TestFolder folder;
  for (const int64_t limit : {11'000, 20'000, 20'480, 24'000, 30'000, 47'999}) {
    for (const Piece& piece : pieces_of(*load(folder, transposed_model(), limit)))
      EXPECT_LE(static_cast<int64_t>(piece.values.size() * sizeof(float)), limit);
  }
}

TEST(ModelSplit, WhatIsSmallOrNoConstantStays) {
  TestFolder folder;
  // At the limit: no split. With a limit smaller than a block of 64: one piece per block, five in all.
  EXPECT_EQ(pieces_of(*load(folder, transposed_model(), 48'000)).size(), 1u);
  EXPECT_EQ(pieces_of(*load(folder, transposed_model(), 1)).size(), 5u);
  const std::string inputs = model({{node("MatMul", {"x", "w"}, {"y"})},
                                    {value("x", {200, 200}), value("w", {200, 200})},
                                    {value("y", {200, 200})},
                                    {}});
  EXPECT_EQ(load(folder, inputs, 1000)->graph()->num_ops(), 1u);
  ImportOptions wrong;
  wrong.split_bytes = -1;
  EXPECT_FALSE(Model::load(folder.path("model.onnx"), wrong).ok());
}

TEST(ModelSplit, MappedWeightsStayInTheFile) {
  TestFolder folder;
  const std::string path = folder.write("mapped.onnx", transposed_model());
  ImportOptions options;
  options.split_bytes = 20'000;
  options.map_weights = true;
  const auto mapped = Model::load(path, options);
  ASSERT_TRUE(mapped.ok()) << mapped.error().to_string();
  std::vector<float> joined;
  for (const Piece& p : pieces_of(**mapped)) joined.insert(joined.end(), p.values.begin(), p.values.end());
  EXPECT_EQ(joined, counting(kRows * kColumns));
}

// Caches of model hubs use such links.
TEST(MappedModel, MayBeALinkToAFileOfAnotherFolderAndName) {
  TestFolder folder;
  std::filesystem::create_directories(folder.path("blobs"));
  std::filesystem::create_directories(folder.path("snapshots/1 2"));
  folder.write("blobs/0123abcd", transposed_model());
  std::filesystem::create_symlink("../../blobs/0123abcd", folder.path("snapshots/1 2/model.onnx"));
  const auto mapped = Model::load(folder.path("snapshots/1 2/model.onnx"), {.map_weights = true});
  ASSERT_TRUE(mapped.ok()) << mapped.error().to_string();
  EXPECT_EQ(pieces_of(**mapped)[0].values, counting(kRows * kColumns));
}

}  // namespace
}  // namespace heddle
