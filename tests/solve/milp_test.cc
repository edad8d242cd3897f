#include "heddle/solve/milp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "heddle/base/random.h"

namespace heddle {
namespace {

using testing::HasSubstr;

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
  EXPECT_THAT(s->solver, HasSubstr("HiGHS 1."));
}

// Any duals prove a bound; those of the optimum prove nearly the optimum.
TEST(Milp, DualsProveALowerBoundOfTheLp) {
  Random random(5);
  int tight = 0;
  for (int round = 0; round < 200; ++round) {
    Milp m;
    const auto n = 1 + random.below(8);
    std::vector<Var> x;
    for (uint64_t j = 0; j < n; ++j) {
      x.push_back(
          m.add_continuous(random.uniform(-2, 0), random.below(4) == 0 ? kNoBound : random.uniform(0, 5)));
      m.add_cost(x.back(), random.uniform(-1, 3));
    }
    for (uint64_t i = random.below(6); i-- > 0;) {
      std::vector<Term> terms;
      for (const Var v : x) terms.push_back({v, random.uniform(-3, 3)});
      const double at = random.uniform(-4, 4);
      if (random.below(2) == 0)
        m.at_most(std::move(terms), at);
      else
        m.add_row(at, std::move(terms), at + random.uniform(0, 2));
    }
    const auto s = solve_relaxation(m);
    ASSERT_TRUE(s.ok()) << s.error().to_string();
    if (s->status != SolveStatus::kOptimal) continue;
    ASSERT_EQ(s->duals.size(), m.rows().size());
    double most = 0;
    for (const double value : s->values) most = std::max(most, 2 * value + 1);
    const double bound = lp_dual_bound(m, s->duals, most);
    const double size = std::max(1.0, std::fabs(s->objective));
    EXPECT_LE(bound, s->objective + 1e-9 * size) << round;
    EXPECT_GE(bound, s->objective - 1e-5 * size) << round;
    auto wrong = s->duals;
    for (double& y : wrong) y += random.uniform(-0.5, 0.5);
    EXPECT_LE(lp_dual_bound(m, wrong, most), s->objective + 1e-9 * size) << round;
    ++tight;
  }
  EXPECT_GT(tight, 100);
}

// `most` is about variables without an upper bound alone.
TEST(Milp, ALimitOfUnboundedVariablesLeavesBoundedOnesAlone) {
  Milp m;
  const Var total = m.add_continuous(0, kNoBound), x = m.add_continuous(0, 1), y = m.add_continuous(0, 1);
  m.add_cost(total, 1);
  m.equal({{x, 1}, {y, 1}}, 1);
  m.at_least({{total, 1}, {x, -0.1}, {y, -0.3}}, 0);
  const auto s = solve_relaxation(m);
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  EXPECT_NEAR(lp_dual_bound(m, s->duals, 2 * s->objective), 0.1, 1e-9);
}

TEST(Milp, EqualTermsAreAddedUp) {
  Milp m;
  const Var x = m.add_continuous(0, 9), y = m.add_continuous(0, 9);
  m.add_row(1, {{y, 1}, {x, 2}, {y, -1}, {x, 3}}, 5);
  ASSERT_EQ(m.rows()[0].terms.size(), 1u);
  EXPECT_EQ(m.rows()[0].terms[0].var, x);
  EXPECT_EQ(m.rows()[0].terms[0].coefficient, 5);
}

TEST(Milp, StatusesThatAreNoSolution) {
  Milp infeasible;
  const Var x = infeasible.add_integer(0, 3);
  infeasible.add_row(0.25, {{x, 1}}, 0.75);
  const auto none = solve(infeasible);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->status, SolveStatus::kInfeasible);
  EXPECT_FALSE(none->has_values());
  EXPECT_TRUE(none->values.empty());
  EXPECT_EQ(none->bound, kNoBound);
  // Its relaxation is feasible.
  const auto relaxed = solve_relaxation(infeasible);
  ASSERT_TRUE(relaxed.ok());
  EXPECT_EQ(relaxed->status, SolveStatus::kOptimal);

