// Every model of the public corpus loads or is refused with a message that names the op and the reason.
#include <gtest/gtest.h>

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
  int loaded = 0, refused = 0;
  for (size_t i = static_cast<size_t>(GetParam()); i < cases.size(); i += kShards) {
    const auto& c = cases[i];
    const auto expected = golden.find(c.kind + "/" + c.name);
    auto model = load_case(c);
    if (model) {
      ++loaded;
      check_graph(**model, c.name);
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
  std::printf("corpus shard %d of %d: %d load, %d are refused\n", GetParam() + 1, kShards, loaded, refused);
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
