// Rates at which batches fill: from an NP plan made here, or from published plans.
#include "heddle/fleet/estimated_rates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fleet_support.h"

namespace heddle {
namespace {

TEST(EstimatedRates, OfNpDoNotDependOnWhatTheFleetHadBefore) {
  int planned = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    auto fleet = random_fleet(random, {.models = 2, .max_count = 6});
    const auto rates = np_rates(fleet);
    if (!rates.ok()) {
      EXPECT_EQ(rates.error().code(), Code::kInfeasible) << rates.error().to_string();
      continue;
    }
    ++planned;
    ASSERT_EQ(rates->size(), 2u);
    ASSERT_TRUE(set_estimated_rates(fleet, *rates).ok());
    EXPECT_EQ(fleet.models[1].estimated_rate_per_s, (*rates)[1]);
    const auto again = np_rates(fleet);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(*again, *rates);
    // With time to fill batches, no plan serves more.
    const auto charged = plan_fleet(fleet, "np");
    if (!charged.ok()) continue;
    double instant = INFINITY;
    for (size_t m = 0; m < 2; ++m) instant = std::min(instant, (*rates)[m] / fleet.models[m].weight);
    EXPECT_LE(charged->value, instant * (1 + 1e-9));
  }
  EXPECT_GE(planned, 10);
}

TEST(EstimatedRates, OneDeviceIsWorkedOutByHand) {
  Fleet fleet;
  fleet.name = "one";
  fleet.classes = {{.name = "c", .count = 3, .nic_bytes_per_s = 1e9}};
  FleetModel m;
  m.name = "m";
  m.blocks = 1;
  m.cut_bytes = {1, 1};
  m.latency_us = {{{{1000}, {1600}}}};
  m.slo_us = 1600;
  fleet.models = {m};
  const auto rates = np_rates(fleet);
  ASSERT_TRUE(rates.ok()) << rates.error().to_string();
  EXPECT_NEAR((*rates)[0], 3 * 2 / 1600e-6, 1e-6);
  // A batch of two would take 1600 us plus 1.3 / 3750 s to fill, which is late.
  ASSERT_TRUE(set_estimated_rates(fleet, *rates).ok());
  EXPECT_NEAR(plan_fleet(fleet, "np")->value, 3 / 1000e-6, 1e-6);
  fleet.models[0].slo_us = 500;
  EXPECT_EQ(np_rates(fleet).error().code(), Code::kInfeasible);
}

TEST(EstimatedRates, RefusesRatesThatSayNothing) {
  Random random(1);
  auto fleet = random_fleet(random, {});
  const double before = fleet.models[0].estimated_rate_per_s;
  for (const std::vector<double>& bad :
       {std::vector<double>{1}, {1, 0}, {1, -2}, {1, std::nan("")}, {1, INFINITY}}) {
    EXPECT_EQ(set_estimated_rates(fleet, bad).error().code(), Code::kInvalidInput);
    EXPECT_EQ(fleet.models[0].estimated_rate_per_s, before);
  }
}

TEST(EstimatedRates, OfPublishedPlansNeedTheSameModelsAndWeights) {
  Random random(2);
  const auto fleet = random_fleet(random, {});
  PpipeReference r;
  r.cluster = "C";
  r.fleet = fleet;
  std::swap(r.fleet.models[0], r.fleet.models[1]);
  r.fleet.models[0].estimated_rate_per_s = 20;
  r.fleet.models[1].estimated_rate_per_s = 10;
  EXPECT_EQ(*published_rates(fleet, "C", {r}), (std::vector<double>{10, 20}));
  EXPECT_EQ(published_rates(fleet, "D", {r}).error().code(), Code::kNotFound);
  auto other = fleet;
  other.models.pop_back();
  EXPECT_EQ(published_rates(other, "C", {r}).error().code(), Code::kNotFound);
  other = fleet;
  other.models[0].weight = 7;
  const auto refused = published_rates(other, "C", {r});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().to_string().find("expected --weights"), std::string::npos);
}

TEST(EstimatedRates, OfNpMatchThePublishedOnesWhereTheModelIsTheBottleneck) {
  if (ppipe_folder().empty()) GTEST_SKIP() << "HEDDLE_SHARED has no data/ppipe";
  const auto data = read_ppipe_data(ppipe_folder());
  ASSERT_TRUE(data.ok()) << data.error().to_string();
  const auto references = read_ppipe_references(*data, ppipe_folder());
  ASSERT_TRUE(references.ok()) << references.error().to_string();
  for (const auto& r : *references) {
    if (r.algorithm != "bl") continue;
    const auto rates = np_rates(r.fleet);
    ASSERT_TRUE(rates.ok()) << r.plan_id << ": " << rates.error().to_string();
    double ours = INFINITY, theirs = INFINITY;
    for (size_t m = 0; m < r.fleet.models.size(); ++m) {
      ours = std::min(ours, (*rates)[m] / r.fleet.models[m].weight);
      theirs = std::min(theirs, r.fleet.models[m].estimated_rate_per_s / r.fleet.models[m].weight);
    }
    EXPECT_NEAR(ours, theirs, 1e-6 * theirs) << r.plan_id;
  }
}

}  // namespace
}  // namespace heddle
