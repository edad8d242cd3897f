// What is loaded computes what it should, whole and in random convex parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "corpus/corpus.h"
#include "wheel_file.h"

namespace heddle {
namespace {

constexpr double kRtol = 1e-3, kAtol = 1e-5;

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
  // The weights are not trained: most of these models end in the softmax of a thousand equal numbers of 1e10
  // to 1e31. A bit of rounding in one of them, by which a processor's kernels differ, makes of it 0 and 1. So
  // what goes into a last softmax (behind which there may be a reshape) is compared; nothing where there is
  // none.
  std::vector<OpId> last_softmax() const {
    const auto& graph = *model_->graph();
    std::vector<OpId> ops = {graph.tensor(graph.outputs()[0]).producer};
    if (graph.op(ops[0]).type == "Reshape")
      ops.insert(ops.begin(), graph.tensor(graph.op(ops[0]).inputs[0]).producer);
    return graph.op(ops[0]).type == "Softmax" ? ops : std::vector<OpId>();
  }
  std::string wrong(const std::map<TensorId, ov::Tensor>& results) const {
    const auto& graph = *model_->graph();
    if (const auto ops = last_softmax(); !ops.empty())
      return softmax_difference(results.at(graph.op(ops[0]).inputs[0]), expected_, kRtol);
    return difference(results.at(graph.outputs()[0]), expected_, kRtol, kAtol);
  }
  CorpusCase case_;
  std::shared_ptr<const Model> model_;
  std::map<TensorId, ov::Tensor> inputs_;
  ov::Tensor expected_;
};

TEST_P(LightModel, WholeGivesTheReferenceOutput) {
  std::string error;
  const auto results = run_in_parts(*model_, 1, 1, inputs_, &error, last_softmax());
  ASSERT_EQ(error, "");
  EXPECT_EQ(wrong(results), "");
  const auto whole = run_segment(whole_segment(*model_), inputs_).at(model_->graph()->outputs()[0]);
  EXPECT_EQ(whole.get_shape(), expected_.get_shape());
}

TEST_P(LightModel, InTwoToEightRandomConvexPartsGivesTheReferenceOutput) {
  for (int parts = 2; parts <= 8; ++parts) {
    std::string error;
    const auto results = run_in_parts(*model_, parts, static_cast<uint64_t>(parts) * 7919 + 1, inputs_,
                                      &error, last_softmax());
    ASSERT_EQ(error, "");
    EXPECT_EQ(wrong(results), "") << parts << " parts";
  }
}

INSTANTIATE_TEST_SUITE_P(Light, LightModel,
                         testing::Values("test_bvlc_alexnet", "test_densenet121", "test_inception_v1",
                                         "test_inception_v2", "test_resnet50", "test_shufflenet",
                                         "test_squeezenet", "test_vgg19", "test_zfnet512"),
                         [](const auto& param) { return std::string(param.param); });

// Random numbers differ from run to run. Elements of less than a byte have no address to compare.
bool comparable(const Graph& graph) {
  for (const auto& op : graph.ops())
    if (op.type == "RandomUniform" || op.type == "Multinomial") return false;
  for (const auto& tensor : graph.tensors())
    if (dtype_bits(tensor.dtype) < 8) return false;
  return true;
}

// A part's results are rounded to 8 bits of mantissa where it ends; inside a part OpenVINO computes in f32.
bool rounds_to_bf16(const Graph& graph) {
  const auto tensors = graph.tensors();
  return std::any_of(tensors.begin(), tensors.end(), [](const Tensor& t) { return t.dtype == DType::kBF16; });
}

constexpr int kRunShards = 8;
class SmallModels : public testing::TestWithParam<int> {};

// Where a part computes something else than the whole, the cut is wrong, whatever OpenVINO makes of the op.
TEST_P(SmallModels, InPartsEqualTheWhole) {
  int compared = 0, right = 0, only_parts_right = 0;
  auto cases = corpus_cases();
  std::erase_if(cases, [](const CorpusCase& c) { return c.kind == "light"; });
  // Every second case: the rest differs little, and compiling takes its time.
  for (size_t i = static_cast<size_t>(GetParam()); i < cases.size(); i += 2 * kRunShards) {
    auto model = Model::load(cases[i].folder + "/model.onnx");
    if (!model || (*model)->graph()->num_ops() < 2) continue;  // one op cannot be split
    auto inputs = case_inputs(cases[i], **model);
    if (!inputs) continue;
    if (!comparable(*(*model)->graph())) continue;
    std::map<TensorId, ov::Tensor> whole;
    try {
      whole = run_segment(whole_segment(**model), *inputs);
    } catch (const std::exception&) {
      continue;  // OpenVINO's CPU device does not run it at all
    }
    std::string error;
    std::map<TensorId, ov::Tensor> parts;
    const int count = parts_by(i);
    try {
      parts = run_in_parts(**model, count, i, *inputs, &error);
    } catch (const std::exception& e) {
      error = e.what();
    }
    ASSERT_EQ(error, "") << cases[i].name << " in " << count << " parts";
    ++compared;
    bool all = true;
    const double slack = rounds_to_bf16(*(*model)->graph()) ? 20 : 1;
    const double atol = slack > 1 ? 0.02 : kAtol;
    const auto outputs = (*model)->graph()->outputs();
    for (size_t o = 0; o < outputs.size(); ++o) {
      const auto expected = read_tensor(cases[i].folder + "/set_0_output_" + std::to_string(o) + ".pb");
      const auto apart = difference(parts.at(outputs[o]), whole.at(outputs[o]), slack * kRtol, atol);
      // OpenVINO fuses a whole attention into one op that is wrong where a row is masked altogether (0.498
      // for the reference's 0 in test_attention_4d_causal_padded_kv_bf16); the parts are right.
      if (!apart.empty() && expected &&
          difference(parts.at(outputs[o]), expected, slack * kRtol, atol).empty()) {
        ++only_parts_right;
      } else {
        EXPECT_EQ(apart, "") << cases[i].name << " in " << count << " parts";
      }
      all = all && expected && difference(whole.at(outputs[o]), expected, kRtol, kAtol).empty();
    }
    right += all ? 1 : 0;
  }
  std::printf(
      "small models, shard %d of %d: %d compared in parts, %d of them equal the reference too; %d where only "
      "the parts do\n",
      GetParam() + 1, kRunShards, compared, right, only_parts_right);
  EXPECT_LE(only_parts_right, 2);
  EXPECT_GE(compared, 25);
  EXPECT_GE(right, compared * 6 / 10);
}

INSTANTIATE_TEST_SUITE_P(All, SmallModels, testing::Range(0, kRunShards));

// Models whose sizes are values of inputs: with those given, they give the reference's outputs, whole and in parts.
class ModelsWithValues : public testing::TestWithParam<int> {};

TEST_P(ModelsWithValues, GiveTheReferenceOutputsWholeAndInParts) {
  int compared = 0;
  const auto cases = corpus_cases();
  for (size_t i = static_cast<size_t>(GetParam()); i < cases.size(); i += kRunShards) {
    const CorpusCase& c = cases[i];
    const auto model = load_case(c);
    if (!model || (*model)->options().values.empty()) continue;
    const Graph& graph = *(*model)->graph();
    const auto inputs = case_inputs(c, **model);
    if (!inputs || !comparable(graph) || !(*model)->sized_outputs().empty()) continue;
    ++compared;
    for (const int parts : {1, parts_by(i)}) {
      std::string error;
      std::map<TensorId, ov::Tensor> results;
      try {
        results = run_in_parts(**model, parts, i, *inputs, &error);
      } catch (const std::exception& e) {
        error = e.what();
      }
      EXPECT_EQ(error, "") << c.name << " in " << parts << " parts";
      if (!error.empty()) break;
      for (size_t o = 0; o < graph.outputs().size(); ++o) {
        const auto expected = read_tensor(c.folder + "/set_0_output_" + std::to_string(o) + ".pb");
        ASSERT_TRUE(static_cast<bool>(expected)) << c.name;
        EXPECT_EQ(difference(results.at(graph.outputs()[o]), expected, kRtol, kAtol), "")
            << c.name << " in " << parts << " parts";
      }
    }
  }
  std::printf("models with values, shard %d of %d: %d compared\n", GetParam() + 1, kRunShards, compared);
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(All, ModelsWithValues, testing::Range(0, kRunShards));

// The trained models of the wheels rapidocr-onnxruntime and rapidocr, whose inputs are dynamic.
struct OcrModel {
  const char* file;
  Shape shape;
  uint64_t seed;
};

class Ocr : public testing::TestWithParam<OcrModel> {};

TEST_P(Ocr, InPartsEqualsTheWhole) {
  const std::string path = wheel_file(GetParam().file);
  ASSERT_NE(path, "") << GetParam().file << " is in no wheel: run make setup";
  const auto open = Model::load(path);
  ASSERT_FALSE(open.ok());
  EXPECT_NE(open.error().to_string().find("give it with --shape x="), std::string::npos)
      << open.error().to_string();
  ImportOptions options;
  options.shapes["x"] = GetParam().shape;
  const auto loaded = Model::load(path, options);
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  const Model& model = **loaded;
  EXPECT_EQ(model.graph()->tensor(model.graph()->inputs()[0]).shape, GetParam().shape);
  ov::Tensor input(ov::element::f32, ov::Shape(GetParam().shape.begin(), GetParam().shape.end()));
  for (size_t i = 0; i < input.get_size(); ++i)
    input.data<float>()[i] = static_cast<float>(i * 2654435761U % 1000) / 500.0F - 1;
  const std::map<TensorId, ov::Tensor> inputs = {{model.graph()->inputs()[0], input}};
  const TensorId output = model.graph()->outputs()[0];
  const auto whole = run_segment(whole_segment(model), inputs);
  for (const uint64_t seed : {2 * GetParam().seed, 2 * GetParam().seed + 1}) {
    const int parts = parts_by(seed);
    std::string error;
    const auto results = run_in_parts(model, parts, seed, inputs, &error);
    ASSERT_EQ(error, "") << parts << " parts";
    EXPECT_EQ(difference(results.at(output), whole.at(output), kRtol, kAtol), "") << parts << " parts";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Ocr,
    testing::Values(
        OcrModel{"rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", {1, 3, 320, 320}, 0},
        OcrModel{"rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", {1, 3, 48, 320}, 1},
        OcrModel{"rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", {1, 3, 48, 192}, 2},
        OcrModel{"rapidocr/models/PP-OCRv6_det_small.onnx", {1, 3, 320, 320}, 3},
        OcrModel{"rapidocr/models/PP-OCRv6_rec_small.onnx", {1, 3, 48, 320}, 4}),
    [](const auto& param) { return "Model" + std::to_string(param.index); });

}  // namespace
}  // namespace heddle
