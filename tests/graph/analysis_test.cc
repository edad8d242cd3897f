// Compares each analysis with its definition, by brute force, on hundreds of small random graphs.
#include "heddle/graph/analysis.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "heddle/base/random.h"
#include "quotient.h"
#include "random_dag.h"

namespace heddle {
namespace {

using Matrix = std::vector<std::vector<bool>>;

OpId id(size_t v) { return OpId(v); }

// [a][b]: there is a path of at least one edge that avoids the op `without` (n: none).
Matrix closure(const Graph& graph, size_t without) {
  const size_t n = graph.num_ops();
  Matrix reach(n, std::vector<bool>(n, false));
  for (const Edge& e : graph.edges())
    if (e.src.index() != without && e.dst.index() != without) reach[e.src.index()][e.dst.index()] = true;
  for (size_t k = 0; k < n; ++k)
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        if (reach[i][k] && reach[k][j]) reach[i][j] = true;
  return reach;
}

// Number of undirected components without one op and one edge (by index).
size_t count_components(const Graph& graph, size_t without_op, size_t without_edge) {
  std::vector<size_t> label(graph.num_ops());
  for (size_t v = 0; v < label.size(); ++v) label[v] = v;
  for (size_t e = 0; e < graph.num_edges(); ++e) {
    const size_t a = graph.edges()[e].src.index(), b = graph.edges()[e].dst.index();
    if (e == without_edge || a == without_op || b == without_op) continue;
    const size_t from = label[a], to = label[b];
    std::replace(label.begin(), label.end(), from, to);
  }
  if (without_op < label.size()) label.erase(label.begin() + static_cast<std::ptrdiff_t>(without_op));
  std::sort(label.begin(), label.end());
  return static_cast<size_t>(std::unique(label.begin(), label.end()) - label.begin());
}

// Number of edge-disjoint undirected paths between two ops, by augmenting walks on a capacity matrix.
int max_flow(const Graph& graph, size_t s, size_t t) {
  const size_t n = graph.num_ops();
  std::vector<std::vector<int>> capacity(n, std::vector<int>(n, 0));
  for (const Edge& e : graph.edges())
    capacity[e.src.index()][e.dst.index()] = capacity[e.dst.index()][e.src.index()] = 1;
  for (int flow = 0;; ++flow) {
    std::vector<int> from(n, -1);
    std::vector<size_t> queue = {s};
    from[s] = static_cast<int>(s);
    for (size_t i = 0; i < queue.size() && from[t] < 0; ++i)
      for (size_t w = 0; w < n; ++w)
        if (from[w] < 0 && capacity[queue[i]][w] > 0)
          from[w] = static_cast<int>(queue[i]), queue.push_back(w);
    if (from[t] < 0) return flow;
    for (size_t v = t; v != s; v = static_cast<size_t>(from[v]))
      --capacity[static_cast<size_t>(from[v])][v], ++capacity[v][static_cast<size_t>(from[v])];
  }
}

// Calls check(graph, random) for graphs of 0 to `most` ops at several densities.
template <class Check>
void for_random_graphs(int count, int most, Check check) {
  for (int i = 0; i < count; ++i) {
    Random random(static_cast<uint64_t>(i));
    const auto graph =
        generate_random_dag(i % (most + 1), random.uniform(0.05, 0.6), static_cast<uint64_t>(i));
    SCOPED_TRACE("graph " + std::to_string(i));
    check(*graph, random);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Reachability, EqualsTransitiveClosureByDefinition) {
  for_random_graphs(300, 20, [](const Graph& graph, Random&) {
    const Reachability reach(graph);
    const Matrix expected = closure(graph, graph.num_ops());
    for (size_t a = 0; a < graph.num_ops(); ++a)
      for (size_t b = 0; b < graph.num_ops(); ++b)
        ASSERT_EQ(reach.reaches(id(a), id(b)), expected[a][b]) << a << " " << b;
  });
}

TEST(Reachability, CrossesWordBoundaries) {
  const auto graph = generate_random_dag(200, 0.02, 7);
  const Reachability reach(*graph);
  const Matrix expected = closure(*graph, 200);
  for (size_t a = 0; a < 200; ++a)
    for (size_t b = 0; b < 200; ++b) ASSERT_EQ(reach.reaches(id(a), id(b)), expected[a][b]);
}

TEST(Connectivity, ArticulationPointsAndEdgesBetweenComponentsAreThoseWhoseRemovalDisconnects) {
  for_random_graphs(400, 14, [](const Graph& graph, Random&) {
    const size_t n = graph.num_ops(), m = graph.num_edges();
    const size_t whole = count_components(graph, n, m);
    std::vector<OpId> points;
    for (size_t v = 0; v < n; ++v)
      if (count_components(graph, v, m) > whole) points.push_back(id(v));
    EXPECT_EQ(articulation_points(graph), points);
    std::vector<std::pair<OpId, OpId>> expected, found;
    for (size_t e = 0; e < m; ++e)
      if (count_components(graph, n, e) > whole)
        expected.emplace_back(graph.edges()[e].src, graph.edges()[e].dst);
    const auto part = k_edge_connected_components(graph, 2);
    for (const Edge& e : graph.edges())
      if (part[e.src.index()] != part[e.dst.index()]) found.emplace_back(e.src, e.dst);
    EXPECT_EQ(found, expected);
  });
}

TEST(Connectivity, KEdgeComponentsAreTheClassesOfMaxFlowAtLeastK) {
  for_random_graphs(200, 11, [](const Graph& graph, Random&) {
    for (int k = 1; k <= 5; ++k) {
      std::vector<int> expected(graph.num_ops(), -1);
      int next = 0;
      for (size_t v = 0; v < graph.num_ops(); ++v) {
        if (expected[v] >= 0) continue;
        expected[v] = next;
        for (size_t w = v + 1; w < graph.num_ops(); ++w)
          if (max_flow(graph, v, w) >= k) expected[w] = next;
        ++next;
      }
      ASSERT_EQ(k_edge_connected_components(graph, k), expected) << "k = " << k;
    }
  });
}

double heaviest_from(const Graph& graph, OpId v) {
  double best = 0;
  for (const Edge& e : graph.out_edges(v))
    best = std::max(best, static_cast<double>(e.bytes) + heaviest_from(graph, e.dst));
  return graph.op(v).flops + best;
}

TEST(LongestPaths, EqualTheHeaviestOfAllPaths) {
  for_random_graphs(200, 12, [](const Graph& graph, Random&) {
    const auto op_weight = [&](OpId v) { return graph.op(v).flops; };
    const auto edge_weight = [](const Edge& e) { return static_cast<double>(e.bytes); };
    const LongestPaths paths = longest_paths(graph, op_weight, edge_weight);
    double length = 0;
    for (size_t v = 0; v < graph.num_ops(); ++v) {
      ASSERT_DOUBLE_EQ(paths.longest_from[v], heaviest_from(graph, id(v)));
      length = std::max(length, paths.longest_from[v]);
      double to = 0;
      for (const OpId p : graph.predecessors(id(v)))
        for (const Edge& e : graph.out_edges(p))
          if (e.dst == id(v)) to = std::max(to, paths.longest_to[p.index()] + op_weight(p) + edge_weight(e));
      ASSERT_DOUBLE_EQ(paths.longest_to[v], to);
    }
    ASSERT_DOUBLE_EQ(paths.length, length);
    double along = 0;
    for (size_t i = 0; i < paths.path.size(); ++i) {
      along += op_weight(paths.path[i]);
      if (i + 1 == paths.path.size()) break;
      const auto edges = graph.out_edges(paths.path[i]);
      const auto e =
          std::find_if(edges.begin(), edges.end(), [&](const Edge& x) { return x.dst == paths.path[i + 1]; });
      ASSERT_NE(e, edges.end());
      along += edge_weight(*e);
    }
    ASSERT_DOUBLE_EQ(along, length);
    const LongestPaths hops = longest_paths(
        graph, [](OpId) { return 0.0; }, [](const Edge&) { return 1.0; });
    for (size_t v = 0; v < graph.num_ops(); ++v)
      ASSERT_EQ(levels(graph)[v], static_cast<int>(hops.longest_to[v]));
  });
}

TEST(Convexity, MeansThatNoPathLeavesAndComesBack) {
  int convex = 0, not_convex = 0;
  for_random_graphs(600, 12, [&](const Graph& graph, Random& random) {
    const Matrix reach = closure(graph, graph.num_ops());
    std::vector<bool> in(graph.num_ops());
    std::vector<OpId> set;
    for (size_t v = 0; v < in.size(); ++v) {
      in[v] = random.chance(0.4);
      if (in[v]) set.push_back(id(v));
    }
    random.shuffle(set);
    bool expected = true;
    for (size_t x = 0; x < in.size(); ++x) {
      bool before = false, after = false;
      for (const OpId s : set) before |= reach[s.index()][x], after |= reach[x][s.index()];
      if (!in[x] && before && after) expected = false;
    }
    ASSERT_EQ(is_convex(graph, set), expected);
    ++(expected ? convex : not_convex);
  });
  EXPECT_GT(convex, 50);
  EXPECT_GT(not_convex, 50);
}

TEST(Quotient, IsAcyclicExactlyWhenNoGroupReachesItself) {
  int acyclic = 0, cyclic = 0;
  for_random_graphs(600, 10, [&](const Graph& graph, Random& random) {
    std::vector<int> group(graph.num_ops());
    for (int& g : group) g = static_cast<int>(random.between(-3, 4)) * 1000;
    Matrix reach(8, std::vector<bool>(8, false));
    const auto at = [&](OpId v) { return static_cast<size_t>(group[v.index()] / 1000 + 3); };
    for (const Edge& e : graph.edges())
      if (at(e.src) != at(e.dst)) reach[at(e.src)][at(e.dst)] = true;
    for (size_t k = 0; k < 8; ++k)
      for (size_t i = 0; i < 8; ++i)
        for (size_t j = 0; j < 8; ++j)
          if (reach[i][k] && reach[k][j]) reach[i][j] = true;
    bool expected = true;
    for (size_t i = 0; i < 8; ++i) expected = expected && !reach[i][i];
    ASSERT_EQ(quotient_is_acyclic(graph, group), expected);
    ++(expected ? acyclic : cyclic);
  });
  EXPECT_GT(acyclic, 50);
  EXPECT_GT(cyclic, 50);
}

}  // namespace
}  // namespace heddle
