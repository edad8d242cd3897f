// When pools are said to have drifted, by how much, and what becomes of the fleet's times.
#include "control/drift_watch.h"

#include <gtest/gtest.h>

#include "heddle/base/json.h"

namespace heddle {
namespace {

// One model of three blocks on the classes a and b.
Fleet three_blocks() {
  Fleet fleet;
  fleet.name = "three";
  fleet.classes = {{.name = "a", .count = 2, .share_levels = 2, .nic_bytes_per_s = 1e9},
                   {.name = "b", .count = 2, .nic_bytes_per_s = 1e9}};
  FleetModel net;
  net.name = "net";
  net.blocks = 3;
  net.cut_bytes = {1, 1, 1, 1};
  net.slo_us = 1e6;
  net.latency_us = {{{{100, 200, 300}, {150, 250, 350}}, {{200, 400, 600}}}, {{{1000, 2000, 3000}}}};
  fleet.models = {net};
  return fleet;
}

PoolRole role(const std::string& device_class, int from, int to, int share = 1) {
  return {"net", from, to, device_class, share};
}

// Ten runs a second of a planned tenth of a second each, watched twice a second.
class Watched {
 public:
  explicit Watched(const DriftOptions& options) : watch(options) {}
  std::vector<Drift> run(double seconds, double ratio) { return run(seconds, {{role("a", 0, 3), ratio}}); }
  // Until something is told, at most so long.
  std::vector<Drift> run(double seconds, const std::map<PoolRole, double>& ratios) {
    for (const double until = now + seconds; now < until - 1e-9;) {
      now += .5;
      std::vector<PoolReading> readings;
      for (const auto& [r, ratio] : ratios) {
        auto& reading = counters[r];
        reading.role = r;
        reading.runs += 5;
        reading.predicted_s += .5;
        reading.busy_s += .5 * ratio;
      }
      for (const auto& [r, reading] : counters) readings.push_back(reading);
      if (auto drifts = watch.look(now, fleet, readings); !drifts.empty()) return drifts;
    }
    return {};
  }
  std::vector<Drift> idle(double seconds) { return run(seconds, std::map<PoolRole, double>()); }
  void plan_began() {
    counters.clear();
    watch.plan_began();
  }

