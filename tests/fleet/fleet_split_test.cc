// Fleets divided among servers.
#include "heddle/fleet/fleet_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "fleet_support.h"
#include "heddle/fleet/fleet_check.h"
#include "heddle/fleet/fleet_replan.h"

namespace heddle {
namespace {

using testing::HasSubstr;

TEST(FleetSplits, EachModelHasOneServerAndNoDeviceTwo) {
  Random random(3);
  for (int i = 0; i < 60; ++i) {
    const Fleet fleet = random_fleet(random, {.models = 4, .max_count = 8});
    const auto plan = plan_fleet(fleet, "auto");
    if (!plan.ok()) continue;
    for (size_t servers = 1; servers <= fleet.models.size(); ++servers) {
      const auto parts = split_fleet(fleet, *plan, static_cast<int>(servers), {});
      ASSERT_TRUE(parts.ok()) << parts.error().to_string();
      ASSERT_EQ(parts->size(), servers);
      std::multiset<std::string> names;
      std::vector<int64_t> devices(fleet.classes.size(), 0);
      for (const FleetPart& part : *parts) {
        EXPECT_FALSE(part.fleet.models.empty());
        EXPECT_TRUE(check_fleet_plan(part.fleet, part.plan).ok());
        // No part is worse than it was in the whole plan.
        EXPECT_GE(part.plan.value, plan->value * (1 - 1e-9));
        for (const auto& model : part.fleet.models) names.insert(model.name);
        for (size_t c = 0; c < devices.size(); ++c) devices[c] += part.fleet.classes[c].count;
      }
      for (const auto& model : fleet.models) EXPECT_EQ(names.count(model.name), 1U);
      for (size_t c = 0; c < devices.size(); ++c) EXPECT_EQ(devices[c], fleet.classes[c].count);
    }
  }
}

// A plan's own margins count, not the fleet's: with those, no plan may be as good.
TEST(FleetSplits, PartsHaveThePlansMargins) {
  Random random(5);
  for (int i = 0; i < 20; ++i) {
    Fleet fleet = random_fleet(random, {.models = 3, .max_count = 8});
    auto plan = plan_fleet(fleet, "auto");
    if (!plan.ok()) continue;
    for (size_t m = 0; m < fleet.models.size(); ++m) {
      plan->models[m].margin_us = fleet.models[m].margin_us;
      fleet.models[m].margin_us = .9 * fleet.models[m].slo_us;
    }
    const auto parts = split_fleet(fleet, *plan, 2, {});
    ASSERT_TRUE(parts.ok()) << parts.error().to_string();
    for (const FleetPart& part : *parts) {
      EXPECT_TRUE(check_fleet_plan(part.fleet, part.plan).ok());
      for (const auto& model : part.plan.models) EXPECT_TRUE(model.margin_us);
    }
    const auto again = replan_fleet(fleet, *plan, {});
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    EXPECT_EQ(again->moved_devices, 0);
    EXPECT_GE(again->plan.value, plan->value * (1 - 1e-6));
    EXPECT_TRUE(check_fleet_plan(fleet, again->plan).ok());
  }
}

TEST(FleetSplits, EachNamedDeviceHasOnePart) {
  Random random(3);
  Fleet fleet = random_fleet(random, {.models = 4, .max_count = 8});
  std::multiset<std::string> all, found;
  for (auto& c : fleet.classes)
    for (int64_t d = 0; d < c.count; ++d) all.insert(c.devices.emplace_back(c.name + std::to_string(d)));
  const auto plan = plan_fleet(fleet, "auto").value();
  const auto parts = split_fleet(fleet, plan, 2, {});
  ASSERT_TRUE(parts.ok()) << parts.error().to_string();
  for (const FleetPart& part : *parts)
    for (const auto& c : part.fleet.classes) found.insert(c.devices.begin(), c.devices.end());
  EXPECT_EQ(found, all);
}

TEST(FleetSplits, MoreServersThanModelsAreRefused) {
  Random random(3);
  const Fleet fleet = random_fleet(random, {.models = 4, .max_count = 8});
  const auto plan = plan_fleet(fleet, "auto").value();
  for (const int servers : {0, static_cast<int>(fleet.models.size()) + 1})
    EXPECT_THAT(split_fleet(fleet, plan, servers, {}).error().to_string(), HasSubstr("at least one model"));
}

}  // namespace
}  // namespace heddle
