// What is loaded computes what it should, whole and in random convex parts.
#include <gtest/gtest.h>

#include <filesystem>

#include "corpus/corpus.h"

namespace heddle {
namespace {

constexpr double kRtol = 1e-3, kAtol = 1e-5;

// Inputs of one data set by tensor id; nothing when a file is missing or of another type.
std::optional<std::map<TensorId, ov::Tensor>> case_inputs(const CorpusCase& c, const Model& model) {
  std::map<TensorId, ov::Tensor> values;
  const auto inputs = model.graph()->inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto tensor = read_tensor(c.folder + "/set_0_input_" + std::to_string(i) + ".pb");
    const auto& port = model.whole()->inputs()[i];
    if (!tensor || tensor.get_element_type() != port.get_element_type() || tensor.get_shape() != port.get_shape()) return std::nullopt;
    values[inputs[i]] = tensor;
  }
  return values;
}

class LightModel : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    for (auto& c : corpus_cases("light"))
      if (c.name == GetParam()) case_ = c;
    ASSERT_FALSE(case_.name.empty());
    auto model = Model::load(case_.folder + "/model.onnx");
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    model_ = *model;
    auto inputs = case_inputs(case_, *model_);
    ASSERT_TRUE(inputs.has_value());
    inputs_ = *inputs;
    expected_ = read_tensor(case_.folder + "/set_0_output_0.pb");
    ASSERT_TRUE(static_cast<bool>(expected_));
  }
  CorpusCase case_;
  std::shared_ptr<const Model> model_;
  std::map<TensorId, ov::Tensor> inputs_;
  ov::Tensor expected_;
};

TEST_P(LightModel, WholeGivesTheReferenceOutput) {
  const auto results = run_segment(whole_segment(*model_), inputs_);
  EXPECT_EQ(difference(results.at(model_->graph()->outputs()[0]), expected_, kRtol, kAtol), "");
}

TEST_P(LightModel, InTwoToEightRandomConvexPartsGivesTheReferenceOutput) {
  for (int parts = 2; parts <= 8; ++parts) {
    std::string error;
    const auto results = run_in_parts(*model_, parts, static_cast<uint64_t>(parts) * 7919 + 1, inputs_, &error);
    ASSERT_EQ(error, "");
    EXPECT_EQ(difference(results.at(model_->graph()->outputs()[0]), expected_, kRtol, kAtol), "") << parts << " parts";
  }
}

INSTANTIATE_TEST_SUITE_P(Light, LightModel,
                         testing::Values("test_bvlc_alexnet", "test_densenet121", "test_inception_v1", "test_inception_v2",
                                         "test_resnet50", "test_shufflenet", "test_squeezenet", "test_vgg19", "test_zfnet512"),
                         [](const auto& param) { return std::string(param.param); });

constexpr int kShards = 8;
class SmallModels : public testing::TestWithParam<int> {};

// Where a part computes something else than the whole, the cut is wrong, whatever OpenVINO makes of the op.
TEST_P(SmallModels, InPartsEqualTheWhole) {
  int compared = 0, right = 0;
  auto cases = corpus_cases();
  std::erase_if(cases, [](const CorpusCase& c) { return c.kind == "light"; });
  for (size_t i = static_cast<size_t>(GetParam()); i < cases.size(); i += kShards) {
    auto model = Model::load(cases[i].folder + "/model.onnx");
    // One op cannot be split; every eighth of those is run all the same.
    if (!model || (*model)->graph()->num_ops() < 2) continue;
    auto inputs = case_inputs(cases[i], **model);
    if (!inputs) continue;
    bool random = false;
    for (const auto& op : (*model)->graph()->ops()) random = random || op.type == "RandomUniform" || op.type == "Multinomial";
    if (random) continue;
    std::map<TensorId, ov::Tensor> whole;
    try {
      whole = run_segment(whole_segment(**model), *inputs);
    } catch (const std::exception&) {
      continue;  // OpenVINO's CPU device does not run it at all
    }
    std::string error;
    std::map<TensorId, ov::Tensor> parts;
    const int count = 2 + static_cast<int>(i % 3);
    try {
      parts = run_in_parts(**model, count, i, *inputs, &error);
    } catch (const std::exception& e) {
      error = e.what();
    }
    ASSERT_EQ(error, "") << cases[i].name;
    ++compared;
    bool all = true;
    const auto outputs = (*model)->graph()->outputs();
    for (size_t o = 0; o < outputs.size(); ++o) {
      EXPECT_EQ(difference(parts.at(outputs[o]), whole.at(outputs[o]), kRtol, kAtol), "") << cases[i].name;
      const auto expected = read_tensor(cases[i].folder + "/set_0_output_" + std::to_string(o) + ".pb");
      all = all && expected && difference(whole.at(outputs[o]), expected, kRtol, kAtol).empty();
    }
    right += all ? 1 : 0;
  }
  std::printf("small models, shard %d of %d: %d compared in parts, %d of them equal the reference too\n", GetParam() + 1, kShards,
              compared, right);
  EXPECT_GE(compared, 30);
  EXPECT_GE(right, compared * 6 / 10);
}

INSTANTIATE_TEST_SUITE_P(All, SmallModels, testing::Range(0, kShards));

}  // namespace
}  // namespace heddle
