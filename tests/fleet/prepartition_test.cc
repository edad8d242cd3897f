// Blocks of about equal time: the greedy rule by hand, the balanced one by brute force over all cuts.
#include "heddle/fleet/prepartition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "heddle/base/random.h"

namespace heddle {
namespace {

// Ops in a line with these output sizes (floats); `skip` also feeds the first op's output to the last op.
std::shared_ptr<const Graph> line(const std::vector<int64_t>& floats, bool skip) {
  GraphBuilder builder("line");
  TensorId last = builder.add_input("in", DType::kF32, {10});
  TensorId first;
  for (size_t k = 0; k < floats.size(); ++k) {
    Op op;
    op.name = "op" + std::to_string(k);
    op.type = "Relu";
    op.inputs = {last};
    if (skip && k + 1 == floats.size() && k > 0) op.inputs.push_back(first);
    Tensor out;
    out.name = "t" + std::to_string(k);
    out.dtype = DType::kF32;
    out.shape = {floats[k]};
    const auto id = builder.add_op(std::move(op), {out});
    last = builder.outputs_of(id).front();
    if (k == 0) first = last;
  }
  builder.add_output(last);
  auto graph = builder.build();
  EXPECT_TRUE(graph.ok());
  return *graph;
}

TEST(Prepartition, GreedyBlocksComeAsCloseToTheTargetAsTheyCan) {
  const auto graph = line({1, 2, 3, 4}, false);
  const auto parts = prepartition(*graph, {{10, 30, 20, 20}}, 2, PrepartitionMethod::kGreedy);
  ASSERT_TRUE(parts.ok()) << parts.error().to_string();
  ASSERT_EQ(parts->blocks.size(), 2u);
  EXPECT_EQ(parts->blocks[0].size(), 2u);  // 40 of 80
  EXPECT_EQ(parts->cut_bytes, (std::vector<double>{40, 8, 16}));
}

TEST(Prepartition, ATensorThatIsReadLaterCrossesEveryCutInBetween) {
  const auto graph = line({1, 2, 3, 4}, true);
  const auto parts = prepartition(*graph, {{1, 1, 1, 1}}, 4, PrepartitionMethod::kBalanced);
  ASSERT_TRUE(parts.ok()) << parts.error().to_string();
  EXPECT_EQ(parts->cut_bytes, (std::vector<double>{40, 4, 12, 16, 16}));
}

TEST(Prepartition, BalancedFindsTheLeastCutBytesWithinItsWindow) {
  Random random(4);
  for (int trial = 0; trial < 30; ++trial) {
    const int n = static_cast<int>(random.between(4, 9)), blocks = static_cast<int>(random.between(2, 3));
    std::vector<int64_t> floats;
    std::vector<std::vector<double>> us(2);
    for (int k = 0; k < n; ++k) {
      floats.push_back(random.between(1, 1000));
      for (auto& of_class : us) of_class.push_back(random.uniform(1, 10));
    }
    const auto graph = line(floats, false);
    const auto parts = prepartition(*graph, us, blocks, PrepartitionMethod::kBalanced);
    ASSERT_TRUE(parts.ok()) << parts.error().to_string();
    double least = INFINITY, ours = 0;
    for (size_t k = 1; k + 1 < parts->cut_bytes.size(); ++k) ours += parts->cut_bytes[k];
    std::function<void(int, int, double)> choose = [&](int from, int left, double bytes) {
      const auto fits = [&](int to) {
        return std::all_of(us.begin(), us.end(), [&](const auto& u) {
          double sum = 0, whole = 0;
          for (int k = 0; k < n; ++k) {
            whole += u[static_cast<size_t>(k)];
            if (k >= from && k < to) sum += u[static_cast<size_t>(k)];
          }
          const double off = sum / whole * blocks - 1;
          return std::abs(off) <= parts->window + 1e-9;
        });
      };
      if (left == 1) {
        if (fits(n)) least = std::min(least, bytes);
        return;
      }
      for (int to = from + 1; to < n; ++to)
        if (fits(to))
          choose(to, left - 1, bytes + 4.0 * static_cast<double>(floats[static_cast<size_t>(to - 1)]));
    };
    choose(0, blocks, 0);
    EXPECT_DOUBLE_EQ(ours, least) << trial;
  }
}

TEST(Prepartition, RefusesTimesThatAreNone) {
  const auto graph = line({1, 2}, false);
  EXPECT_FALSE(prepartition(*graph, {{1}}, 2, PrepartitionMethod::kGreedy).ok());
  EXPECT_FALSE(prepartition(*graph, {{1, NAN}}, 2, PrepartitionMethod::kGreedy).ok());
  EXPECT_FALSE(prepartition(*graph, {{0, 0}}, 2, PrepartitionMethod::kBalanced).ok());
  EXPECT_FALSE(prepartition(*graph, {}, 2, PrepartitionMethod::kBalanced).ok());
  EXPECT_FALSE(prepartition(*graph, {{1, 1}}, 0, PrepartitionMethod::kBalanced).ok());
  const auto more = prepartition(*graph, {{1, 1}}, 9, PrepartitionMethod::kBalanced);
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(more->blocks.size(), 2u);
}

}  // namespace
}  // namespace heddle