  for (const VarKind kind : {VarKind::kContinuous, VarKind::kInteger}) {
    Milp unbounded;
    const Var y = kind == VarKind::kInteger ? unbounded.add_integer(-kNoBound, 5)
                                            : unbounded.add_continuous(-kNoBound, 5);
    unbounded.add_cost(y, 1);
    const auto s = solve(unbounded);
    ASSERT_TRUE(s.ok()) << s.error().to_string();
    EXPECT_EQ(s->status, SolveStatus::kUnbounded);
    EXPECT_FALSE(s->has_values());
    EXPECT_EQ(s->bound, -kNoBound);
  }
}

TEST(Milp, ModelsWithNothingInThem) {
  Milp empty;
  empty.add_constant(3);
  auto s = solve(empty);
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  EXPECT_EQ(s->status, SolveStatus::kOptimal);
  EXPECT_EQ(s->objective, 3);
  EXPECT_EQ(s->bound, 3);
  empty.at_least({}, 1, "never");
  EXPECT_EQ(solve(empty)->status, SolveStatus::kInfeasible);

  Milp no_rows;
  no_rows.add_cost(no_rows.add_integer(-2, 7), -1);
  no_rows.add_cost(no_rows.add_continuous(-2.5, 7), 2);
  s = solve(no_rows);
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  EXPECT_EQ(s->status, SolveStatus::kOptimal);
  EXPECT_EQ(s->objective, -12);
}

TEST(Milp, ARowWithoutTermsStillCounts) {
  Milp m;
  m.add_integer(0, 1);
  m.at_least({}, 1);
  EXPECT_EQ(solve(m)->status, SolveStatus::kInfeasible);
}

// Tries all integers; the rows then leave an interval for the one continuous variable.
TEST(Milp, RandomMixedModelsAgreeWithTryingTheIntegers) {
  Random random(7);
  for (int i = 0; i < 300 && !HasFatalFailure(); ++i) {
    SCOPED_TRACE(i);
    Milp m;
    const Var a = m.add_integer(-2, 2), b = m.add_integer(0, 3), x = m.add_continuous(-4, 4);
    const double cost[] = {double(random.between(-3, 3)), double(random.between(-3, 3)),
                           double(random.between(-3, 3))};
    m.add_cost(a, cost[0]);
    m.add_cost(b, cost[1]);
    m.add_cost(x, cost[2]);
    std::vector<std::array<double, 4>> rows;
    for (int r = 0; r < 3; ++r) {
      rows.push_back({double(random.between(-3, 3)), double(random.between(-3, 3)),
                      double(random.between(-3, 3)), double(random.between(-4, 6))});
      m.at_most({{a, rows[size_t(r)][0]}, {b, rows[size_t(r)][1]}, {x, rows[size_t(r)][2]}},
                rows[size_t(r)][3]);
    }
    double best = kNoBound;
    for (int p = -2; p <= 2; ++p) {
      for (int q = 0; q <= 3; ++q) {
        double low = -4, high = 4;
        for (const auto& row : rows) {
          const double rest = row[3] - row[0] * p - row[1] * q;
          if (row[2] > 0) high = std::min(high, rest / row[2]);
          if (row[2] < 0) low = std::max(low, rest / row[2]);
          if (row[2] == 0 && rest < 0) low = kNoBound;
        }
        if (low <= high)
          best = std::min(best, cost[0] * p + cost[1] * q + cost[2] * (cost[2] > 0 ? low : high));
      }
    }
    const auto s = solve(m), relaxed = solve_relaxation(m);
    ASSERT_TRUE(s.ok() && relaxed.ok());
    if (best == kNoBound) {
      EXPECT_EQ(s->status, SolveStatus::kInfeasible);
      continue;
    }
    ASSERT_EQ(s->status, SolveStatus::kOptimal);
    EXPECT_NEAR(s->objective, best, 1e-5);
    EXPECT_EQ(violation(m, s->values), "");
    EXPECT_EQ(s->values[0], std::round(s->values[0]));
    ASSERT_EQ(relaxed->status, SolveStatus::kOptimal);
    EXPECT_LE(relaxed->bound, s->objective + 1e-6);
    EXPECT_NEAR(relaxed->objective, relaxed->bound, 1e-9);
  }
}

