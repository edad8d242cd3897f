// Each kind of constraint against brute force: CP-SAT's optimum must be the best point that passes the
// independent check, and the check must agree with the constraint's definition.
#include <gtest/gtest.h>

#include <algorithm>

#include "brute_force.h"
#include "heddle/base/random.h"
#include "heddle/solve/cp.h"

namespace heddle {
namespace {

// A model over a box of small variables with a random objective.
struct Box {
  CpModel model;
  std::vector<CpVar> x;
  std::vector<int64_t> lower, upper, cost;

  CpVar integer(int64_t lo, int64_t hi) {
    lower.push_back(lo);
    upper.push_back(hi);
    x.push_back(model.add_integer(lo, hi));
    return x.back();
  }
  CpLit literal() { return {integer(0, 1).index}; }
  void random_objective(Random& random) {
    CpExpr objective(random.between(-3, 3));
    for (const CpVar var : x) {
      cost.push_back(random.between(-5, 5));
      objective.add(var, cost.back());
    }
    model.minimise(objective);
    cost.push_back(objective.constant);
  }
  int64_t objective(std::span<const int64_t> point) const {
    int64_t sum = cost.back();
    for (size_t i = 0; i < x.size(); ++i) sum += cost[i] * point[i];
    return sum;
  }
};

bool truth(CpLit literal, std::span<const int64_t> x) {
  return (x[static_cast<size_t>(literal.var().index)] != 0) != literal.negated();
}

// Compares `fits`, written out by the test, with the layer's check at every point, and the optimum with the
// solver's answer.
void compare(const Box& box, const std::function<bool(std::span<const int64_t>)>& fits) {
  std::optional<int64_t> best;
  for_each_point(box.lower, box.upper, [&](std::span<const int64_t> x) {
    const bool good = fits(x);
    const std::string fault = violation(box.model, x);
    ASSERT_EQ(fault.empty(), good) << fault << " at " << testing::PrintToString(x);
    if (good && (!best || box.objective(x) < *best)) best = box.objective(x);
  });
  if (testing::Test::HasFatalFailure()) return;
  const auto s = solve(box.model);
  if (!s.ok() && s.error().code() == Code::kUnsupported)
    return;  // not supported: only the check was
             // compared
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  if (!best) {
    EXPECT_EQ(s->status, SolveStatus::kInfeasible);
    return;
  }
  ASSERT_EQ(s->status, SolveStatus::kOptimal);
  EXPECT_EQ(s->objective, double(*best));
  EXPECT_EQ(s->bound, double(*best));
}

CpLit random_sign(CpLit literal, Random& random) { return random.chance(0.5) ? literal : !literal; }

TEST(CpConstraints, LiteralsInEveryForm) {
  Random random(1);
  for (int i = 0; i < 120 && !HasFatalFailure(); ++i) {
    SCOPED_TRACE(i);
    Box box;
    std::vector<CpLit> all;
    for (int j = 0; j < 5; ++j) all.push_back(box.literal());
    std::vector<std::vector<CpLit>> sets(4);
    for (auto& set : sets) {
      for (const CpLit literal : all) {
        if (random.chance(0.5)) set.push_back(random_sign(literal, random));
      }
    }
    const std::vector<CpLit> when = {random_sign(all[0], random), random_sign(all[1], random)};
    box.model.any_of(sets[0], when);
    box.model.all_of(sets[1], when);
    const bool exactly = random.chance(0.5);
    if (exactly) box.model.exactly_one(sets[2]);
    box.model.at_most_one(sets[3]);
    CpExpr weighted;
    for (const CpLit literal : sets[0]) weighted.add(literal, 2);
    box.model.linear(0, weighted, 6);
    box.random_objective(random);
    compare(box, [&](std::span<const int64_t> x) {
      const auto count = [&](const std::vector<CpLit>& set) {
        return std::count_if(set.begin(), set.end(), [&](CpLit l) { return truth(l, x); });
      };
      const bool on = truth(when[0], x) && truth(when[1], x);
      if (on && count(sets[0]) == 0) return false;
      if (on && count(sets[1]) != std::ssize(sets[1])) return false;
      if (exactly && count(sets[2]) != 1) return false;
      return count(sets[3]) <= 1 && count(sets[0]) <= 3;
    });
  }
}

TEST(CpConstraints, TheMaximumIsOneOfThem) {
  Random random(2);
  for (int i = 0; i < 100 && !HasFatalFailure(); ++i) {
    SCOPED_TRACE(i);
    Box box;
    const CpVar target = box.integer(-6, 8);
    std::vector<CpExpr> exprs;
    std::vector<std::pair<int64_t, int64_t>> lines;
    for (int j = 0; j < 3; ++j) {
      const CpVar x = box.integer(random.between(-3, 0), random.between(0, 3));
      lines.emplace_back(random.between(-2, 2), random.between(-2, 2));
      exprs.emplace_back(lines.back().second);
      exprs.back().add(x, lines.back().first);
    }
    box.model.maximum(target, exprs);
    box.random_objective(random);
    compare(box, [&](std::span<const int64_t> x) {
      int64_t most = INT64_MIN;
      for (size_t j = 0; j < 3; ++j) most = std::max(most, lines[j].first * x[j + 1] + lines[j].second);
      return x[0] == most;
    });
  }
}

// Three intervals: two of fixed size, the third with variables for size and end; each may be optional.
struct Intervals {
  Box box;
  std::vector<CpInterval> intervals;
  std::vector<int64_t> fixed = {0, 0};
  CpVar start[3], size, end;
  bool optional[3];
  CpLit present[3];

