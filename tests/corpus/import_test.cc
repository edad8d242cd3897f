// Every model of the public corpus loads or is refused with a message that names the op and the reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "corpus/corpus.h"

namespace heddle {
namespace {

constexpr int kShards = 8;

// A refusal names a node, op, input, output, initializer or operator in quotes.
bool names_a_place(const std::string& message) {
  for (const char* place :
       {"node '", "op '", "input '", "output '", "initializer '", "operator '", "value '", "(util::Sequence"})
    if (message.find(place) != std::string::npos) return true;
  return false;
}

void check_graph(const Model& model, const std::string& name) {
  const Graph& graph = *model.graph();
  EXPECT_EQ(graph.inputs().size(), model.whole()->inputs().size()) << name;
  EXPECT_EQ(graph.outputs().size(), model.whole()->outputs().size()) << name;
  for (const auto& op : graph.ops()) {
    EXPECT_FALSE(op.onnx_names.empty()) << name << ": op " << op.name << " belongs to no ONNX node";
    EXPECT_GE(op.flops, 0) << name;
  }
}

bool has_regions(const Graph& graph) {
  return std::ranges::any_of(graph.ops(), [](const Op& op) { return op.type == "OnnxRegion"; });
}

// Values of its inputs follow from the shapes that the file declares.
bool has_determined_values(const Model& model) {
  return std::ranges::any_of(model.notes(), [](const std::string& note) {
    return note.find("follows from the shapes that the file declares") != std::string::npos;
  });
}

using Values = std::map<TensorId, ov::Tensor>;

std::string differences(const CorpusCase& c, const Model& model, const Values& results,
                        const Values* others) {
  std::string text;
  const auto outputs = model.graph()->outputs();
  for (size_t o = 0; o < outputs.size(); ++o) {
    const auto expected = others != nullptr
                              ? others->at(outputs[o])
                              : read_tensor(c.folder + "/set_0_output_" + std::to_string(o) + ".pb");
    if (!expected) continue;  // of a type that the corpus's reader does not know
    const double slack =
        expected.get_element_type().bitwidth() < 32 && expected.get_element_type().is_real() ? 20 : 1;
    text += difference(results.at(outputs[o]), expected, slack * 1e-3, slack * 1e-5);
  }
  return text;
}

// The model gives the corpus's outputs, whole and in random convex parts. True if it was compared.
bool check_outputs(const CorpusCase& c, const Model& model, uint64_t seed) {
  const auto inputs = case_inputs(c, model);
  if (!inputs) return false;
  try {
    const auto whole = run_segment(whole_segment(model), *inputs);
    const auto again = run_segment(whole_segment(model), *inputs);
    if (!differences(c, model, whole, &again).empty() || c.name.starts_with("test_training_dropout"))
      return false;  // random numbers
    EXPECT_EQ(differences(c, model, whole, nullptr), "") << c.name;
    if (model.graph()->num_ops() < 2) return true;
    const int parts = parts_by(seed);
    std::string error;
    const auto results = run_in_parts(model, parts, seed, *inputs, &error);
    EXPECT_EQ(error, "") << c.name << " in " << parts << " parts";
    if (error.empty()) {
      EXPECT_EQ(differences(c, model, results, nullptr), "") << c.name << " in " << parts << " parts";
    }
  } catch (const std::exception& e) {
    ADD_FAILURE() << c.name << ": " << e.what();
  }
  return true;
}

std::string line_of(const CorpusCase& c, const Error& error) {
  return c.kind + "/" + c.name + "\t" + error.message();
}

// Lines of refused.tsv by model.
std::map<std::string, std::string> golden_refusals() {
  std::map<std::string, std::string> golden;
  std::ifstream file(HEDDLE_REFUSED);
  for (std::string line; std::getline(file, line);) golden[line.substr(0, line.find('\t'))] = line;
  return golden;
}

class CorpusShard : public testing::TestWithParam<int> {};

// If a change is wanted: cat build/onnx-corpus/refused-*.tsv | LC_ALL=C sort > tests/corpus/refused.tsv
TEST_P(CorpusShard, EachModelLoadsOrIsRefusedWithPlaceAndReason) {
  const auto cases = corpus_cases();
  ASSERT_GT(cases.size(), 2000u);
  const auto golden = golden_refusals();
  std::ofstream refusals(std::string(HEDDLE_CORPUS) + "/refused-" + std::to_string(GetParam()) + ".tsv");
  int loaded = 0, determined = 0, with_values = 0, refused = 0, regions = 0, compared = 0,
      compared_values = 0;
  for (size_t i = static_cast<size_t>(GetParam()); i < cases.size(); i += kShards) {
    const auto& c = cases[i];
    const auto expected = golden.find(c.kind + "/" + c.name);
    auto model = load_case(c);
    if (model) {
      ++loaded;
      check_graph(**model, c.name);
      if (has_determined_values(**model)) {
        ++determined;
        compared_values += check_outputs(c, **model, i) ? 1 : 0;
      } else {
        with_values += (*model)->options().values.empty() ? 0 : 1;
      }
      if (has_regions(*(*model)->graph())) {
        ++regions;
        compared += check_outputs(c, **model, i) ? 1 : 0;
      }
      EXPECT_EQ(expected, golden.end()) << c.name << " loads, but refused.tsv lists it";
      continue;
    }
    ++refused;
    const std::string line = line_of(c, model.error());
    refusals << line << "\n";
    EXPECT_EQ(line, expected == golden.end() ? "loads" : expected->second);
    EXPECT_TRUE(names_a_place(model.error().to_string())) << c.name << ": " << model.error().to_string();
    EXPECT_EQ(model.error().to_string().find("while it read the model"), std::string::npos)
        << c.name << ": " << model.error().to_string();
    EXPECT_NE(model.error().code(), Code::kInternal) << c.name << ": " << model.error().to_string();
  }
  std::printf(
      "corpus shard %d of %d: %d load (%d with given values of inputs; %d with values that declared shapes "
      "determine, "
      "of which %d were compared; %d with parts that ONNX Runtime runs, of which %d were compared), %d are "
      "refused\n",
      GetParam() + 1, kShards, loaded, with_values, determined, compared_values, regions, compared, refused);
}

INSTANTIATE_TEST_SUITE_P(All, CorpusShard, testing::Range(0, kShards));

TEST(CorpusKinds, LightAndPyTorchModelsAllLoad) {
  for (const auto& c : corpus_cases()) {
    if (c.kind != "light" && c.kind != "pytorch-converted" && c.kind != "pytorch-operator") continue;
    auto model = Model::load(c.folder + "/model.onnx");
    EXPECT_TRUE(model.ok()) << c.name << ": " << model.error().to_string();
  }
}

}  // namespace
}  // namespace heddle
