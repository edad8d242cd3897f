// The node cases of the wheel onnx: what libtorch computes is the reference's output, or the case is refused
// when it is compiled.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <openvino/core/model.hpp>
#include <vector>

#include "corpus/corpus.h"
#include "torch/support.h"

namespace heddle {
namespace {

enum class Outcome {
  kEqual,
  kRefused,
  kNoReference,  // an input or output is no plain tensor of the graph's type
  kImported,     // not the reference's output, but what OpenVINO makes of the imported graph too
  kWrong,
};

struct Verdict {
  Outcome outcome = Outcome::kEqual;
  std::string text;
};

// A unit in the last place of the shorter types is more than the usual tolerance.
std::string apart(const ov::Tensor& actual, const ov::Tensor& expected, DType dtype) {
  if (dtype == DType::kBF16) return difference(actual, expected, 2e-2, 2e-2);
  if (dtype == DType::kF16) return difference(actual, expected, 2e-3, 1e-3);
  return difference(actual, expected, 1e-3, 1e-5);
}

// Whether OpenVINO computes the same from the imported graph.
bool as_imported(const Model& model, const std::vector<TensorValue>& inputs,
                 const std::vector<TensorValue>& outputs) {
  const Graph& graph = *model.graph();
  std::map<TensorId, ov::Tensor> values;
  const ov::Model& whole = *model.whole();
  for (size_t i = 0; i < inputs.size(); ++i)
    values[graph.inputs()[i]] = *as_openvino(inputs[i], whole.input(i).get_element_type());
  try {
    const auto theirs = run_segment(whole_segment(model), values);
    for (size_t o = 0; o < outputs.size(); ++o) {
      const auto it = theirs.find(graph.outputs()[o]);
      if (it == theirs.end()) continue;  // a model input
      const auto ours = as_openvino(outputs[o], it->second.get_element_type());
      if (!ours || !apart(*ours, it->second, outputs[o].dtype).empty()) return false;
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

Verdict run_case(const CorpusCase& c, const std::shared_ptr<const Model>& model, RuntimeDevice& device) {
  const Graph& graph = *model->graph();
  std::vector<TensorValue> inputs, outputs;
  if (graph.num_ops() == 0) return {Outcome::kNoReference, "no op"};
  auto segment = compile_whole(device, model);
  if (!segment.ok()) {
    const bool refused = segment.error().code() == Code::kUnsupported;
    return {refused ? Outcome::kRefused : Outcome::kWrong, segment.error().to_string()};
  }
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const auto value = read_value(c.folder + "/set_0_input_" + std::to_string(i) + ".pb");
    const Tensor& port = graph.tensor(graph.inputs()[i]);
    if (!value || value->dtype != port.dtype || value->shape != port.shape)
      return {Outcome::kNoReference, "input " + std::to_string(i)};
    inputs.push_back(*value);
  }
  auto made = run_whole(**segment, *model, inputs);
  if (!made.ok()) return {Outcome::kWrong, made.error().to_string()};
  outputs = std::move(made).value();
  for (size_t o = 0; o < outputs.size(); ++o) {
    const auto expected = read_tensor(c.folder + "/set_0_output_" + std::to_string(o) + ".pb");
    if (!expected) return {Outcome::kNoReference, "output " + std::to_string(o)};
    const auto actual = as_openvino(outputs[o], expected.get_element_type());
    if (!actual) return {Outcome::kNoReference, "output " + std::to_string(o)};
    const std::string text = apart(*actual, expected, outputs[o].dtype);
    if (text.empty()) continue;
    const bool imported = as_imported(*model, inputs, outputs);
    return {imported ? Outcome::kImported : Outcome::kWrong, "output " + std::to_string(o) + ": " + text};
  }
  return {};
}

// Cases whose imported graph says something else than the reference, and where OpenVINO's own result is no
// measure: a shift to the right becomes a division (towards zero, and by zero undefined), a DFT gets another
// axis, one pool a window more, and casts are held at the largest number though they were to give NaN.
bool imported_otherwise(const std::string& name) {
  return name.starts_with("test_bitshift_right_int") || name == "test_dft_axis" ||
         name.find("no_saturate") != std::string::npos ||
         name == "test_maxpool_2d_ceil_output_size_reduce_by_one";
}

// Values inside have sizes that only a run shows, which this backend does not take.
bool has_region(const Graph& graph) {
  return std::any_of(graph.ops().begin(), graph.ops().end(),
                     [](const Op& op) { return op.type == "Region" || op.type == "OnnxRegion"; });
}

TEST(NodeCases, MostEqualTheReferenceAndTheRestIsRefused) {
  std::map<Outcome, int> counts;
  int loaded = 0;
  const auto device = open_device(torch_cpu());
  ASSERT_TRUE(device.ok()) << device.error().to_string();
  std::ofstream log(std::string(HEDDLE_CORPUS) + "/torch.log");
  for (const auto& c : corpus_cases("node")) {
    const auto model = Model::load(c.folder + "/model.onnx");
    if (!model.ok()) continue;
    const Verdict verdict = run_case(c, *model, **device);
    if (has_region(*(*model)->graph())) {
      EXPECT_EQ(verdict.outcome, Outcome::kRefused) << c.name << ": " << verdict.text;
      continue;
    }
    ++loaded;
    ++counts[verdict.outcome];
    if (verdict.outcome == Outcome::kWrong) {
      std::printf("differs: %s: %s\n", c.name.c_str(), verdict.text.c_str());
      EXPECT_TRUE(imported_otherwise(c.name)) << c.name << ": " << verdict.text;
    }
    log << static_cast<int>(verdict.outcome) << '\t' << c.name << '\t' << verdict.text << '\n';
    if (verdict.outcome == Outcome::kImported)
      std::printf("as OpenVINO computes it: %s: %s\n", c.name.c_str(), verdict.text.c_str());
  }
  std::printf(
      "node cases: %d load; %d equal the reference, %d are refused, %d differ from it as OpenVINO does, "
      "%d in other ways, %d have no plain reference\n",
      loaded, counts[Outcome::kEqual], counts[Outcome::kRefused], counts[Outcome::kImported],
      counts[Outcome::kWrong], counts[Outcome::kNoReference]);
  EXPECT_GE(counts[Outcome::kEqual] * 100, loaded * 95);
  EXPECT_LE(counts[Outcome::kImported], 33);
}

}  // namespace
}  // namespace heddle
