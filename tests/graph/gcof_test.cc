// GCOF: the paper's example, every rule on random graphs, and the rule language's errors.
#include "heddle/graph/gcof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "heddle/base/random.h"
#include "heddle/graph/coarsen.h"
#include "heddle/graph/zoo.h"
#include "quotient.h"

namespace heddle {
namespace {

using Edges = std::vector<std::pair<int, int>>;

std::shared_ptr<const Graph> typed_graph(const std::vector<std::string>& types, const Edges& edges) {
  GraphBuilder builder("typed");
  const TensorId in = builder.add_input("in", DType::kF32, {4});
  std::vector<std::vector<TensorId>> reads(types.size());
  for (size_t v = 0; v < types.size(); ++v) {
    Op op;
    op.name = "op" + std::to_string(v);
    op.type = types[v];
    op.flops = 1;
    const OpId id = builder.add_op(std::move(op),
                                   {{.name = "t" + std::to_string(v), .dtype = DType::kF32, .shape = {4}}});
    for (const auto& [a, b] : edges) {
      if (a == static_cast<int>(v)) reads[static_cast<size_t>(b)].push_back(builder.outputs_of(id)[0]);
    }
  }
  for (size_t v = 0; v < types.size(); ++v) {
    if (reads[v].empty()) reads[v] = {in};
    builder.set_inputs(OpId(v), reads[v]);
  }
  return builder.build().value();
}

FusionRules table_one() { return parse_fusion_rules("conv bn\nconv bn relu\nconv bn add relu\n").value(); }

// Figure 7: add feeds a relu and a convolution (multi-output). The upper branch ends in add, relu; the lower
// one is conv, bn, conv, bn. The last four become conv o bn o add o relu, the first two conv o bn.
TEST(Gcof, GroupsThePapersFigureSeven) {
  //                                       0      1       2      3     4       5     6      7
  const auto graph = typed_graph({"add", "relu", "conv", "bn", "conv", "bn", "add", "relu"},
                                 {{0, 1}, {0, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {1, 6}, {6, 7}});
  const auto fusion = fuse_ops(*graph, table_one());
  const auto& g = fusion;
  EXPECT_NE(g[0], g[1]);
  EXPECT_EQ(g[2], g[3]);
  EXPECT_NE(g[3], g[4]);
  EXPECT_EQ((std::set<int>{g[4], g[5], g[6], g[7]}).size(), 1u);
  EXPECT_EQ((std::set<int>{g[0], g[1], g[2], g[4]}).size(), 4u);
}

// Ops that only match the beginning of a rule are released.
TEST(Gcof, ReleasesWhatNeverBecameARule) {
  const auto graph = typed_graph({"add", "relu", "x"}, {{0, 1}, {1, 2}});
  EXPECT_EQ(fuse_ops(*graph, table_one()), (std::vector<int>{0, 1, 2}));
  // If a longer rule stays incomplete, a complete shorter rule in it still applies.
  const auto longer = typed_graph({"conv", "bn", "add", "x"}, {{0, 1}, {1, 2}, {2, 3}});
  EXPECT_EQ(fuse_ops(*longer, table_one()), (std::vector<int>{0, 0, 1, 2}));
}

TEST(Gcof, LeavesMultiOutputsAndModelOutputsApart) {
  const auto graph = typed_graph({"conv", "bn", "bn"}, {{0, 1}, {0, 2}});
  EXPECT_EQ((std::set<int>{graph->num_ops() ? fuse_ops(*graph, table_one())[0] : 0,
                           fuse_ops(*graph, table_one())[1], fuse_ops(*graph, table_one())[2]})
                .size(),
            3u);
  GraphBuilder builder("output");
  const auto in = builder.add_input("in", DType::kF32, {1});
  const auto conv = builder.add_op({.name = "c", .type = "conv", .inputs = {in}},
                                   {{.name = "t", .dtype = DType::kF32, .shape = {1}}});
  const auto made = builder.outputs_of(conv)[0];
  builder.add_op({.name = "b", .type = "bn", .inputs = {made}},
                 {{.name = "u", .dtype = DType::kF32, .shape = {1}}});
  builder.add_output(made);
  EXPECT_EQ(fuse_ops(*builder.build().value(), table_one()), (std::vector<int>{0, 1}));
}

// Every group matches a rule in some order along its edges, is convex, and the quotient is acyclic.
TEST(Gcof, GroupsOfRandomGraphsMatchRulesAndAreConvex) {
  Random random(3);
  const char* const types[] = {"conv", "bn", "relu", "add", "x"};
  const auto rules = table_one();
  int fused = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> kinds;
    Edges edges;
    for (int v = 0; v < 24; ++v) {
      kinds.emplace_back(types[random.below(5)]);
      for (int u = std::max(0, v - 4); u < v; ++u) {
        if (random.chance(0.35)) edges.push_back({u, v});
      }
    }
    const auto graph = typed_graph(kinds, edges);
    const auto fusion = fuse_ops(*graph, rules);
    ASSERT_TRUE(quotient_is_acyclic(*graph, fusion));
    ASSERT_TRUE(coarsen(*graph, fusion).ok());
    std::map<int, std::vector<OpId>> groups;
    for (const OpId v : graph->topological_order()) groups[fusion[v.index()]].push_back(v);
    for (const auto& [group, ops] : groups) {
      if (ops.size() == 1) continue;
      ++fused;
      EXPECT_TRUE(is_convex(*graph, ops));
      std::multiset<std::string> found;
      for (const OpId v : ops) found.insert(graph->op(v).type);
      const bool matches = std::any_of(rules.rules.begin(), rules.rules.end(), [&](const auto& r) {
        return found == std::multiset<std::string>(r.kinds.begin(), r.kinds.end());
      });
      EXPECT_TRUE(matches);
      for (size_t i = 0; i + 1 < ops.size(); ++i) {
        for (const OpId s : graph->successors(ops[i])) EXPECT_EQ(fusion[s.index()], group);
      }
    }
  }
  EXPECT_GT(fused, 50);
}

TEST(Gcof, DefaultRulesCoarsenTheZoo) {
  for (const char* name : {"resnet-50", "gpt3-350m", "swin-t"}) {
    const auto graph = build_zoo_graph(name).value();
    const auto fusion = fuse_ops(*graph, default_fusion_rules());
    const auto coarse = coarsen(*graph, fusion);
    ASSERT_TRUE(coarse.ok()) << coarse.error().to_string();
    EXPECT_LT((*coarse)->num_ops(), 0.9 * static_cast<double>(graph->num_ops())) << name;
    EXPECT_DOUBLE_EQ((*coarse)->total_flops(), graph->total_flops());
    EXPECT_EQ((*coarse)->total_param_bytes(), graph->total_param_bytes());
  }
}

TEST(FusionRules, ReadsKindsAndTypes) {
  const auto rules = parse_fusion_rules("conv = Convolution | GroupConvolution # both\n\n conv Relu\r\n");
  ASSERT_TRUE(rules.ok()) << rules.error().to_string();
  ASSERT_EQ(rules->rules.size(), 1u);
  EXPECT_EQ(rules->rules[0].line, 3);
  const auto graph = typed_graph({"GroupConvolution", "Relu"}, {{0, 1}});
  EXPECT_EQ(fuse_ops(*graph, *rules), (std::vector<int>{0, 0}));
}

TEST(FusionRules, ErrorsNameTheLine) {
  const std::pair<const char*, const char*> wrong[] = {
      {"conv bn\nconv", "line 2: a rule needs two"},
      {"conv bn\nconv bn", "line 2: the rule is there twice"},
      {"a = X\na = Y", "line 2: kind 'a' is made twice"},
      {"a = X\nb = X", "line 2: type 'X' is of kind 'a'"},
      {"a b\na = X", "line 2: kind 'a' is made after"},
      {"a = X |", "expected a type after '|'"},
      {"a = X Y", "expected KIND = TYPE"},
      {"a =", "expected KIND = TYPE"},
      {"a = X\nX b", "line 2: 'X' is a type of kind 'a'"},
      {"a | b", "no place in a rule"},
      {"a a a a a a a a a a a a a a a a a", "at most 16"},
  };
  for (const auto& [text, message] : wrong) {
    const auto rules = parse_fusion_rules(text);
    ASSERT_FALSE(rules.ok()) << text;
    EXPECT_NE(rules.error().to_string().find(message), std::string::npos) << rules.error().to_string();
  }
  EXPECT_TRUE(parse_fusion_rules("").ok());
  EXPECT_FALSE(read_fusion_rules("/nonexistent/rules").ok());
}

}  // namespace
}  // namespace heddle
