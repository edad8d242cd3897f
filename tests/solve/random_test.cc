// HiGHS, CP-SAT and brute force agree on 10,000 random integer models.

#include <gtest/gtest.h>

#include "brute_force.h"
#include "heddle/solve/cp.h"
#include "heddle/solve/milp.h"
#include "random_models.h"

namespace heddle {
namespace {

void expect_agreement(const Result<Solution>& s, const std::optional<int64_t>& truth, const char* solver) {
  ASSERT_TRUE(s.ok()) << solver << ": " << s.error().to_string();
  if (!truth) {
    EXPECT_EQ(s->status, SolveStatus::kInfeasible) << solver;
    return;
  }
  ASSERT_EQ(s->status, SolveStatus::kOptimal) << solver;
  EXPECT_EQ(s->objective, double(*truth)) << solver;
  EXPECT_NEAR(s->bound, double(*truth), 1e-5) << solver;
  EXPECT_LE(s->bound, s->objective) << solver;
}

class RandomModels : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomModels, HighsCpSatAndEveryPointAgree) {
  Random random(GetParam());
  const bool cp_sat = [] {
    CpModel empty;
    const auto s = solve(empty);
    return s.ok() || s.error().code() != Code::kUnsupported;
  }();
  int infeasible = 0;
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE("model " + std::to_string(i) + " of seed " + std::to_string(GetParam()));
    const Problem p = random_problem(random);
    const auto truth = least(
        p.lower, p.upper, [&](auto x) { return p.fits(x); }, [&](auto x) { return p.objective(x); });
    infeasible += !truth;
    SolveOptions options;
    options.seed = static_cast<uint64_t>(i);
    expect_agreement(solve(to_milp(p), options), truth, "HiGHS");
    if (cp_sat) expect_agreement(solve(to_cp(p), options), truth, "CP-SAT");
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(infeasible, 50);
  EXPECT_LT(infeasible, 900);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomModels, testing::Range<uint64_t>(1, 11));

}  // namespace
}  // namespace heddle
