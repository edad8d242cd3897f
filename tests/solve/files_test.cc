// HiGHS reads the files of our writers and finds the same optimum.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "heddle/solve/milp.h"
#include "heddle/solve/small_models.h"
#include "highs_api.h"

namespace heddle {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Read {
  HighsInt status = 0;
  double objective = 0;
};

Read solve_text(const std::string& text, const std::string& suffix) {
  const std::string path =
      testing::TempDir() + "heddle_" + testing::UnitTest::GetInstance()->current_test_info()->name() + suffix;
  std::ofstream(path) << text;
  void* highs = Highs_create();
  Highs_setBoolOptionValue(highs, "output_flag", 0);
  Highs_setIntOptionValue(highs, "threads", 1);
  Highs_setDoubleOptionValue(highs, "mip_rel_gap", 0);
  EXPECT_EQ(Highs_readModel(highs, path.c_str()), kHighsStatusOk) << text;
  Highs_run(highs);
  const Read read{Highs_getModelStatus(highs), Highs_getObjectiveValue(highs)};
  Highs_destroy(highs);
  std::filesystem::remove(path);
  return read;
}

void expect_same(const Read& read, const Solution& solution, const std::string& text) {
  if (solution.status == SolveStatus::kInfeasible) {
    EXPECT_EQ(read.status, kHighsModelStatusInfeasible) << text;
  } else {
    ASSERT_EQ(read.status, kHighsModelStatusOptimal) << text;
    EXPECT_NEAR(read.objective, solution.objective, 1e-6) << text;
  }
}

TEST(MilpFiles, AreReadBackWithTheSameOptimum) {
  Random random(11);
  for (int i = 0; i < 200 && !HasFatalFailure(); ++i) {
    SCOPED_TRACE(i);
    Milp m = to_milp(random_small_model(random, ModelShape::kIntegerRows));
    const Var y =
        m.add_continuous(random.chance(0.5) ? -3.25 : -kNoBound, random.chance(0.5) ? 1e3 : kNoBound);
    m.add_cost(y, 0.1);
    m.at_least({{y, 1}, {Var{0}, 0.3}}, -1.0 / 3);
    const auto flat = m.without_indicators();
    const auto s = solve(m);
    ASSERT_TRUE(s.ok() && flat.ok());
    const auto lp = to_lp(*flat);
    ASSERT_TRUE(lp.ok());
    expect_same(solve_text(*lp, ".lp"), *s, *lp);
  }
}

TEST(MilpFiles, NamesThatReadersWouldMisreadAreReplaced) {
  Milp m;
  const Var a = m.add_continuous(0, 4, "good.name"), b = m.add_integer(-3, 4, "two words"),
            c = m.add_binary("e10"), d = m.add_binary("free"), e = m.add_integer(1, 9, "good.name"),
            f = m.add_integer(-kNoBound, 9, "x0");
  m.add_constant(-2.5);
  for (const Var v : {a, b, c, d, e, f}) m.add_cost(v, 1);
  m.add_row(-8, {{a, 1}, {b, 2}, {f, 1}}, 20, "both");
  m.at_least({{c, 1}, {d, 1}}, 1, "both_lower");
  m.add_row(-kNoBound, {{a, 1}}, kNoBound, "says nothing");
  const auto lp = to_lp(m);
  ASSERT_TRUE(lp.ok());
  EXPECT_THAT(*lp, HasSubstr("good.name"));
  EXPECT_THAT(*lp, HasSubstr("both_upper:"));
  EXPECT_THAT(*lp, Not(HasSubstr("two words")));
  const auto s = solve(m);
  ASSERT_TRUE(s.ok());
  expect_same(solve_text(*lp, ".lp"), *s, *lp);
}

TEST(MilpFiles, IndicatorsStandAsSuchInLp) {
  Milp m;
  const Var b = m.add_binary("b"), x = m.add_continuous(0, 4, "x");
  m.add_indicator(b, true, -kNoBound, {{x, 2}}, 3, "when");
  const auto lp = to_lp(m);
  ASSERT_TRUE(lp.ok());
  EXPECT_THAT(*lp, HasSubstr(" when: b = 1 ->  + 2 x <= 3\n"));
  EXPECT_FALSE(to_lp(Milp()).ok());
}

}  // namespace
}  // namespace heddle
