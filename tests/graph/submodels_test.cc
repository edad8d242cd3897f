#include "heddle/graph/submodels.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "heddle/base/random.h"
#include "heddle/graph/graph.h"
#include "heddle/graph/zoo.h"

namespace heddle {
namespace {

// One tensor per op; `inputs[v]` are the ops that op v reads.
std::shared_ptr<const Graph> make(const std::vector<std::vector<int>>& inputs) {
  GraphBuilder builder("test");
  const TensorId in = builder.add_input("in", DType::kU8, {4});
  const ParamId shared = builder.add_param({"shared", 16});
  std::vector<TensorId> made;
  std::vector<bool> read(inputs.size(), false);
  for (size_t v = 0; v < inputs.size(); ++v) {
    Op op;
    op.name = "op" + std::to_string(v);
    op.type = "Test";
    if (inputs[v].empty()) op.inputs.push_back(in);
    for (const int u : inputs[v]) {
      op.inputs.push_back(made[static_cast<size_t>(u)]);
      read[static_cast<size_t>(u)] = true;
    }
    if (v % 2 == 0) op.params.push_back(shared);
    Tensor t;
    t.name = "t" + std::to_string(v);
    t.dtype = DType::kU8;
    t.shape = {8};
    made.push_back(builder.outputs_of(builder.add_op(std::move(op), {t}))[0]);
  }
  for (size_t v = 0; v < inputs.size(); ++v) {
    if (!read[v]) builder.add_output(made[v]);
  }
  auto graph = builder.build();
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return *graph;
}

std::vector<int> numbers(const std::vector<OpId>& ops) {
  std::vector<int> result;
  for (const OpId op : ops) result.push_back(op.value);
  return result;
}

// SortingHat, Figure 6: A to (B, C) to D to (E, F) to G. Every path from A to G passes through D.
std::shared_ptr<const Graph> figure6() { return make({{}, {0}, {0}, {1, 2}, {3}, {3}, {4, 5}}); }

TEST(Submodels, AreThoseOfThePapersExample) {
  const auto graph = figure6();
  EXPECT_EQ(numbers(partition_ops(*graph)), (std::vector<int>{0, 3, 6}));
  const Submodels s = dominator_submodels(*graph, 2);
  EXPECT_EQ(s.of_op, (std::vector<int>{0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(numbers(s.output), (std::vector<int>{3, 6}));
}

TEST(Submodels, FollowTheNumberOfDominators) {
  const auto graph = figure6();
  EXPECT_EQ(dominator_submodels(*graph, 1).count, 3);
  EXPECT_EQ(dominator_submodels(*graph, 3).count, 1);
  EXPECT_EQ(dominator_submodels(*graph, 100).count, 1);
  EXPECT_EQ(dominators_for_size(*graph, 7), 3);
  EXPECT_EQ(dominators_for_size(*graph, 4), 2);
  EXPECT_EQ(dominators_for_size(*graph, 1), 1);  // cannot be finer than the dominators
}

TEST(Submodels, EndWithAPieceWithoutOutputWhereTheModelHasSeveral) {
  const auto graph = make({{}, {0}, {1}, {1}});
  const Submodels s = dominator_submodels(*graph, 1);
  EXPECT_EQ(s.of_op, (std::vector<int>{0, 1, 2, 2}));
  EXPECT_FALSE(s.output[2].valid());
  EXPECT_TRUE(partition_ops(*make({{}, {}})).empty());
  EXPECT_EQ(dominator_submodels(*make({{}, {}}), 1).count, 1);
}

// True if a path from a source to a sink avoids `without`.
bool avoids(const Graph& graph, OpId without) {
  std::vector<bool> reached(graph.num_ops(), false);
  for (const OpId v : graph.topological_order()) {
    if (v == without) continue;
    const auto before = graph.predecessors(v);
    reached[v.index()] = before.empty() || std::any_of(before.begin(), before.end(),
                                                       [&](OpId u) { return reached[u.index()]; });
    if (reached[v.index()] && graph.successors(v).empty()) return true;
  }
  return false;
}

TEST(Submodels, AreCutAtOpsOnEveryPathAndReadOnlyTheOneBefore) {
  Random random(3);
  size_t cuts = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<std::vector<int>> inputs;
    const int64_t n = random.between(1, 14);
    for (int v = 0; v < n; ++v) {
      inputs.emplace_back();
      for (int u = std::max(0, v - 3); u < v; ++u) {
        if (random.chance(0.5)) inputs.back().push_back(u);
      }
    }
    const auto graph = make(inputs);
    const auto found = partition_ops(*graph);
    for (size_t v = 0; v < graph->num_ops(); ++v) {
      const bool cut = std::find(found.begin(), found.end(), OpId(v)) != found.end();
      ASSERT_EQ(cut, !avoids(*graph, OpId(v))) << round << " op " << v;
    }
    cuts += found.size();
    const auto per = static_cast<int>(random.between(1, 4));
    const Submodels s = dominator_submodels(*graph, per);
    // Two implementations must find the same cuts.
    const std::vector<uint8_t> none(graph->num_ops(), 0);
    ASSERT_EQ(dominator_submodels(*graph, none, per).of_op, s.of_op) << round;
    for (const Submodels& other : {articulation_submodels(*graph, per), fused_submodels(*graph, per)}) {
      ASSERT_LE(other.count, dominator_submodels(*graph, 1).count);
      for (const Edge& e : graph->edges()) {
        const int from = other.of_op[e.src.index()], to = other.of_op[e.dst.index()];
        ASSERT_TRUE(to == from || to == from + 1) << round;
      }
    }
    for (const Edge& e : graph->edges()) {
      const int from = s.of_op[e.src.index()], to = s.of_op[e.dst.index()];
      if (from == to) continue;
      ASSERT_EQ(to, from + 1);
      ASSERT_EQ(s.output[static_cast<size_t>(from)], e.src);
    }
  }
  EXPECT_GT(cuts, 100u);
}

// Every layer of OpenLLaMA reads the rotary angles; without the prologue there are few dominators.
TEST(Submodels, LeaveTheAnglesThatEveryLayerReadsOut) {
  const auto graph = build_zoo_graph("openllama-3b", *parse_zoo_params({"layers=4", "seq=32"}));
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const auto prologue = light_prologue(**graph);
  EXPECT_GT(std::count(prologue.begin(), prologue.end(), 1), 3);
  const Submodels plain = dominator_submodels(**graph, 1), rest = dominator_submodels(**graph, prologue, 1);
  EXPECT_GT(rest.count, plain.count + 4);
  for (const Edge& e : (*graph)->edges()) {
    const int from = rest.of_op[e.src.index()], to = rest.of_op[e.dst.index()];
    EXPECT_TRUE(prologue[e.src.index()] || to == from || to == from + 1);
  }
  // If work and sizes are unknown, nothing is light.
  const auto none = light_prologue(*figure6());
  EXPECT_EQ(std::count(none.begin(), none.end(), 1), 0);
}

}  // namespace
}  // namespace heddle
