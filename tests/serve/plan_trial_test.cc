// Whether a new plan is kept: by the part of the requests in time, before and after.
#include "control/plan_trial.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

using Verdict = TrialResult::Verdict;

// Requests a second of one model, and the part of them in time.
struct Flow {
  double rate = 0, in_time = 1;
};

class Tried {
 public:
  explicit Tried(const TrialOptions& options) : trial(options) { trial.plan_began(now, false, 1); }
  // Until there is a verdict, at most so long.
  TrialResult run(double seconds, const std::map<std::string, Flow>& flows) {
    for (const double until = now + seconds; now < until - 1e-9;) {
      now += .5;
      std::vector<GoodputReading> readings;
      for (const auto& [name, flow] : flows) {
        arrived[name] += flow.rate / 2;
        in_time[name] += flow.rate * flow.in_time / 2;
      }
      for (const auto& [name, n] : arrived)
        readings.push_back({name, static_cast<uint64_t>(n), static_cast<uint64_t>(in_time[name])});
      if (auto j = trial.look(now, readings); j.verdict != Verdict::kOpen) return j;
    }
    return {};
  }
  void change() { trial.plan_began(now, true, 1); }

  PlanTrial trial;
  double now = 50;
  std::map<std::string, double> arrived, in_time;
};

constexpr TrialOptions kTrialOptions = {.window_s = 10, .margin = .05, .growth = .1};

TEST(PlanTrial, TheBetterPlanStays) {
  Tried t(kTrialOptions);
  EXPECT_EQ(t.run(30, {{"net", {100, .7}}}).verdict, Verdict::kOpen);
  t.change();
  const double began = t.now;
  const auto j = t.run(60, {{"net", {100, .95}}});
  EXPECT_EQ(j.verdict, Verdict::kKept);
  EXPECT_EQ(j.why, "it is no worse");
  EXPECT_NEAR(j.before, .7, .01);
  EXPECT_NEAR(j.after, .95, .01);
  EXPECT_NEAR(t.now - began, 11, 1);
  EXPECT_FALSE(t.trial.open());
  EXPECT_EQ(t.run(60, {{"net", {100, 0}}}).verdict, Verdict::kOpen);  // returned once
}

TEST(PlanTrial, TheWorsePlanGoes) {
  Tried t(kTrialOptions);
  t.run(30, {{"net", {100, 1}}});
  t.change();
  EXPECT_TRUE(t.trial.open());
  const auto j = t.run(60, {{"net", {100, .9}}});
  EXPECT_EQ(j.verdict, Verdict::kWorse);
  EXPECT_NEAR(j.before, 1, .01);
  EXPECT_NEAR(j.after, .9, .01);
  EXPECT_GE(j.requests, 900U);
}

TEST(PlanTrial, ASmallFallIsTolerated) {
  Tried t(kTrialOptions);
  t.run(30, {{"net", {100, 1}}});
  t.change();
  EXPECT_EQ(t.run(60, {{"net", {100, .97}}}).verdict, Verdict::kKept);
}

TEST(PlanTrial, WhatMoreRequestsDoIsNotThePlansFault) {
  Tried t(kTrialOptions);
  t.run(30, {{"net", {100, 1}}});
  t.change();
  const auto j = t.run(60, {{"net", {130, .7}}});
  EXPECT_EQ(j.verdict, Verdict::kKept);
  EXPECT_EQ(j.why, "more requests arrive than before");
  // Fewer requests are no excuse.
  t.run(30, {{"net", {100, 1}}});
  t.change();
  EXPECT_EQ(t.run(60, {{"net", {50, .7}}}).verdict, Verdict::kWorse);
}

TEST(PlanTrial, RequestsOfTheChangeItselfDoNotCount) {
  Tried t(kTrialOptions);
  t.run(30, {{"net", {100, 1}}});
  t.change();
  t.run(1, {{"net", {100, 0}}});
  EXPECT_EQ(t.run(60, {{"net", {100, 1}}}).verdict, Verdict::kKept);
}

TEST(PlanTrial, TooFewRequestsAreNotCompared) {
  Tried t(kTrialOptions);
  t.run(30, {{"net", {2, 1}}});
  t.change();
  auto j = t.run(60, {{"net", {100, 0}}});
  EXPECT_EQ(j.verdict, Verdict::kKept);
  EXPECT_EQ(j.before, 0);
  // The trial goes on for want of them, but not for ever.
  t.run(30, {{"net", {100, 1}}});
  t.change();
  EXPECT_EQ(t.run(20, {{"net", {2, 0}}}).verdict, Verdict::kOpen);
  EXPECT_EQ(t.run(60, {{"net", {2, 0}}}).verdict, Verdict::kWorse);  // 50 requests by then
  t.run(30, {{"net", {100, 1}}});
  t.change();
  EXPECT_EQ(t.run(55, {{"net", {.1, 0}}}).verdict, Verdict::kOpen);
  j = t.run(20, {{"net", {.1, 0}}});
  EXPECT_EQ(j.verdict, Verdict::kKept);
  EXPECT_EQ(j.why, "too few requests came to tell");
}

TEST(PlanTrial, AModelWithoutTrafficSaysNothing) {
  Tried t(kTrialOptions);
  t.run(30, {{"net", {100, 1}}, {"silent", {0, 0}}});
  t.change();
  EXPECT_EQ(t.run(60, {{"net", {100, 1}}, {"silent", {0, 0}}}).verdict, Verdict::kKept);
  // One that had none before is not held against the plan, whatever becomes of it.
  t.run(30, {{"net", {100, 1}}, {"silent", {0, 0}}});
  t.change();
  const auto j = t.run(60, {{"net", {100, 1}}, {"silent", {100, 0}}});
  EXPECT_EQ(j.verdict, Verdict::kKept);
  EXPECT_NEAR(j.after, 1, .01);
}

TEST(PlanTrial, AnotherMixOfModelsIsNotThePlansFault) {
  Tried t(kTrialOptions);
  t.run(30, {{"good", {90, 1}}, {"bad", {10, .2}}});
  t.change();
  const auto j = t.run(60, {{"good", {10, 1}}, {"bad", {90, .2}}});
  EXPECT_EQ(j.verdict, Verdict::kKept);
  EXPECT_NEAR(j.before, .28, .02);
}

TEST(PlanTrial, APlanThatIsReplacedInItsTrialHasNoVerdict) {
  Tried t(kTrialOptions);
  t.run(30, {{"net", {100, 1}}});
  t.change();
  t.run(3, {{"net", {100, 0}}});
  t.trial.plan_began(t.now, false, 1);
  EXPECT_FALSE(t.trial.open());
  EXPECT_EQ(t.run(60, {{"net", {100, 0}}}).verdict, Verdict::kOpen);
}

}  // namespace
}  // namespace heddle
