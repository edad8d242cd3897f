// Fleets divided among servers.
#include "heddle/fleet/fleet_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "fleet_support.h"
#include "heddle/fleet/fleet_check.h"

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

TEST(FleetSplits, MoreServersThanModelsAreRefused) {
  Random random(3);
  const Fleet fleet = random_fleet(random, {.models = 4, .max_count = 8});
  const auto plan = plan_fleet(fleet, "auto").value();
  for (const int servers : {0, static_cast<int>(fleet.models.size()) + 1})
    EXPECT_THAT(split_fleet(fleet, plan, servers, {}).error().to_string(), HasSubstr("at least one model"));
}

}  // namespace
}  // namespace heddle
