// What a problem counts for tensors of narrow types, and for quantised models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "heddle/cluster/cluster_yaml.h"
#include "heddle/graph/quantised.h"
#include "heddle/report/explain.h"
#include "small_model.h"

namespace heddle {
namespace {

using testing::HasSubstr;

class TensorTypes : public test::SmallModelTest {
 protected:
  void SetUp() override {
    SmallModelTest::SetUp();
    settings_.coarsening = Coarsening::kNone;
    settings_.measure = false;
  }
  // The small model on devices of this machine in these types; nothing if they do not have them.
  std::optional<Session> in_types(std::vector<std::string> types) {
    settings_.variants.precisions = std::move(types);
    auto session = open_session(model(), settings_, {});
    if (!session.ok()) return std::nullopt;
    return std::move(*session);
  }
  static int64_t bytes_of(const Graph& graph, const char* tensor) {
    return graph.tensor(graph.find_tensor(tensor)).bytes;
  }
};

TEST_F(TensorTypes, CountTwoBytesWhereAllDevicesComputeInOneNarrowType) {
  const auto session = in_types({"bf16"});
  if (!session) GTEST_SKIP() << "this processor has no bf16";
  const Graph& own = *session->loaded.graph;
  const Graph& counted = *session->problem.graph;
  EXPECT_EQ(bytes_of(counted, "m"), bytes_of(own, "m") / 2);
  EXPECT_EQ(counted.tensor(counted.find_tensor("r")).dtype, DType::kBF16);
  // The model's input and output, and the parameters, of which OpenVINO keeps the float32 values.
  EXPECT_EQ(bytes_of(counted, "x"), bytes_of(own, "x"));
  EXPECT_EQ(bytes_of(counted, "y"), bytes_of(own, "y"));
  EXPECT_EQ(counted.total_param_bytes(), own.total_param_bytes());
}

TEST_F(TensorTypes, CountFourBytesWhereTypesDiffer) {
  const auto session = in_types({"f32", "bf16"});
  if (!session) GTEST_SKIP() << "this processor has no bf16";
  EXPECT_EQ(session->problem.graph, session->units);
  EXPECT_EQ(bytes_of(*session->problem.graph, "m"), bytes_of(*session->loaded.graph, "m"));
}

// A plan with tensors in two bytes runs in its own types and in float32.
TEST_F(TensorTypes, OfAPlanAreThoseThatItRunsWith) {
  const auto session = in_types({"bf16"});
  if (!session) GTEST_SKIP() << "this processor has no bf16";
  Session own = *session;
  const auto planned = make_plan(own, "auto", {.time_limit_s = 0.5}, {});
  ASSERT_TRUE(planned.ok()) << planned.error().to_string();
  const auto record = run_plan(own.problem, planned->plan, own.loaded.model, {.warmups = 0, .repeats = 1});
  ASSERT_TRUE(record.ok()) << record.error().to_string();
  EXPECT_TRUE(record->verified);
  EXPECT_TRUE(record->right()) << record->max_rel_error;
}

// The first product reads quantised values, the second one does not.
TEST_F(TensorTypes, QuantisedProductsCountAtTheInt8Rate) {
  using namespace onnx_writer;
  const auto weights = [](const char* name, int64_t rows, int64_t columns) {
    return float_tensor(name, {rows, columns},
                        std::vector<float>(static_cast<size_t>(rows * columns), 0.25F));
  };
  std::ofstream(folder_ / "model.onnx", std::ios::binary) << onnx_writer::model(
      {{node("QuantizeLinear", {"x", "s"}, {"q"}, "quantise"),
        node("DequantizeLinear", {"q", "s"}, {"d"}, "dequantise"), node("MatMul", {"d", "w"}, {"m"}, "first"),
        node("Relu", {"m"}, {"r"}, "relu"), node("MatMul", {"r", "v"}, {"y"}, "second")},
       {value("x", {256, 1024})},
       {value("y", {256, 1024})},
       {weights("w", 1024, 1024), weights("v", 1024, 1024), float_tensor("s", {}, {0.5F})}});
  settings_.cluster =
      parse_cluster_yaml("{name: c, hosts: [{name: h}], devices: [{name: card, class: T4}]}", "c.yaml")
          .value();
  auto session = open_session({.path = (folder_ / "model.onnx").string(), .import = {}}, settings_, {});
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  const Graph& units = *session->problem.graph;
  const auto first = units.find_op("first"), second = units.find_op("second");
  ASSERT_TRUE(first.valid() && second.valid());
  EXPECT_TRUE(is_int8(units.op(first)));
  EXPECT_FALSE(is_int8(units.op(second)));
  EXPECT_LT(session->problem.costs->us(first, DeviceId(0)), session->problem.costs->us(second, DeviceId(0)));
  const auto planned = make_plan(*session, "auto", {.time_limit_s = 0.5}, {});
  ASSERT_TRUE(planned.ok()) << planned.error().to_string();
  const auto text =
      explanation_text(explain(session->problem, planned->plan, planned->timeline, planned->bound));
  EXPECT_THAT(text, HasSubstr("Quantised model: 1 of"));
  EXPECT_THAT(text, HasSubstr("card 130 TOP/s"));
}

}  // namespace
}  // namespace heddle