TEST(MilpIndicators, BecomeRowsWithTheSmallestConstant) {
  Milp m;
  const Var b = m.add_binary("b"), x = m.add_integer(0, 7.5), y = m.add_continuous(-2, 3);
  // b = 1 -> 2x - y <= 5. Without it, 2x - y <= 2*7 + 2 = 16; hence 2x - y + 11 b <= 16.
  m.add_indicator(b, true, -kNoBound, {{x, 2}, {y, -1}}, 5, "on");
  // b = 0 -> x + y >= 4. Without it, x + y >= -2; hence x + y + 6 b >= 4.
  m.add_indicator(b, false, 4, {{x, 1}, {y, 1}}, 100, "off");
  const auto flat = m.without_indicators();
  ASSERT_TRUE(flat.ok()) << flat.error().to_string();
  ASSERT_EQ(flat->rows().size(), 2u);  // no row for <= 100, which always holds
  EXPECT_TRUE(flat->indicators().empty());
  EXPECT_EQ(flat->rows()[0].terms[0].coefficient, 11);
  EXPECT_EQ(flat->rows()[0].upper, 16);
  EXPECT_EQ(flat->rows()[0].name, "on_upper");
  EXPECT_EQ(flat->rows()[1].terms[0].coefficient, 6);
  EXPECT_EQ(flat->rows()[1].lower, 4);
}

TEST(MilpIndicators, TheBinaryMayStandInItsOwnRow) {
  for (const bool value : {false, true}) {
    Milp m;
    const Var b = m.add_binary(), x = m.add_integer(0, 5);
    m.add_indicator(b, value, 3, {{x, 1}, {b, 2}}, 4);
    const auto flat = m.without_indicators();
    ASSERT_TRUE(flat.ok());
    for (int on = 0; on < 2; ++on) {
      for (int at = 0; at <= 5; ++at) {
        const double point[] = {double(on), double(at)};
        EXPECT_EQ(violation(m, point).empty(), violation(*flat, point).empty()) << on << " " << at;
      }
    }
  }
}

TEST(MilpIndicators, WithoutABoundAreRefused) {
  Milp m;
  const Var b = m.add_binary(), x = m.add_continuous(0, kNoBound);
  m.add_indicator(b, true, 1, {{x, 1}}, kNoBound);  // only the lower side is finite
  EXPECT_TRUE(solve(m).ok());
  m.add_indicator(b, true, -kNoBound, {{x, 1}}, 4, "limit");
  const auto s = solve(m);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().code(), Code::kUnsupported);
  EXPECT_THAT(s.error().to_string(), HasSubstr("indicator 'limit': the terms have no upper bound"));
  EXPECT_TRUE(to_lp(m).ok());
}

TEST(MilpIndicators, LargeConstantsDoNotLetValuesTrickle) {
  // With a big-M row, b = 1e-7 would be within the tolerance and allow x = 0.1 at no cost.
  Milp m;
  const Var b = m.add_binary(), x = m.add_continuous(0, 1e6);
  m.add_indicator(b, false, -kNoBound, {{x, 1}}, 0);
  m.add_cost(b, 1);
  m.add_cost(x, -1e-4);
  m.at_most({{x, 1}}, 0.3);
  const auto s = solve(m);
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  EXPECT_EQ(violation(m, s->values), "");
  EXPECT_EQ(s->values[0], 0);
  EXPECT_NEAR(s->objective, 0, 1e-6);
}

std::string refusal(const Milp& m) {
  const auto s = solve(m);
  if (s.ok()) return "solved";
  EXPECT_EQ(s.error().code(), Code::kInvalidInput) << s.error().to_string();
  EXPECT_FALSE(to_lp(m).ok());
  EXPECT_FALSE(solve_relaxation(m).ok());
  return s.error().to_string();
}

