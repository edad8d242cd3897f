// Every model of the public corpus loads or is refused with a message that names the op and the reason.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

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

class CorpusShard : public testing::TestWithParam<int> {};

TEST_P(CorpusShard, EachModelLoadsOrIsRefusedWithPlaceAndReason) {
  const auto cases = corpus_cases();
  ASSERT_GT(cases.size(), 2000u);
  const std::string log_path = std::string(HEDDLE_CORPUS) + "/import-" + std::to_string(GetParam()) + ".log";
  std::ofstream log(log_path);
  int loaded = 0, refused = 0;
  std::map<std::string, int> reasons;
  for (size_t i = static_cast<size_t>(GetParam()); i < cases.size(); i += kShards) {
    const auto& c = cases[i];
    auto model = Model::load(c.folder + "/model.onnx");
    if (model) {
      ++loaded;
      check_graph(**model, c.name);
      log << "loads\t" << c.kind << "\t" << c.name << "\t\n";
      continue;
    }
    ++refused;
    ++reasons[reason_class(model.error())];
    log << "refused\t" << c.kind << "\t" << c.name << "\t" << model.error().message() << "\n";
    EXPECT_TRUE(names_a_place(model.error().to_string())) << c.name << ": " << model.error().to_string();
    EXPECT_EQ(model.error().to_string().find("while it read the model"), std::string::npos)
        << c.name << ": " << model.error().to_string();
    EXPECT_NE(model.error().code(), Code::kInternal) << c.name << ": " << model.error().to_string();
  }
  std::printf("corpus shard %d of %d: %d load, %d are refused\n", GetParam() + 1, kShards, loaded, refused);
  for (const auto& [reason, count] : reasons) std::printf("  %4d  %s\n", count, reason.c_str());
  // 71 % of the corpus loads; a shard is a sample of it.
  EXPECT_GE(loaded, static_cast<int>(0.62 * (loaded + refused)));
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
