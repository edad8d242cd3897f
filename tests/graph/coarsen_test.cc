#include "heddle/graph/coarsen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "heddle/base/random.h"
#include "heddle/graph/analysis.h"
#include "quotient.h"
#include "random_dag.h"

namespace heddle {
namespace {

size_t count_groups(const std::vector<int>& group) {
  return std::set<int>(group.begin(), group.end()).size();
}

// Checks the invariants of a grouping and of its coarse graph.
void check_grouping(const Graph& fine, const std::vector<int>& group) {
  ASSERT_EQ(group.size(), fine.num_ops());
  ASSERT_TRUE(quotient_is_acyclic(fine, group));
  const auto coarse = coarsen(fine, group);
  ASSERT_TRUE(coarse.ok()) << coarse.error().to_string();
  EXPECT_EQ((*coarse)->num_ops(), count_groups(group));
  EXPECT_NEAR((*coarse)->total_flops(), fine.total_flops(), 1e-9 * fine.total_flops());
  EXPECT_EQ((*coarse)->total_param_bytes(), fine.total_param_bytes());
  EXPECT_EQ((*coarse)->inputs().size(), fine.inputs().size());
  EXPECT_EQ((*coarse)->outputs().size(), fine.outputs().size());
  std::vector<bool> seen(fine.num_ops(), false);
  for (size_t k = 0; k < (*coarse)->num_ops(); ++k) {
    const Op& unit = (*coarse)->op(OpId(k));
    EXPECT_TRUE(is_convex(fine, unit.members));
    for (const OpId member : unit.members) {
      EXPECT_EQ(group[member.index()], static_cast<int>(k));
      EXPECT_FALSE(seen[member.index()]);
      seen[member.index()] = true;
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), static_cast<std::ptrdiff_t>(fine.num_ops()));
  // The quotient's edges carry the bytes of the tensors that cross.
  for (const Edge& e : (*coarse)->edges()) {
    int64_t bytes = 0;
    for (const Tensor& tensor : fine.tensors()) {
      if (!tensor.producer.valid() || group[tensor.producer.index()] != e.src.value) continue;
      bytes += std::any_of(tensor.consumers.begin(), tensor.consumers.end(),
                           [&](OpId c) { return group[c.index()] == e.dst.value; })
                   ? tensor.bytes
                   : 0;
    }
    EXPECT_EQ(e.bytes, bytes);
  }
}

TEST(Coarsen, KeepsTheGraphWhenEachOpIsItsOwnGroup) {
  const auto graph = generate_random_dag(30, 0.2, 3);
  std::vector<int> group(30);
  for (int v = 0; v < 30; ++v) group[static_cast<size_t>(v)] = v;
  check_grouping(*graph, group);
  const auto same = coarsen(*graph, group);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ((*same)->num_edges(), graph->num_edges());
}

TEST(Coarsen, KeepsTheGivenSizeOfAnInput) {
  GraphBuilder builder("sized");
  Tensor input;
  input.name = "x";
  input.shape = {2};
  input.bytes = 100;
  const TensorId x = builder.add_input(input);
  Op op;
  op.name = "a";
  op.type = "A";
  op.inputs = {x};
  builder.add_op(op, {});
  const auto graph = builder.build();
  ASSERT_TRUE(graph.ok());
  const auto coarse = coarsen(**graph, std::vector<int>{0});
  ASSERT_TRUE(coarse.ok());
  EXPECT_EQ((*coarse)->tensor(TensorId(size_t{0})).bytes, 100);
  EXPECT_EQ((*coarse)->op(OpId(size_t{0})).bytes_accessed, 100);
}

TEST(Coarsen, RefusesAMissingGroupAWrongCountAndACycle) {
  const auto graph = generate_random_dag(3, 1, 1);  // 0 -> 1 -> 2 and 0 -> 2
  EXPECT_FALSE(coarsen(*graph, std::vector<int>{0, 2, 2}).ok());
  EXPECT_FALSE(coarsen(*graph, std::vector<int>{0, 0}).ok());
  EXPECT_FALSE(coarsen(*graph, std::vector<int>{0, -1, 0}).ok());
  EXPECT_FALSE(coarsen(*graph, std::vector<int>{0, 1, 0}).ok());
}

TEST(Coarsen, OfACoarsenedGraphHasMembersOfTheFinest) {
  const auto graph = generate_random_dag(40, 0.1, 5);
  const auto once = coarsen(*graph, group_to_size(*graph, 20));
  ASSERT_TRUE(once.ok());
  const auto twice = coarsen(**once, group_to_size(**once, 5));
  ASSERT_TRUE(twice.ok());
  size_t members = 0;
  for (const Op& op : (*twice)->ops()) members += op.members.size();
  EXPECT_EQ(members, 40u);
}

TEST(Grouping, NeverMakesACycleAndConservesTotals) {
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    Random random(static_cast<uint64_t>(i));
    const int ops = static_cast<int>(random.between(1, 60));
    const auto graph = generate_random_dag(ops, random.uniform(0.01, 0.3), static_cast<uint64_t>(i));
    check_grouping(*graph, group_light_ops(*graph));
    check_grouping(*graph, group_light_ops(*graph, 0.05, 0.05));
    const size_t most = static_cast<size_t>(random.between(1, 12));
    const auto group = group_to_size(*graph, most);
    check_grouping(*graph, group);
    ASSERT_LE(count_groups(group), most);
    if (HasFailure()) return;
  }
}

TEST(Grouping, OfThousandsOfOpsReachesItsSize) {
  const auto graph = generate_random_dag(6000, 0.0005, 1);
  const auto group = group_to_size(*graph, 64);
  EXPECT_LE(count_groups(group), 64u);
  EXPECT_TRUE(quotient_is_acyclic(*graph, group));
  EXPECT_TRUE(quotient_is_acyclic(*graph, group_light_ops(*graph)));
}

}  // namespace
}  // namespace heddle
