// Variables of OpenVINO's models as inputs and outputs, and pairs of an ONNX model that are kept as state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "heddle/graph/model.h"
#include "variable_model.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace ow = onnx_writer;

std::vector<std::string> names_of(const Graph& graph, std::span<const TensorId> ids) {
  std::vector<std::string> names;
  for (const auto id : ids) names.push_back(graph.tensor(id).name);
  return names;
}

TEST(ModelStates, AVariableIsAnInputAndAnOutput) {
  const TestFolder folder;
  const auto model = Model::load(write_variable_model(folder, "net"));
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const Graph& graph = *(*model)->graph();
  EXPECT_THAT(names_of(graph, graph.inputs()), ElementsAre("x", "v"));
  ASSERT_EQ((*model)->states().size(), 1U);
  const auto& state = (*model)->states()[0];
  EXPECT_EQ(state.input, "v");
  EXPECT_EQ(state.output, "y");
  float first[2];
  ASSERT_EQ(state.initial.size(), sizeof first);
  std::memcpy(first, state.initial.data(), sizeof first);
  EXPECT_THAT(first, ElementsAre(3, 3));
  ASSERT_EQ((*model)->notes().size(), 1U);
  EXPECT_THAT((*model)->notes()[0], HasSubstr("the variable 'v' is an input and the output 'y'"));
  // Both can be in different parts.
  std::vector<OpId> all;
  for (size_t i = 0; i < graph.num_ops(); ++i) all.emplace_back(i);
  EXPECT_TRUE((*model)->cut(all).ok());
}

TEST(ModelStates, AVariableThatIsNotGivenBeginsWithZeros) {
  const TestFolder folder;
  const auto model =
      Model::load(write_variable_model(folder, "net", {.begins = VariableModel::Begins::kUnknown}));
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_TRUE((*model)->states()[0].initial.empty());
}

TEST(ModelStates, OthersAreRefused) {
  const TestFolder folder;
  const auto computed =
      Model::load(write_variable_model(folder, "computed", {.begins = VariableModel::Begins::kComputed}));
  EXPECT_THAT(
      computed.error().message(),
      HasSubstr("the variable 'v', which keeps state between runs, begins with a value that is computed"));
  const auto never = Model::load(write_variable_model(folder, "never", {.assigned = false}));
  EXPECT_THAT(never.error().message(), HasSubstr("is read 1 time and assigned 0 times"));
}

// As a cache of keys and values does: the next run would have to take a larger one.
TEST(ModelStates, AVariableThatGrowsCannotBeKept) {
  const TestFolder folder;
  ImportOptions options;
  options.shapes["v"] = {1, 4};
  const auto model = Model::load(
      write_variable_model(folder, "grows", {.begins = VariableModel::Begins::kUnknown, .grows = true}),
      options);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const auto states = states_with(**model, {});
  ASSERT_FALSE(states.ok());
  EXPECT_EQ(states.error().message(),
            "the state 'v' is f32 of shape 1x4, and the output 'y' is f32 of shape 1x6; expected equal "
            "ones, so "
            "that it can be the next request's input");
}

TEST(ModelStates, PairsMustFit) {
  const TestFolder folder;
  const auto model = Model::load(folder.write(
      "net.onnx", ow::model({{ow::node("Add", {"s", "x"}, {"sum"}), ow::node("ReduceMax", {"sum"}, {"top"})},
                             {ow::value("x", {1, 2}), ow::value("s", {1, 2})},
                             {ow::value("sum", {1, 2}), ow::value("top", {1, 1})},
                             {}})));
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  const auto error = [&model](const Pairs& pairs) {
    const auto states = states_with(**model, pairs);
    return states.ok() ? "" : states.error().message();
  };
  EXPECT_EQ(error({{"s", "sum"}, {"x", "sum"}}), "");
  EXPECT_EQ(error({{"t", "sum"}}), "the model has no input 't' to keep as state; its inputs are 'x' and 's'");
  EXPECT_THAT(error({{"s", "summ"}}), HasSubstr("no output 'summ' to keep as state (did you mean 'sum'?)"));
  EXPECT_EQ(
      error({{"s", "top"}}),
      "the state 's' is f32 of shape 1x2, and the output 'top' is f32 of shape 1x1; expected equal ones, so "
      "that it can be the next request's input");
  EXPECT_EQ(error({{"s", "sum"}, {"s", "sum"}}), "the input 's' is kept as state twice");
}

}  // namespace
}  // namespace heddle
