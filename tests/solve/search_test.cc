// Start, progress and end of searches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "heddle/base/random.h"
#include "heddle/solve/cp.h"
#include "heddle/solve/milp.h"
#include "heddle/solve/small_models.h"

namespace heddle {
namespace {

// Market split: halve several rows of random weights at once. Years of work beyond dozens of variables.
Milp market_split(int rows, int variables, bool slack = true) {
  Milp m;
  Random random(5);
  std::vector<Var> x;
  for (int j = 0; j < variables; ++j) x.push_back(m.add_binary());
  for (int i = 0; i < rows; ++i) {
    std::vector<Term> terms;
    int64_t sum = 0;
    for (const Var v : x) {
      const int64_t weight = random.between(0, 99);
      sum += weight;
      terms.push_back({v, double(weight)});
    }
    if (slack) {
      for (const double sign : {1.0, -1.0}) {
        const Var s = m.add_continuous(0, 1e5);
        m.add_cost(s, 1);
        terms.push_back({s, sign});
      }
    }
    m.equal(terms, double(sum / 2));
  }
  return m;
}

CpModel market_split_cp(int rows, int variables) {
  CpModel m;
  Random random(5);
  std::vector<CpVar> x;
  CpExpr total;
  for (int j = 0; j < variables; ++j) x.push_back(m.add_integer(0, 1));
  for (int i = 0; i < rows; ++i) {
    CpExpr expr;
    int64_t sum = 0;
    for (const CpVar v : x) {
      const int64_t weight = random.between(0, 99);
      sum += weight;
      expr.add(v, weight);
    }
    const CpVar more = m.add_integer(0, 10000), less = m.add_integer(0, 10000);
    expr.add(more, 1).add(less, -1);
    total.add(more, 1).add(less, 1);
    m.linear(sum / 2, expr, sum / 2);
  }
  m.minimise(total);
  return m;
}

bool unavailable(const Result<Solution>& s) { return !s.ok() && s.error().code() == Code::kUnsupported; }

template <class Model>
Result<Solution> cancelled_in_the_middle(const Model& model, int threads) {
  const CancelToken token;
  SolveOptions options;
  options.deadline = Deadline::never(token);
  options.threads = threads;
  std::thread other([token] {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    token.cancel();
  });
  auto s = solve(model, options);
  other.join();
  return s;
}

TEST(Cancel, FromAnotherThreadEndsAMilp) {
  const Milp m = market_split(6, 60);
  for (const int threads : {1, 2}) {
    const auto s = cancelled_in_the_middle(m, threads);
    ASSERT_TRUE(s.ok()) << s.error().to_string();
    EXPECT_TRUE(s->status == SolveStatus::kFeasible || s->status == SolveStatus::kUnknown);
    EXPECT_LE(s->bound, s->objective);
    if (s->has_values()) {
      EXPECT_EQ(violation(m, s->values), "");
    }
  }
}

TEST(Cancel, FromAnotherThreadEndsACpSearch) {
  const CpModel m = market_split_cp(6, 60);
  const auto s = cancelled_in_the_middle(m, 1);
  if (unavailable(s)) GTEST_SKIP() << s.error().to_string();
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  EXPECT_TRUE(s->status == SolveStatus::kFeasible || s->status == SolveStatus::kUnknown);
  EXPECT_LE(s->bound, s->objective);
}

TEST(Deadline, EndsBothSearches) {
  SolveOptions options;
  options.deadline = Deadline::after_seconds(0.3);
  const auto milp = solve(market_split(6, 60), options);
  ASSERT_TRUE(milp.ok());
  EXPECT_NE(milp->status, SolveStatus::kOptimal);
  options.deadline = Deadline::after_seconds(0.3);
  const auto cp = solve(market_split_cp(6, 60), options);
  if (unavailable(cp)) GTEST_SKIP() << cp.error().to_string();
  ASSERT_TRUE(cp.ok());
  EXPECT_NE(cp->status, SolveStatus::kOptimal);
}

// HiGHS does not leave its presolve in time: the call returns, and the remaining thread does no harm.
TEST(Work, EndsAMilpAtTheSamePlaceEachTime) {
  const Milp model = market_split(6, 50);
  SolveOptions options;
  options.work = 0.02;
  const auto a = solve(model, options), b = solve(model, options);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->status, SolveStatus::kFeasible);
  EXPECT_EQ(a->values, b->values);
  EXPECT_EQ(a->bound, b->bound);
  options.work = 0.1;
  const auto more = solve(model, options);
  ASSERT_TRUE(more.ok());
  EXPECT_GE(more->bound, a->bound);
  EXPECT_LE(more->objective, a->objective);
  options.work = 0;
  EXPECT_EQ(solve(model, options).error().code(), Code::kInvalidInput);
}

TEST(Deadline, ACallerIsNotKeptByPresolve) {
  Milp m;
  std::vector<std::array<Var, 5>> on;
  std::vector<Var> start;
  const Var makespan = m.add_continuous(0, kNoBound);
  m.add_cost(makespan, 1);
  for (int j = 0; j < 60; ++j) {
    on.push_back({});
    std::vector<Term> one;
    for (Var& v : on.back()) {
      v = m.add_binary();
      one.push_back({v, 1});
    }
    m.equal(one, 1);
    start.push_back(m.add_continuous(0, 1e5));
    m.at_most({{start.back(), 1}, {makespan, -1}}, -10.0 - j);
    for (size_t i = 0; i + 1 < on.size(); ++i) {
      const Var first = m.add_binary();
      for (size_t k = 0; k < 5; ++k) {
        m.at_most({{start[i], 1}, {start.back(), -1}, {first, 1e5}, {on[i][k], 1e5}, {on.back()[k], 1e5}},
                  3e5 - 10);
        m.at_most({{start.back(), 1}, {start[i], -1}, {first, -1e5}, {on[i][k], 1e5}, {on.back()[k], 1e5}},
                  2e5 - 10);
      }
    }
  }
  const auto s = cancelled_in_the_middle(m, 1);
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  EXPECT_NE(s->status, SolveStatus::kInfeasible);
  Milp small;
  small.add_cost(small.add_integer(1, 5), 1);
  EXPECT_EQ(solve(small)->objective, 1);
}

// CP-SAT does not check for a stop while it simplifies a large model: the call returns with the hint, and the
// remaining search disturbs no other.
TEST(Deadline, ACallerIsNotKeptByCpSatsPresolve) {
  constexpr int64_t kJobs = 150, kMachines = 40, kLength = 10, kHorizon = kJobs * kMachines * kLength;
  CpModel m;
  const CpVar end = m.add_integer(0, kHorizon);
  std::vector<std::vector<CpInterval>> on(kMachines);
  for (int64_t j = 0; j < kJobs; ++j) {
    std::optional<CpVar> before;
    for (int64_t k = 0; k < kMachines; ++k) {
      const CpVar start = m.add_integer(0, kHorizon);
      on[(j + k) % kMachines].push_back(m.interval(start, kLength, CpExpr(start).add(kLength)));
      const int64_t at = (j * kMachines + k) * kLength;  // one job after another
      m.hint(start, at);
      if (before) m.linear(kLength, CpExpr(start).add(*before, -1), kHorizon);
      before = start;
    }
    m.linear(kLength, CpExpr(end).add(*before, -1), kHorizon);
  }
  for (const auto& machine : on) m.no_overlap(machine);
  m.hint(end, kHorizon);
  m.minimise(CpExpr(end));
  const auto s = cancelled_in_the_middle(m, 1);
  if (unavailable(s)) GTEST_SKIP() << s.error().to_string();
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  EXPECT_TRUE(s->has_values());
  EXPECT_LE(s->objective, kHorizon);
  EXPECT_LE(s->bound, s->objective);
  CpModel small;
  small.minimise(CpExpr(small.add_integer(1, 5)));
  EXPECT_EQ(solve(small)->objective, 1);
}

TEST(Start, IsWhatAStoppedSearchAnswers) {
  const CancelToken token;
  token.cancel();
  SolveOptions options;
  options.deadline = Deadline::never(token);
  int reports = 0;
  options.on_progress = [&](const SolveProgress& p) {
    ++reports;
    EXPECT_EQ(p.incumbent, -3);
    EXPECT_EQ(p.values.size(), 2u);
  };
  Milp m;
  const Var x = m.add_integer(0, 5), y = m.add_integer(0, 5);
  m.add_cost(x, -1);
  m.at_most({{x, 1}, {y, 1}}, 5);
  EXPECT_EQ(solve(m, options)->status, SolveStatus::kUnknown);
  m.set_start(x, 4);
  m.set_start(y, 2);  // 4 + 2 > 5: no solution
  EXPECT_EQ(solve(m, options)->status, SolveStatus::kUnknown);
  m.set_start(x, 3);
  const auto s = solve(m, options);
  EXPECT_EQ(s->status, SolveStatus::kFeasible);
  EXPECT_EQ(s->objective, -3);
  EXPECT_EQ(reports, 1);
}

TEST(Start, OfEveryKindLeadsToTheSameOptimum) {
  Random random(3);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    const SmallModel p = random_small_model(random, ModelShape::kIntegerRows);
    Milp m = to_milp(p);
    CpModel cp = to_cp(p);
    const auto without = solve(m);
    ASSERT_TRUE(without.ok());
    for (size_t j = 0; j < p.variables.size(); ++j) {
      if (i % 3 == 0 && j % 2 == 0) continue;  // incomplete
      // Either complete, in most cases infeasible, in some out of bounds; or the optimum itself.
      int64_t value = random.between(p.variables[j].lower - 1, p.variables[j].upper + 1);
      if (i % 3 == 1 && without->has_values()) value = int64_t(without->values[j]);
      m.set_start({int32_t(j)}, double(value));
      cp.hint({int32_t(j)}, value);
    }
    const auto with = solve(m), hinted = solve(cp);
    ASSERT_TRUE(with.ok()) << with.error().to_string();
    EXPECT_EQ(with->status, without->status);
    EXPECT_EQ(with->objective, without->objective);
    if (unavailable(hinted)) continue;
    ASSERT_TRUE(hinted.ok()) << hinted.error().to_string();
    EXPECT_EQ(hinted->status, without->status);
    EXPECT_EQ(hinted->objective, without->objective);
  }
}

