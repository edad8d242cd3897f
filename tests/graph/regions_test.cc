// Parts of a model that OpenVINO does not import: ONNX Runtime runs them inside OpenVINO's model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <openvino/runtime/core.hpp>

#include "graph/model_files.h"
#include "graph/onnx_writer.h"
#include "heddle/graph/model.h"
#include "heddle/graph/region_faults.h"

namespace heddle {
namespace {

using namespace onnx_writer;
using testing::HasSubstr;

std::string attribute_string(std::string_view name, std::string_view v) {
  return bytes(1, name) + bytes(4, v) + number(20, 3);
}
std::string attribute_strings(std::string_view name, const std::vector<std::string>& values) {
  std::string out = bytes(1, name);
  for (const auto& v : values) out += bytes(9, v);
  return out + number(20, 8);
}
// Numbers from 0 on to texts.
std::string texts_of(const std::string& x, const std::string& y, const std::vector<std::string>& texts) {
  std::vector<int64_t> keys;
  for (size_t i = 0; i < texts.size(); ++i) keys.push_back(static_cast<int64_t>(i));
  return node("LabelEncoder", {x}, {y}, y,
              {attribute_ints("keys_int64s", keys), attribute_strings("values_strings", texts)},
              "ai.onnx.ml");
}
std::string numbers_of(const std::string& x, const std::string& y, const std::vector<std::string>& texts) {
  std::vector<int64_t> values;
  for (size_t i = 0; i < texts.size(); ++i) values.push_back(static_cast<int64_t>(i) + 1);
  return node("LabelEncoder", {x}, {y}, y,
              {attribute_strings("keys_strings", texts), attribute_ints("values_int64s", values),
               bytes(1, "default_int64") + number(3, 0) + number(20, 2)},
              "ai.onnx.ml");
}
std::string ml_model(const GraphParts& parts) {
  return model(parts, 20) + bytes(8, bytes(1, "ai.onnx.ml") + number(2, 4));
}

class Regions : public testing::Test {
 protected:
  std::shared_ptr<const Model> load(const std::string& file) {
    const auto model = Model::load(folder_.write("m.onnx", file));
    EXPECT_TRUE(model.ok()) << model.error().to_string();
    return model.ok() ? *model : nullptr;
  }
  std::string refusal(const std::string& file) {
    const auto model = Model::load(folder_.write("m.onnx", file));
    return model.ok() ? "it loads" : model.error().message();
  }

  // The first output as numbers, on one core, where OpenVINO loses exceptions.
  static Result<std::vector<double>> run(const std::shared_ptr<ov::Model>& model,
                                         const std::vector<int64_t>& x) {
    static auto* const core = new ov::Core();
    auto compiled = core->compile_model(model, "CPU", ov::inference_num_threads(1));
    auto request = compiled.create_infer_request();
    ov::Tensor input(ov::element::i64, {x.size()});
    std::copy(x.begin(), x.end(), input.data<int64_t>());
    request.set_input_tensor(input);
    const RegionFaults faults;
    request.infer();
    if (!faults.status().ok()) return faults.status().error();
    const auto output = request.get_output_tensor(0);
    std::vector<double> values;
    for (size_t i = 0; i < output.get_size(); ++i)
      values.push_back(output.get_element_type() == ov::element::i64
                           ? static_cast<double>(output.data<int64_t>()[i])
                           : static_cast<double>(static_cast<const uint8_t*>(output.data())[i]));
    return values;
  }

  TestFolder folder_;
};

TEST_F(Regions, NodesThatExchangeTextsAreOneOpAndGiveItsResult) {
  const auto model =
      load(ml_model({{texts_of("x", "s", {"ab", "b", "abc"}),
                      node("RegexFullMatch", {"s"}, {"m"}, "match", {attribute_string("pattern", "a.*")}),
                      node("Not", {"m"}, {"y"}, "not")},
                     {value("x", {4}, kInt64)},
                     {value("y", {4}, kBool)},
                     {}}));
  ASSERT_NE(model, nullptr);
  const Graph& graph = *model->graph();
  ASSERT_EQ(graph.num_ops(), 2u);
  EXPECT_EQ(graph.op(OpId(0)).type, "OnnxRegion");
  EXPECT_EQ(graph.op(OpId(0)).onnx_names, (std::vector<std::string>{"s", "match"}));
  EXPECT_EQ(*run(model->whole(), {0, 1, 2, 1}), (std::vector<double>{0, 1, 0, 1}));
  const std::vector<OpId> first = {OpId(0)};
  EXPECT_EQ(*run(model->cut(first)->model, {0, 1, 2, 1}), (std::vector<double>{1, 0, 1, 0}));
  EXPECT_NE(model->signature(first), 0u);
}

// OpenVINO's converter does not read exclude_outside.
TEST_F(Regions, AResizeThatOpenVinoComputesOtherwiseIsOne) {
  const auto resize = [](int64_t exclude, const std::vector<std::string>& tensors) {
    return model({{node("Resize", {"x", "", "scales"}, {"r"}, "resize",
                        {attribute_string("mode", "cubic"), attribute_int("exclude_outside", exclude)}),
                   node("Add", {"r", "w"}, {"y"}, "add")},
                  {value("x", {1, 1, 10, 10})},
                  {value("y", {1, 1, 8, 8})},
                  tensors},
                 20);
  };
  const std::string scales = float_tensor("scales", {4}, {1, 1, .8F, .8F}),
                    inside = float_tensor("w", {1}, {1});
  for (const int64_t exclude : {0, 1}) {
    const auto model = load(resize(exclude, {scales, inside}));
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->graph()->op(OpId(0)).type == "OnnxRegion", exclude == 1);
  }
  folder_.write("w.bin", raw_of<float>({1}));
  const std::string outside = external_tensor("w", {1}, {{"location", "w.bin"}});
  EXPECT_EQ(refusal(resize(0, {scales, outside})), "it loads");
  EXPECT_THAT(refusal(resize(1, {scales, outside})), HasSubstr("save the model with its weights inside"));
}

// Each text has as many pieces as words, so the second dimension depends on data.
GraphParts pieces(const std::vector<std::string>& texts) {
  return {{texts_of("x", "s", texts), node("StringSplit", {"s"}, {"p", "n"}, "split"),
           numbers_of("p", "q", {"a", "b", "c"}),
           node("ReduceSum", {"q", "axis"}, {"y"}, "sum", {attribute_int("keepdims", 0)})},
          {value("x", {3}, kInt64)},
          {value("y", {3}, kInt64)},
          {int_tensor("axis", {1}, {1})}};
}

TEST_F(Regions, SizesThatVaryWithDataStayInside) {
  const auto model = load(ml_model(pieces({"a", "a b", "a b c", "c"})));
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->graph()->num_ops(), 1u);
  EXPECT_EQ(*run(model->whole(), {0, 1, 2}), (std::vector<double>{1, 3, 6}));
  EXPECT_EQ(*run(model->whole(), {3, 3, 0}), (std::vector<double>{3, 3, 1}));
}

