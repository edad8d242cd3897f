// No bound is above the best plan: every bound on thousands of small problems whose plans are all tried.
// HEDDLE_BOUND_PROBLEMS: so many problems for each of the cases, with every bound on each (default: 900, the
// dearer bounds on some).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "bounds/cut_bound.h"
#include "bounds/lp_bound.h"
#include "heddle/plan/bounds.h"
#include "heddle/plan/relaxation.h"
#include "heddle/planners/planner.h"
#include "random_small.h"
#include "search/cp_schedule.h"

namespace heddle::test {
namespace {

constexpr int kProblems = 900, kCases = 4;
// Without HEDDLE_BOUND_PROBLEMS: programs on every so manieth problem, planners on fewer.
constexpr int kProgramEvery = 6, kPlannerEvery = 120;
constexpr double kTight = 1e-6;

struct Tally {
  int64_t count = 0, positive = 0, tight = 0;
  double closeness = 0;
};

class BoundsHold : public testing::TestWithParam<std::tuple<Objective, int>> {
 protected:
  // The bound is no more than the best plan, whose checked existence refutes a larger one.
  void expect_holds(const std::string& name, const Problem& problem, double bound_us, double best_us) {
    ASSERT_FALSE(std::isnan(bound_us)) << name << " at problem " << problem_;
    ASSERT_GE(bound_us, 0) << name << " at problem " << problem_;
    ASSERT_LE(bound_us, best_us * (1 + 1e-9) + 1e-9)
        << name << " at problem " << problem_ << ": " << problem.graph->num_ops() << " ops, "
        << problem.usable_devices().size() << " devices";
    Tally& tally = tallies_[name];
    ++tally.count;
    tally.positive += bound_us > 0 ? 1 : 0;
    tally.tight += bound_us >= best_us * (1 - kTight) ? 1 : 0;
    tally.closeness += best_us > 0 ? bound_us / best_us : 1;
  }

  void expect_programs_hold(const Problem& p, double best) {
    const FlatProblem flat(p, p.usable_devices());
    const Relaxation relaxation = relax(p);
    const Bound simple = lower_bound(p);
    expect_holds("linear program", p, lp_bound(flat, relaxation, {}).us, best);
    expect_holds("linear program on known", p, lp_bound(flat, relaxation, {}, simple).us, best);
    if (p.objective == Objective::kThroughput || std::isinf(best)) return;
    FlatPlan hint;
    for (const uint32_t v : flat.topological()) hint.order.push_back(v);
    // Any placement will do as a hint.
    for (size_t v = 0; v < flat.num_ops(); ++v) {
      uint32_t at = 0;
      while (!std::isfinite(relaxation.t(v, at))) ++at;
      hint.device.push_back(at);
    }
    const auto cp = solve_cp_schedule(flat, relaxation, hint, {});
    if (cp.ok()) expect_holds("CP-SAT", p, std::min(cp->bound_us, best), best);
  }

  void expect_planners_hold(const Problem& p, double best) {
    for (const PlannerEntry& entry : planner_registry()) {
      if (!entry.supports(p)) continue;
      PlannerOptions options;
      options.deadline = Deadline::after_seconds(entry.info.name == "auto" ? 0.2 : 0.05);
      const auto result = run_planner(entry, p, options);
      // A planner may find nothing; what it finds must be right, or run_planner() calls it an internal error.
      if (!result.ok()) {
        ASSERT_NE(result.error().code(), Code::kInternal) << result.error().to_string();
        continue;
      }
      ASSERT_TRUE(result->verified);
      ++plans_checked_;
      expect_holds("beside " + entry.info.name, p, result->bound.us, std::min(best, result->value_us));
    }
  }

  int problem_ = 0;
  int64_t plans_checked_ = 0;
  std::map<std::string, Tally> tallies_;
};

TEST_P(BoundsHold, ForTheBestOfAllPlans) {
  const auto [objective, number] = GetParam();
  const char* asked = std::getenv("HEDDLE_BOUND_PROBLEMS");
  const int problems = asked != nullptr ? std::atoi(asked) : kProblems;
  Random random(1000 + static_cast<uint64_t>(number) * 10 + static_cast<uint64_t>(objective));
  int64_t plans = 0;
  int without_plan = 0;
  for (problem_ = 0; problem_ < problems && !HasFatalFailure(); ++problem_) {
    const Problem p = random_small_problem(random, objective);
    const double best = best_of_all_plans(p, plans);
    if (std::isinf(best)) {
      ++without_plan;
      continue;
    }
    expect_holds("lower_bound", p, lower_bound(p).us, best);
    if (objective != Objective::kThroughput)
      expect_holds("destructive", p, destructive_bound(p, {}, kImpossible).us, best);
    const FlatProblem flat(p, p.usable_devices());
    expect_holds("minimum cut", p, cut_bound(flat, relax(p), 0, {}).us, best);
    const Relaxation relaxed = relax(p);
    if (asked != nullptr || problem_ % kProgramEvery == 0) expect_programs_hold(p, best);
    if (problem_ % kPlannerEvery == 0) expect_planners_hold(p, best);
  }
  std::printf("%s: %d problems (%d without a plan), %lld plans tried, %lld planners' plans checked\n",
              objective_name(objective), problem_, without_plan, static_cast<long long>(plans),
              static_cast<long long>(plans_checked_));
  for (const auto& [name, tally] : tallies_) {
    const auto count = static_cast<double>(std::max<int64_t>(1, tally.count));
    std::printf("  %-28s %6lld, tight %5.1f %%, %5.1f %% of the best plan in the mean\n", name.c_str(),
                static_cast<long long>(tally.count), 100 * static_cast<double>(tally.tight) / count,
                100 * tally.closeness / count);
  }
  EXPECT_LT(without_plan, problems / 4 + 1);
  EXPECT_GT(tallies_["lower_bound"].closeness, 0.7 * static_cast<double>(tallies_["lower_bound"].count));
}

INSTANTIATE_TEST_SUITE_P(Problems, BoundsHold,
                         testing::Combine(testing::Values(Objective::kLatency, Objective::kColdLatency,
                                                          Objective::kThroughput),
                                          testing::Range(0, kCases)),
                         [](const auto& i) {
                           std::string name = objective_name(std::get<0>(i.param));
                           std::erase(name, '-');
                           return name + std::to_string(std::get<1>(i.param));
                         });

}  // namespace
}  // namespace heddle::test