TEST(Hint, IsWhatAStoppedCpSearchAnswers) {
  const CancelToken token;
  token.cancel();
  SolveOptions options;
  options.deadline = Deadline::never(token);
  CpModel m;
  const CpVar x = m.add_integer(0, 5);
  CpExpr objective(7);
  m.minimise(objective.add(x, -1));
  EXPECT_EQ(solve(m, options)->status, SolveStatus::kUnknown);
  m.hint(x, 4);
  const auto s = solve(m, options);
  EXPECT_EQ(s->status, SolveStatus::kFeasible);
  EXPECT_EQ(s->objective, 3);
}

TEST(Progress, IncumbentsFallBoundsRiseAndValuesFit) {
  const Milp m = market_split(3, 20);
  SolveOptions options;
  double incumbent = kNoBound, bound = -kNoBound;
  int solutions = 0;
  options.on_progress = [&](const SolveProgress& p) {
    EXPECT_LE(p.incumbent, incumbent);
    EXPECT_LE(p.bound, p.incumbent);
    EXPECT_GE(p.bound, bound);
    if (!p.values.empty()) {
      ++solutions;
      EXPECT_LT(p.incumbent, incumbent);
      EXPECT_EQ(violation(m, p.values), "");
      EXPECT_NEAR(m.objective(p.values), p.incumbent, 1e-9);
    }
    incumbent = p.incumbent;
    bound = p.bound;
  };
  options.deadline = Deadline::after_seconds(5);
  const auto s = solve(m, options);
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  EXPECT_GT(solutions, 0);
  EXPECT_EQ(s->objective, incumbent);
  EXPECT_LE(bound, s->objective);
}