  explicit Intervals(Random& random) {
    for (int j = 0; j < 3; ++j) {
      start[j] = box.integer(0, 3);
      optional[j] = random.chance(0.4);
      if (optional[j]) present[j] = random_sign(box.literal(), random);
      std::vector<CpLit> when;
      if (optional[j]) when.push_back(present[j]);
      if (j < 2) {
        fixed[static_cast<size_t>(j)] = random.between(0, 3);
        CpExpr finish(start[j]);
        finish.add(fixed[static_cast<size_t>(j)]);
        intervals.push_back(box.model.interval(start[j], fixed[static_cast<size_t>(j)], finish, when));
      } else {
        size = box.integer(0, 2);
        end = box.integer(0, 4);
        intervals.push_back(box.model.interval(start[2], size, end, when));
      }
    }
    box.random_objective(random);
  }
  struct Span {
    int64_t start, end;
    size_t index;
  };
  // nullopt: start, size and end of an interval do not agree.
  std::optional<std::vector<Span>> spans(std::span<const int64_t> x) const {
    const auto at = [&](CpVar v) { return x[static_cast<size_t>(v.index)]; };
    std::vector<Span> result;
    for (size_t j = 0; j < 3; ++j) {
      if (optional[j] && !truth(present[j], x)) continue;
      const int64_t s = at(start[j]);
      const int64_t length = j < 2 ? fixed[j] : at(size);
      if (length < 0 || (j == 2 && s + length != at(end))) return std::nullopt;
      result.push_back({s, s + length, j});
    }
    return result;
  }
};

TEST(CpConstraints, IntervalsThatDoNotOverlap) {
  Random random(3);
  for (int i = 0; i < 50 && !HasFatalFailure(); ++i) {
    SCOPED_TRACE(i);
    Intervals p(random);
    p.box.model.no_overlap(p.intervals);
    compare(p.box, [&](std::span<const int64_t> x) {
      const auto spans = p.spans(x);
      if (!spans) return false;
      // One of each pair ends before the other starts.
      for (const auto& a : *spans) {
        for (const auto& b : *spans) {
          if (a.index < b.index && a.end > b.start && b.end > a.start) return false;
        }
      }
      return true;
    });
  }
}

}  // namespace
}  // namespace heddle