  Fleet fleet = three_blocks();
  DriftWatch watch;
  std::map<PoolRole, PoolReading> counters;
  double now = 1000;
};

constexpr DriftOptions kOptions = {.share = .25, .window_runs = 20, .hold_s = 5, .back_off_s = 10};

TEST(DriftWatch, NothingIsToldWithinTheBand) {
  Watched w(kOptions);
  EXPECT_TRUE(w.run(60, 1).empty());
  EXPECT_TRUE(w.run(60, 1.24).empty());
  EXPECT_TRUE(w.run(60, .81).empty());
}

TEST(DriftWatch, WhatLastsIsToldWithTheRatioOfTheLastRunsAlone) {
  for (const double ratio : {2.0, .5}) {
    Watched w(kOptions);
    EXPECT_TRUE(w.run(60, 1).empty());
    const double began = w.now;
    const auto drifts = w.run(60, ratio);
    ASSERT_EQ(drifts.size(), 1U);
    EXPECT_GE(w.now - began, 5);
    EXPECT_LT(w.now - began, 10);
    EXPECT_EQ(drifts[0].times, (TimesOf{"net", "a", 1}));
    EXPECT_NEAR(drifts[0].ratio, ratio, 1e-9);
    EXPECT_EQ(drifts[0].factors, std::vector<double>(3, drifts[0].ratio));
    EXPECT_GE(drifts[0].runs, 20U);
    // As long as nobody acts, it is told.
    EXPECT_FALSE(w.run(.5, ratio).empty());
  }
}

TEST(DriftWatch, WhatPassesIsNotTold) {
  Watched w(kOptions);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(w.run(4, 2).empty());
    EXPECT_TRUE(w.run(4, 1).empty());
  }
}

TEST(DriftWatch, TooFewRunsAreNotCompared) {
  Watched w({.share = .25, .window_runs = 200, .hold_s = 1});
  EXPECT_TRUE(w.run(30, 3).empty());  // 300 runs: not yet 200 since a window of 200 was off
  EXPECT_FALSE(w.run(30, 3).empty());
}

TEST(DriftWatch, TimeWithoutRunsIsNoEvidence) {
  Watched w(kOptions);
  EXPECT_TRUE(w.run(4.5, 3).empty());
  EXPECT_TRUE(w.idle(600).empty());
  EXPECT_TRUE(w.watch.ratios().size() == 1 && w.watch.ratios()[0].ratio > 2.9);
  // A model without traffic never drifts.
  w.counters[role("b", 0, 3)] = {role("b", 0, 3), 0, 0, 0};
  EXPECT_TRUE(w.idle(600).empty());
  const auto drifts = w.run(60, 3);
  ASSERT_EQ(drifts.size(), 1U);
  EXPECT_EQ(drifts[0].times.device_class, "a");
}

TEST(DriftWatch, CorrectedTimesAreTheNewReference) {
  Watched w(kOptions);
  ASSERT_FALSE(w.run(60, 2).empty());
  w.plan_began();
  EXPECT_TRUE(w.run(60, 1).empty());
  EXPECT_TRUE(w.run(60, 1.2).empty());
  const auto again = w.run(60, 1.3);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_NEAR(again[0].ratio, 1.3, 1e-9);
}

TEST(DriftWatch, WhatWasNoGoodWaitsTwiceAsLongEachTime) {
  Watched w({.share = .25, .window_runs = 20, .hold_s = 1, .back_off_s = 10, .most_back_off_s = 40});
  double waited = 0;
  for (const double wait : {10.0, 20.0, 40.0, 40.0}) {
    auto drifts = w.run(100, 2);
    ASSERT_FALSE(drifts.empty());
    EXPECT_GE(w.now, waited);
    w.watch.refused(drifts, w.now);
    w.plan_began();
    waited = w.now + wait;
    EXPECT_TRUE(w.run(wait - .6, 2).empty()) << wait;
  }
  // Good at last: the next time is as the first.
  auto drifts = w.run(100, 2);
  ASSERT_FALSE(drifts.empty());
  w.watch.kept(drifts);
  w.plan_began();
  drifts = w.run(100, 2);
  ASSERT_FALSE(drifts.empty());
  w.watch.refused(drifts, w.now);
  EXPECT_TRUE(w.run(9, 2).empty());
  EXPECT_FALSE(w.run(2, 2).empty());
}

TEST(DriftWatch, AnotherRatioIsAnotherChange) {
  Watched w(kOptions);
  auto drifts = w.run(60, 2);
  w.watch.refused(drifts, w.now);
  w.plan_began();
  EXPECT_TRUE(w.run(8, 2.2).empty());
  drifts = w.run(20, 4);
  ASSERT_FALSE(drifts.empty());
  EXPECT_GT(drifts[0].ratio, 2.5);
}

TEST(DriftWatch, TheOthersThatAreOffComeAlong) {
  Watched w(kOptions);
  const auto a = role("a", 0, 3), half = role("a", 0, 3, 2), b = role("b", 0, 3);
  EXPECT_TRUE(w.run(2, {{a, 2}, {half, 1}, {b, 1}}).empty());
  const auto drifts = w.run(60, {{a, 2}, {half, 1}, {b, 3}});
  ASSERT_EQ(drifts.size(), 2U);
  EXPECT_EQ(drifts[0].times, (TimesOf{"net", "a", 1}));
  EXPECT_EQ(drifts[1].times, (TimesOf{"net", "b", 1}));
}

TEST(DriftWatch, BlocksAreCorrectedByThePoolsThatHaveThem) {
  Watched w(kOptions);
  // Block 1 is in both pools; block 2 in none.
  const auto drifts = w.run(60, {{role("a", 0, 2), 3}, {role("a", 1, 2), 1}});
  ASSERT_EQ(drifts.size(), 1U);
  EXPECT_NEAR(drifts[0].ratio, 2, 1e-9);
  ASSERT_EQ(drifts[0].factors.size(), 3U);
  EXPECT_NEAR(drifts[0].factors[0], 3, 1e-9);
  EXPECT_NEAR(drifts[0].factors[1], 2, 1e-9);
  EXPECT_NEAR(drifts[0].factors[2], 2, 1e-9);
}

TEST(BlockCorrections, ScaleTheTimesOfOneClassAndShareAtAllBatchSizes) {
  BlockCorrections corrections;
  EXPECT_TRUE(corrections.empty());
  corrections.multiply({"net", "a", 1}, {2, 1, 1});
  corrections.multiply({"net", "a", 1}, {1.5, 1, 3});
  corrections.multiply({"gone", "a", 1}, {2});
  corrections.multiply({"net", "b", 4}, {2, 2, 2});
  const auto fleet = corrections.applied(three_blocks());
  using Rows = std::vector<std::vector<double>>;
  EXPECT_EQ(fleet.models[0].latency_us[0][0], (Rows{{300, 200, 900}, {450, 250, 1050}}));
  EXPECT_EQ(fleet.models[0].latency_us[0][1], three_blocks().models[0].latency_us[0][1]);
  EXPECT_EQ(fleet.models[0].latency_us[1], three_blocks().models[0].latency_us[1]);
}

TEST(BlockCorrections, EndWhereTimesAreDescribedAnew) {
  BlockCorrections corrections;
  corrections.multiply({"net", "a", 1}, {2, 2, 2});
  corrections.multiply({"net", "a", 2}, {3, 3, 3});
  corrections.multiply({"net", "b", 1}, {4, 4, 4});
  auto other = three_blocks();
  other.classes[0].count = 7;
  other.models[0].latency_us[0][0][0][0] = 150;
  other.classes[1].name = "c";
  corrections.forget_changed(three_blocks(), other);
  const auto left = corrections.to_json();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0], Json({{"model", "net"}, {"class", "a"}, {"share", 2}, {"factors", {3., 3., 3.}}}));
}

TEST(WithTimesOf, TakesTimesByNames) {
  auto times = three_blocks();
  std::swap(times.classes[0], times.classes[1]);
  std::swap(times.models[0].latency_us[0], times.models[0].latency_us[1]);
  times.models[0].latency_us[0][0][0][2] = 9000;
  const auto fleet = with_times_of(three_blocks(), times);
  ASSERT_TRUE(fleet.ok());
  EXPECT_EQ(fleet->models[0].latency_us[1][0][0][2], 9000);
  EXPECT_EQ(fleet->models[0].latency_us[0], three_blocks().models[0].latency_us[0]);
  times.models[0].blocks = 2;
  EXPECT_FALSE(with_times_of(three_blocks(), times).ok());
}

}  // namespace
}  // namespace heddle