// Every reported bound holds for the model itself, even while starts are completed or sub-problems solved.
TEST(Progress, EveryBoundIsBelowTheOptimum) {
  Random random(9);
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE(i);
    Milp m;  // jobs on machines, minimal makespan
    const Var makespan = m.add_continuous(0, 1000);
    m.add_cost(makespan, 1);
    std::vector<std::vector<Term>> load(3, {{makespan, -1}});
    for (int j = 0; j < 9; ++j) {
      std::vector<Term> one;
      for (auto& terms : load) {
        one.push_back({m.add_binary(), 1});
        terms.push_back({one.back().var, double(random.between(10, 99))});
      }
      m.equal(one, 1);
      if (i % 2 == 0 && j < 6) m.set_start(one[random.below(3)].var, 1);  // incomplete, and mostly bad
    }
    for (const auto& terms : load) m.at_most(terms, 0);
    SolveOptions options;
    double highest = -kNoBound;
    options.on_progress = [&](const SolveProgress& p) { highest = std::max(highest, p.bound); };
    const auto s = solve(m, options);
    ASSERT_TRUE(s.ok()) << s.error().to_string();
    ASSERT_EQ(s->status, SolveStatus::kOptimal);
    EXPECT_LE(highest, s->objective + 1e-6);
    EXPECT_NEAR(s->bound, s->objective, 1e-3);
  }
}

