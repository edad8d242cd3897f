#include "heddle/solve/cp.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(Cp, ThreeTasksOnOneMachineRunInTheOrderOfSmithsRule) {
  CpModel m;
  const int64_t time[] = {3, 2, 4}, weight[] = {1, 4, 2};
  std::vector<CpInterval> intervals;
  CpExpr objective;
  std::vector<CpVar> starts;
  for (int i = 0; i < 3; ++i) {
    const CpVar start = m.add_integer(0, 20);
    CpExpr end(start);
    end.add(time[i]);
    intervals.push_back(m.interval(start, time[i], end));
    objective.add(start, weight[i]).add(weight[i] * time[i]);
    starts.push_back(start);
  }
  m.no_overlap(intervals);
  m.minimise(objective);
  const auto s = solve(m);
  if (!s.ok() && s.error().code() == Code::kUnsupported) GTEST_SKIP() << s.error().to_string();
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  EXPECT_EQ(s->status, SolveStatus::kOptimal);
  EXPECT_EQ(s->objective, 29);
  EXPECT_EQ(s->bound, 29);
  EXPECT_EQ(s->values, (std::vector<double>{6, 0, 2}));
}

}  // namespace
}  // namespace heddle