TEST_F(Regions, ASizeThatNoSampleGaveEndsTheRunWithItsNode) {
  const auto model = load(ml_model(pieces({"a b", "b c", "c c", "c a", "a", "a b c"})));
  ASSERT_NE(model, nullptr);
  ASSERT_EQ(model->notes().size(), 1u);
  EXPECT_EQ(
      model->notes()[0],
      "sizes of 'q' were found by running the model on sample inputs: a request that gives other sizes is "
      "refused");
  EXPECT_EQ(*run(model->whole(), {0, 1, 4}), (std::vector<double>{3, 5, 1}));
  for (int again = 0; again < 3; ++again) {
    const auto other = run(model->whole(), {0, 5, 1});
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().to_string(),
              "node 'q' (LabelEncoder): its output 'q' has the shape 3x3, but the model was imported with "
              "[3,2], which "
              "sample inputs gave; the plan holds for inputs that give this size");
  }
}

TEST_F(Regions, RefusalsNameTheNodeAndBothReasons) {
  EXPECT_EQ(
      refusal(model({{node("RegexFullMatch", {"x"}, {"y"}, "match", {attribute_string("pattern", "a")})},
                     {value("x", {2}, kString)},
                     {value("y", {2}, kBool)},
                     {}},
                    20)),
      "node 'match' (RegexFullMatch): OpenVINO does not support the operator 'RegexFullMatch-20'; as a part "
      "that "
      "ONNX Runtime runs: input 'x' has the type string, which no plan can hold; export the model with "
      "tensors of "
      "numbers there");
  EXPECT_EQ(refusal(model({{node("BitCast", {"x"}, {"y"}, "bits", {attribute_int("to", 11)})},
                           {value("x", {2}, kInt64)},
                           {value("y", {2}, 11)},
                           {}},
                          26)),
            "node 'bits' (BitCast): OpenVINO does not support the operator 'BitCast-26'; as a part that ONNX "
            "Runtime "
            "runs: node 'bits' (BitCast): needs all digits of 'x' (i64), but OpenVINO keeps 32 bits; export "
            "the model "
            "with f32 or i32 there");
  EXPECT_EQ(refusal(model({{node("Nothing", {"x"}, {"y"}, "own", {}, "my.domain")},
                           {value("x", {2})},
                           {value("y", {2})},
                           {}})),
            "node 'own' (Nothing): OpenVINO does not support the operator 'my.domain.Nothing'; as a part "
            "that ONNX Runtime "
            "runs: ONNX Runtime failed at loading: This is an invalid model. In Node, (\"own\", Nothing, "
            "\"my.domain\", "
            "-1) : (\"x\": tensor(float),) -> (\"y\",) , Error No opset import for domain 'my.domain'; "
            "export the model "
            "with other operators");
}

TEST_F(Regions, MalformedRegexpEndsTheImportNotTheProcess) {
  EXPECT_EQ(refusal(ml_model({{texts_of("x", "s", {"a"}), node("RegexFullMatch", {"s"}, {"y"}, "match",
                                                               {attribute_string("pattern", "(")})},
                              {value("x", {4}, kInt64)},
                              {value("y", {4}, kBool)},
                              {}})),
            "node 'match' (RegexFullMatch): OpenVINO does not support the operator 'RegexFullMatch-20'; as a "
            "part that "
            "ONNX Runtime runs: ONNX Runtime failed at loading: Exception during initialization: re_.ok() "
            "was false. "
            "Invalid regex pattern: (; export the model with other operators");
}

}  // namespace
}  // namespace heddle