TEST(Threads, TwoNumbersOfThemInOneProcessInAnyOrder) {
  const Milp m = market_split(2, 14);
  SolveOptions options;
  std::vector<double> first[3];
  double objective = kNoBound;
  for (const int threads : {1, 2, 1, 2}) {
    options.threads = threads;
    const auto s = solve(m, options);
    ASSERT_TRUE(s.ok()) << s.error().to_string();
    ASSERT_EQ(s->status, SolveStatus::kOptimal);
    if (objective == kNoBound) objective = s->objective;
    EXPECT_NEAR(s->objective, objective, 1e-6);
    // The same number of threads gives the same answer.
    auto& values = first[threads];
    if (values.empty()) values = s->values;
    EXPECT_EQ(s->values, values) << threads;
  }
}

TEST(Threads, BothSolversAtOnceWithDifferentNumbersOfThreads) {
  const Milp m = market_split(2, 12);
  const CpModel cp = market_split_cp(2, 12);
  const auto expected = solve(m);
  ASSERT_TRUE(expected.ok());
  std::vector<std::future<std::string>> answers;
  for (int i = 0; i < 4; ++i) {
    answers.push_back(std::async(std::launch::async, [&, i] {
      for (int k = 0; k < 3; ++k) {
        SolveOptions options;
        options.threads = 1 + (i + k) % 3;
        const auto s = i % 2 == 0 ? solve(m, options) : solve(cp, options);
        if (unavailable(s)) return std::string();
        if (!s.ok()) return s.error().to_string();
        if (std::abs(s->objective - expected->objective) > 1e-6) return std::string("another optimum");
      }
      return std::string();
    }));
  }
  for (auto& answer : answers) EXPECT_EQ(answer.get(), "");
}

TEST(Status, HasNames) {
  EXPECT_STREQ(solve_status_name(SolveStatus::kOptimal), "optimal");
  EXPECT_STREQ(solve_status_name(SolveStatus::kUnknown), "unknown");
}

}  // namespace
}  // namespace heddle