TEST(MilpErrors, NameTheWrongPart) {
  const auto model = [](const std::function<void(Milp&, Var)>& change) {
    Milp m;
    const Var x = m.add_continuous(0, 4, "x");
    m.at_most({{x, 1}}, 2, "cap");
    change(m, x);
    return refusal(m);
  };
  EXPECT_EQ(model([](Milp&, Var) {}), "solved");
  EXPECT_THAT(model([](Milp& m, Var x) { m.set_bounds(x, 5, 4); }),
              HasSubstr("variable 'x': the lower bound"));
  EXPECT_THAT(model([](Milp& m, Var x) { m.set_bounds(x, NAN, 4); }), HasSubstr("not a number"));
  EXPECT_THAT(model([](Milp& m, Var x) { m.set_bounds(x, kNoBound, kNoBound); }), HasSubstr("'x'"));
  EXPECT_THAT(model([](Milp& m, Var x) { m.add_cost(x, NAN); }), HasSubstr("cost"));
  EXPECT_THAT(model([](Milp& m, Var) { m.add_constant(NAN); }), HasSubstr("objective"));
  EXPECT_THAT(model([](Milp& m, Var x) { m.add_row(3, {{x, 1}}, 2, "r"); }), HasSubstr("row 'r'"));
  EXPECT_THAT(model([](Milp& m, Var x) { m.at_most({{x, NAN}}, 2); }), HasSubstr("row 1: a coefficient"));
  EXPECT_THAT(model([](Milp& m, Var) {
                m.at_most({{Var{1}, 1}}, 2);
              }),
              HasSubstr("a row names variable 1 but the model has 1"));
  EXPECT_THAT(model([](Milp& m, Var) { m.at_most({{Var{}, 1}}, 2); }), HasSubstr("variable -1"));
  EXPECT_THAT(model([](Milp& m, Var) { m.add_cost(Var{9}, 1); }), HasSubstr("add_cost names variable 9"));
  EXPECT_THAT(model([](Milp& m, Var) { m.set_start(Var{9}, 1); }), HasSubstr("set_start"));
  EXPECT_THAT(model([](Milp& m, Var x) { m.set_start(x, NAN); }), HasSubstr("start value"));
  EXPECT_THAT(model([](Milp& m, Var x) { m.add_indicator(x, true, 0, {}, 1); }), HasSubstr("not a binary"));
  EXPECT_THAT(model([](Milp& m, Var) { m.set_bounds(m.add_binary("b"), 0, 2); }), HasSubstr("'b'"));

  Milp large;
  const Var z = large.add_continuous(0, 1);
  large.at_most({{z, 1e16}}, 2);
  ASSERT_FALSE(solve(large).ok());
  EXPECT_THAT(solve(large).error().to_string(), HasSubstr("1e15"));

  Milp m;
  m.add_continuous(0, 1);
  SolveOptions options;
  options.threads = 0;
  EXPECT_FALSE(solve(m, options).ok());
  options.threads = 1;
  options.rel_gap = NAN;
  EXPECT_FALSE(solve(m, options).ok());
}

TEST(MilpViolation, SaysWhatIsFurthestOff) {
  Milp m;
  const Var x = m.add_integer(0, 10, "x"), y = m.add_continuous(-5, 5, "y"), b = m.add_binary("b");
  m.at_most({{x, 1}, {y, 1}}, 4, "sum");
  m.add_indicator(b, true, 0, {{y, 1}}, 0, "rest");
  const auto at = [&](double p, double q, double r) {
    const double values[] = {p, q, r};
    return violation(m, values);
  };
  EXPECT_EQ(at(3, 1, 0), "");
  EXPECT_EQ(at(3, 1 + 5e-7, 0), "");
  EXPECT_THAT(at(3, 1.01, 0), HasSubstr("row 'sum' is 4.01"));
  EXPECT_THAT(at(2.5, 1, 0), HasSubstr("'x' is 2.5, not an integer"));
  EXPECT_THAT(at(3, -6, 0), HasSubstr("variable 'y'"));
  EXPECT_THAT(at(3, 1, 1), HasSubstr("indicator 'rest'"));
  EXPECT_THAT(at(3, NAN, 0), HasSubstr("not a finite number"));
  EXPECT_THAT(violation(m, std::vector<double>{1, 2}), HasSubstr("2 values for 3 variables"));
  // The tolerance is relative to the largest term: half a unit in a million is within 1e-6.
  Milp large;
  const Var z = large.add_continuous(0, 1e7);
  large.at_most({{z, 1}}, 1e6);
  EXPECT_EQ(violation(large, std::vector<double>{1e6 + 0.5}), "");
  EXPECT_NE(violation(large, std::vector<double>{1e6 + 1.5}), "");
}

}  // namespace
}  // namespace heddle
