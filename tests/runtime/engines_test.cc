// Engines that run the whole model alone, and how far their outputs are from float32.
#include <gtest/gtest.h>

#include "heddle/graph/model.h"
#include "heddle/runtime/run.h"
#include "run/whole_engine.h"
#include "wheel_file.h"

namespace heddle {
namespace {

TEST(Engines, HaveNames) {
  for (const Engine engine : {Engine::kOpenVino, Engine::kOpenVinoF32, Engine::kOnnxRuntime,
                              Engine::kOpenVinoHetero, Engine::kOpenVinoAuto})
    EXPECT_EQ(engine_named(engine_name(engine)), engine);
  EXPECT_EQ(engine_named("tensorrt"), std::nullopt);
}

TEST(Engines, HeteroAndAutoGiveTheOutputsOfTheModel) {
  const std::string path = wheel_model("ch_ppocr_mobile_v2.0_cls_infer.onnx");
  if (path.empty()) GTEST_SKIP() << "the wheel rapidocr-onnxruntime is not in .venv";
  ImportOptions options;
  options.shapes = {{"x", {1, 3, 48, 192}}};
  const auto model = Model::load(path, options).value();
  const auto inputs = make_inputs(*model->graph(), {.files = {}, .seed = 3}).value();
  // In the type that OpenVINO takes here by itself.
  const auto alone = open_whole(Engine::kOpenVino, *model, false, inputs).value();
  ASSERT_TRUE(alone->infer().ok());
  const auto expected = alone->outputs().value();
  for (const Engine engine : {Engine::kOpenVinoHetero, Engine::kOpenVinoAuto}) {
    for (const bool throughput : {false, true}) {
      auto whole = open_whole(engine, *model, throughput, inputs);
      ASSERT_TRUE(whole.ok()) << engine_name(engine) << ": " << whole.error().to_string();
      ASSERT_TRUE((*whole)->infer().ok());
      ASSERT_TRUE((*whole)->infer_many(6).ok());
      EXPECT_LT(output_error((*whole)->outputs().value(), expected).mean(), 0.05) << engine_name(engine);
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
    EXPECT_LT(error.largest(), 1e-3) << name;
  }
}

}  // namespace
}  // namespace heddle
