// Inputs that set sizes, where the shapes that a file declares leave only one value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/model_files.h"
#include "graph/onnx_writer.h"
#include "heddle/graph/model.h"

namespace heddle {
namespace {

using testing::HasSubstr;
namespace ow = onnx_writer;
using Numbers = std::vector<double>;

struct SizeCase {
  const char* name;
  std::string op;
  std::vector<int64_t> in, operand, out;
  std::vector<std::string> attributes;
  Numbers expected;  // empty: the declared shapes do not determine it
};

class DeterminedValues : public testing::TestWithParam<SizeCase> {};

TEST_P(DeterminedValues, FollowFromDeclaredShapes) {
  const SizeCase& c = GetParam();
  const TestFolder folder;
  const auto path =
      folder.write("net.onnx", ow::model({{ow::node(c.op, {"x", "v"}, {"y"}, "node", c.attributes)},
                                          {ow::value("x", c.in), ow::value("v", c.operand, ow::kInt64)},
                                          {ow::value("y", c.out)},
                                          {}}));
  const auto model = Model::load(path);
  if (c.expected.empty()) {
    ASSERT_FALSE(model.ok());
    EXPECT_THAT(model.error().message(), HasSubstr("--value v=V1"));
    EXPECT_THAT(model.error().message(), HasSubstr("of node 'node' (" + c.op + ")"));
    return;
  }
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_EQ((*model)->options().values.at("v"), c.expected);
  ASSERT_EQ((*model)->graph()->inputs().size(), 1U);
  EXPECT_EQ((*model)->graph()->tensor((*model)->graph()->outputs()[0]).shape, c.out);
  ASSERT_FALSE((*model)->notes().empty());
  EXPECT_THAT((*model)->notes().back(), HasSubstr("the input 'v' is a constant of the plan: "));
  EXPECT_THAT((*model)->notes().back(), HasSubstr("follows from the shapes that the file declares"));
}

const std::vector<std::string> kDropped = {ow::attribute_int("keepdims", 0)};
INSTANTIATE_TEST_SUITE_P(
    All, DeterminedValues,
    testing::Values(SizeCase{"Reshape", "Reshape", {2, 6}, {3}, {3, 2, 2}, {}, {3, 2, 2}},
                    SizeCase{"ReshapeToAnOpenShape", "Reshape", {2, 6}, {3}, {3, 2, -1}, {}, {}},
                    SizeCase{"Expand", "Expand", {1, 3}, {2}, {4, 3}, {}, {4, 3}},
                    SizeCase{"Tile", "Tile", {2, 3}, {2}, {4, 9}, {}, {2, 3}},
                    SizeCase{"ReduceOne", "ReduceSum", {3, 2, 2}, {1}, {3, 1, 2}, {}, {1}},
                    SizeCase{"ReduceAndDrop", "ReduceSum", {3, 2, 5}, {1}, {3, 5}, kDropped, {1}},
                    SizeCase{"ReduceEitherOfTwo", "ReduceSum", {3, 2, 2}, {1}, {3, 2}, kDropped, {}},
                    SizeCase{"Unsqueeze", "Unsqueeze", {3, 4}, {1}, {3, 1, 4}, {}, {1}},
                    SizeCase{"Squeeze", "Squeeze", {3, 1, 4}, {1}, {3, 4}, {}, {1}},
                    SizeCase{"Padding", "Pad", {3}, {2}, {5}, {}, {}}),
    [](const auto& test) { return test.param.name; });

TEST(DeterminedValuesOf, GivenOnesComeFirst) {
  const TestFolder folder;
  const auto path =
      folder.write("net.onnx", ow::model({{ow::node("Reshape", {"x", "v"}, {"y"}, "node")},
                                          {ow::value("x", {2, 6}), ow::value("v", {2}, ow::kInt64)},
                                          {ow::value("y", {3, 4})},
                                          {}}));
  const auto model = Model::load(path, {.values = {{"v", {4, 3}}}});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_EQ((*model)->options().values.at("v"), (Numbers{4, 3}));
}

// Two nodes read it, and their shapes say different things.
TEST(DeterminedValuesOf, ContradictionsDetermineNothing) {
  const TestFolder folder;
  const auto model = Model::load(folder.write(
      "net.onnx", ow::model({{ow::node("Reshape", {"x", "v"}, {"y"}), ow::node("Reshape", {"x", "v"}, {"z"})},
                             {ow::value("x", {2, 6}), ow::value("v", {2}, ow::kInt64)},
                             {ow::value("y", {3, 4}), ow::value("z", {4, 3})},
                             {}})));
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.error().message(), HasSubstr("--value v=V1,V2 (the shape of node 'y' (Reshape))"));
}

}  // namespace
}  // namespace heddle
