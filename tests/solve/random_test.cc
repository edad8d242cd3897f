// HiGHS, CP-SAT and trying all points agree on random models of every shape, with presolve and without.

#include <gtest/gtest.h>

#include "heddle/solve/cross_check.h"
#include "heddle/solve/small_models.h"

namespace heddle {
namespace {

bool cp_sat_is_there() {
  const auto solution = solve(CpModel());
  return solution.ok() || solution.error().code() != Code::kUnsupported;
}

class RandomModels : public testing::TestWithParam<std::tuple<ModelShape, uint64_t>> {};

TEST_P(RandomModels, AllAnswersAndEveryPointAgree) {
  const auto [shape, seed] = GetParam();
  Random random(seed);
  const bool cp_sat = cp_sat_is_there();
  int infeasible = 0;
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE("model " + std::to_string(i));
    const SmallModel model = random_small_model(random, shape);
    const auto least = model.least();
    infeasible += !least;
    SolveOptions options;
    options.seed = static_cast<uint64_t>(i);
    auto answers =
        model.unit == 1 && cp_sat ? all_answers(to_cp(model), options) : all_answers(to_milp(model), options);
    const double value = least ? static_cast<double>(*least) / static_cast<double>(model.unit) : kNoBound;
    const SolveStatus status = least ? SolveStatus::kOptimal : SolveStatus::kInfeasible;
    for (const SolverAnswer& a : answers) EXPECT_EQ(a.status, status) << a.by << a.fault;
    answers.push_back({"every point", status, value, value, ""});
    ASSERT_EQ(contradiction(answers), "");
  }
  // The shape has models of both kinds.
  EXPECT_LT(infeasible, 190);
  EXPECT_GT(infeasible, 5);
}

INSTANTIATE_TEST_SUITE_P(
    ShapesAndSeeds, RandomModels,
    testing::Combine(testing::Values(ModelShape::kIntegerRows, ModelShape::kContinuousBesideInteger,
                                     ModelShape::kAtMostOneBesideRows, ModelShape::kEnforcedRows),
                     testing::Range<uint64_t>(1, 4)));

TEST(Contradiction, NamesWhoClaimsWhat) {
  const auto optimal = [](const char* by, double value) {
    return SolverAnswer{by, SolveStatus::kOptimal, value, value, ""};
  };
  const SolverAnswer infeasible{"C", SolveStatus::kInfeasible, kNoBound, kNoBound, ""};
  const SolverAnswer stopped{"D", SolveStatus::kFeasible, 12, 7, ""};
  const SolverAnswer broken{"E", SolveStatus::kUnknown, kNoBound, -kNoBound, "its solution breaks the model"};
  const auto of = [](std::vector<SolverAnswer> answers) { return contradiction(answers); };
  EXPECT_EQ(of({optimal("A", 9), optimal("B", 9), stopped}), "");
  EXPECT_EQ(of({infeasible, infeasible}), "");
  EXPECT_EQ(of({optimal("A", 15), optimal("B", 9)}), "A claims the bound 15, B has a solution of value 9");
  EXPECT_EQ(of({optimal("A", 9), infeasible}), "C finds no solution, A one of value 9");
  EXPECT_EQ(of({optimal("A", 13), stopped}), "A claims the bound 13, D has a solution of value 12");
  EXPECT_EQ(of({optimal("A", 9), broken}), "E: its solution breaks the model");
}

// Each kind of constraint, with a solution that CP-SAT and HiGHS must both find.
TEST(CpAsMilp, KeepsTheOptimumOfEveryConstraint) {
  CpModel model;
  const CpLit a = model.add_literal(), b = model.add_literal(), c = model.add_literal();
  const CpVar s = model.add_integer(0, 20), t = model.add_integer(0, 20), end = model.add_integer(0, 40);
  const CpLit first[] = {a, b}, both[] = {b, !c}, some[] = {a, c}, when[] = {c};
  model.exactly_one(first);
  model.at_most_one(some);
  model.any_of(both, when);
  model.all_of(std::span(&b, 1), when);
  // c: 3 ticks instead of 7 for the first interval, if b.
  const CpVar x_end = model.add_integer(0, 40);
  const CpInterval x = model.interval(s, CpExpr(7).add(c, -4), x_end);
  const CpInterval y = model.interval(t, 5, CpExpr(t).add(5));
  const CpInterval intervals[] = {x, y};
  model.no_overlap(intervals);
  model.maximum(CpExpr(end), {CpExpr(x_end), CpExpr(t).add(5)});
  model.linear(2, CpExpr(t), 20, when);
  model.minimise(CpExpr(end).add(3));
  // With c: x takes 3 ticks, y 5 from 3 on (not before 2): 8. Plus 3.
  const auto milp = solve(to_milp(model));
  ASSERT_TRUE(milp.ok()) << milp.error().to_string();
  EXPECT_EQ(milp->status, SolveStatus::kOptimal);
  EXPECT_EQ(milp->objective, 11);
  if (cp_sat_is_there()) {
    EXPECT_EQ(solve(model)->objective, 11);
  }
  EXPECT_NE(to_text(model).find("no_overlap"), std::string::npos);
}

}  // namespace
}  // namespace heddle
