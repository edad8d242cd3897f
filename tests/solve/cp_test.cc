#include "heddle/solve/cp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace heddle {
namespace {

using testing::HasSubstr;

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

TEST(CpErrors, NameTheWrongPart) {
  const auto refusal = [](const std::function<void(CpModel&, CpVar, CpLit)>& change) {
    CpModel m;
    const CpVar x = m.add_integer(-4, 4, "x");
    const CpLit b = m.add_literal();
    change(m, x, b);
    const auto s = solve(m);
    if (s.ok()) return std::string("solved");
    EXPECT_EQ(s.error().code(), Code::kInvalidInput) << s.error().to_string();
    EXPECT_NE(violation(m, std::vector<int64_t>{0, 0}), "");
    return s.error().to_string();
  };
  const CpVar stranger{7};
  EXPECT_THAT(refusal([](CpModel& m, CpVar, CpLit) { m.add_integer(2, 1, "y"); }), HasSubstr("variable 'y'"));
  EXPECT_THAT(refusal([](CpModel& m, CpVar, CpLit) { m.add_integer(0, INT64_MAX); }), HasSubstr("2^53"));
  EXPECT_THAT(refusal([&](CpModel& m, CpVar, CpLit) { m.linear(0, stranger, 1); }),
              HasSubstr("constraint 0: it names variable 7 but the model has 2"));
  EXPECT_THAT(refusal([](CpModel& m, CpVar x, CpLit) { m.linear(3, x, 2); }), HasSubstr("lower bound"));
  EXPECT_THAT(refusal([](CpModel& m, CpVar x, CpLit) {
                CpExpr huge;
                m.linear(0, huge.add(x, INT64_MAX / 2).add(x, INT64_MAX / 2), 1);
              }),
              HasSubstr("2^61"));
  EXPECT_THAT(refusal([](CpModel& m, CpVar x, CpLit) { m.any_of(std::vector<CpLit>{{x.index}}); }),
              HasSubstr("used as a literal"));
  EXPECT_THAT(refusal([](CpModel& m, CpVar x, CpLit) { m.linear(0, x, 1, std::vector<CpLit>{{x.index}}); }),
              HasSubstr("used as a literal"));
  EXPECT_THAT(refusal([](CpModel& m, CpVar x, CpLit) { m.maximum(x, {}); }), HasSubstr("maximum of nothing"));
  EXPECT_THAT(refusal([](CpModel& m, CpVar x, CpLit b) {
                CpExpr sum(x);
                m.maximum(x, {sum.add(b, 1)});
              }),
              HasSubstr("several variables"));
  EXPECT_THAT(refusal([](CpModel& m, CpVar x, CpLit) { m.interval(0, x, 4); }), HasSubstr("may be negative"));
  EXPECT_THAT(refusal([](CpModel& m, CpVar, CpLit) { m.no_overlap(std::vector<CpInterval>{{0}}); }),
              HasSubstr("interval 0"));
  EXPECT_THAT(refusal([&](CpModel& m, CpVar, CpLit) { m.minimise(stranger); }), HasSubstr("objective"));
  EXPECT_THAT(refusal([&](CpModel& m, CpVar, CpLit) { m.hint(stranger, 1); }), HasSubstr("hint"));
}

TEST(Cp, ModelsWithoutAnObjectiveOrAnythingAtAll) {
  CpModel m;
  const auto empty = solve(m);
  if (!empty.ok() && empty.error().code() == Code::kUnsupported) GTEST_SKIP() << empty.error().to_string();
  ASSERT_TRUE(empty.ok()) << empty.error().to_string();
  EXPECT_EQ(empty->status, SolveStatus::kOptimal);
  EXPECT_EQ(empty->objective, 0);
  const CpLit a = m.add_literal(), yes = m.true_literal();
  EXPECT_EQ(m.true_literal().ref, yes.ref);
  m.exactly_one(std::vector<CpLit>{!a, !yes});
  const auto s = solve(m);
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  EXPECT_EQ(s->values, (std::vector<double>{0, 1}));
  EXPECT_EQ(s->bound, 0);
  m.exactly_one({});
  EXPECT_EQ(solve(m)->status, SolveStatus::kInfeasible);
}

TEST(Cp, LargeNumbersKeepTheBoundBelowTheTruth) {
  for (const int64_t constant : {int64_t{0}, (int64_t{1} << 59) + 1, -(int64_t{1} << 59) - 1}) {
    CpModel m;
    const CpVar x = m.add_integer(-(int64_t{1} << 50), int64_t{1} << 50), y = m.add_integer(0, 1000);
    CpExpr sum(x);
    m.linear(7, sum.add(y, 3), int64_t{1} << 51);
    CpExpr objective(constant);
    m.minimise(objective.add(x, 77).add(y, 5));
    const auto s = solve(m);
    if (!s.ok() && s.error().code() == Code::kUnsupported) GTEST_SKIP() << s.error().to_string();
    ASSERT_TRUE(s.ok()) << s.error().to_string();
    ASSERT_EQ(s->status, SolveStatus::kOptimal);
    // With y at its maximum: 77 (7 - 3000) + 5000.
    const int64_t least = constant + 77 * (7 - 3000) + 5000;
    EXPECT_EQ(s->objective, static_cast<double>(least));
    EXPECT_LE(s->bound, s->objective);
    EXPECT_GE(s->bound, s->objective - 65536);
  }
}

}  // namespace
}  // namespace heddle
