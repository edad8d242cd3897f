// Engines that run the whole model alone, and how far their outputs are from float32.
#include <gtest/gtest.h>

#include <limits>

#include "heddle/graph/model.h"
#include "heddle/runtime/run.h"
#include "run/output_error.h"
#include "run/whole_engine.h"
#include "wheel_file.h"

namespace heddle {
namespace {

TensorValue floats(const std::vector<float>& numbers) {
  TensorValue value = make_tensor(DType::kF32, {static_cast<int64_t>(numbers.size())}).value();
  std::copy(numbers.begin(), numbers.end(), reinterpret_cast<float*>(value.data.get()));
  return value;
}

OutputError error_of(const std::vector<float>& actual, const std::vector<float>& expected) {
  const TensorValue a[] = {floats(actual)}, b[] = {floats(expected)};
  return output_error(a, b);
}

TEST(OutputError, IsAPartOfTheOutputsRange) {
  const OutputError none = error_of({1, 2, 5}, {1, 2, 5});
  EXPECT_EQ(none.largest, 0);
  EXPECT_EQ(none.mean, 0);
  EXPECT_EQ(none.cosine, 1);
  const OutputError some = error_of({1, 2.4F, 5}, {1, 2, 5});
  EXPECT_NEAR(some.largest, 0.1, 1e-6);
  EXPECT_NEAR(some.mean, 0.1 / 3, 1e-6);
  EXPECT_GT(some.cosine, 0.99);
  EXPECT_LT(some.cosine, 1);
  // A constant output has no range: its size counts.
  EXPECT_NEAR(error_of({4, 4.4F}, {4, 4}).largest, 0.1, 1e-6);
}

TEST(OutputError, NumbersThatAreNotFiniteCount) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(error_of({1, nan, inf}, {1, nan, inf}).largest, 0);
  EXPECT_EQ(error_of({1, nan}, {1, 2}).largest, inf);
  EXPECT_EQ(error_of({1, inf}, {1, 2}).mean, inf);
  EXPECT_EQ(error_of({1, 2}, {1, 2, 3}).largest, inf);  // another shape
  EXPECT_EQ(output_error({}, std::vector{floats({1})}).cosine, 0);
}

TEST(OutputError, IsTheWorstOfAllOutputs) {
  const TensorValue actual[] = {floats({0, 1}), floats({0, 1.5F})},
                    expected[] = {floats({0, 1}), floats({0, 1})};
  EXPECT_NEAR(output_error(actual, expected).largest, 0.5, 1e-6);
}

TEST(Engines, HaveNames) {
  for (const Engine engine : {Engine::kOpenVino, Engine::kOpenVinoF32, Engine::kOnnxRuntime,
                              Engine::kOpenVinoHetero, Engine::kOpenVinoAuto})
    EXPECT_EQ(engine_named(engine_name(engine)), engine);
  EXPECT_EQ(engine_named("tensorrt"), std::nullopt);
}

TEST(Engines, HeteroAndAutoGiveTheOutputsOfTheModel) {
  const std::string path = wheel_model("light_squeezenet.onnx");
  if (path.empty()) GTEST_SKIP() << "the wheel onnx is not in .venv";
  const auto model = Model::load(path).value();
  const auto inputs = make_inputs(*model->graph(), {.files = {}, .seed = 3}).value();
  const auto expected = reference_outputs(*model, inputs).value();
  for (const Engine engine : {Engine::kOpenVinoHetero, Engine::kOpenVinoAuto}) {
    for (const bool throughput : {false, true}) {
      auto whole = open_whole(engine, *model, throughput, inputs);
      ASSERT_TRUE(whole.ok()) << engine_name(engine) << ": " << whole.error().to_string();
      ASSERT_TRUE((*whole)->infer().ok());
      ASSERT_TRUE((*whole)->infer_many(6).ok());
      EXPECT_LT(output_error((*whole)->outputs().value(), expected).largest, 0.05) << engine_name(engine);
    }
  }
}

// A session takes the inputs by name, whatever their order and number, and gives every output.
TEST(Engines, OnnxRuntimeGivesTheOutputsOfOpenVino) {
  for (const char* name : {"light_inception_v1.onnx", "light_shufflenet.onnx", "light_densenet121.onnx"}) {
    const std::string path = wheel_model(name);
    if (path.empty()) GTEST_SKIP() << "the wheel onnx is not in .venv";
    const auto model = Model::load(path);
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    const auto inputs = make_inputs(*(*model)->graph(), {.files = {}, .seed = 3}).value();
    auto whole = open_whole_onnxruntime(**model, false, inputs);
    ASSERT_TRUE(whole.ok()) << whole.error().to_string();
    for (int i = 0; i < 2; ++i) {
      const auto ran = (*whole)->infer();
      ASSERT_TRUE(ran.ok()) << ran.error().to_string();
    }
    const auto outputs = (*whole)->outputs();
    ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
    const auto expected = reference_outputs(**model, inputs).value();
    const OutputError error = output_error(*outputs, expected);
    EXPECT_LT(error.largest, 1e-3) << name;
  }
}

}  // namespace
}  // namespace heddle
