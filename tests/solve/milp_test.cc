#include "heddle/solve/milp.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(Milp, KnapsackWithTheBestPairOfThree) {
  Milp m;
  const Var a = m.add_binary("a"), b = m.add_binary("b"), c = m.add_binary("c");
  m.add_cost(a, -5);
  m.add_cost(b, -4);
  m.add_cost(c, -3);
  m.at_most({{a, 2}, {b, 3}, {c, 1}}, 5);
  const auto s = solve(m);
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  EXPECT_EQ(s->status, SolveStatus::kOptimal);
  EXPECT_DOUBLE_EQ(s->objective, -9);
  EXPECT_EQ(s->values, (std::vector<double>{1, 1, 0}));
  EXPECT_NEAR(s->bound, -9, 1e-6);
}

}  // namespace
}  // namespace heddle
