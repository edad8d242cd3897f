// Fleet files say where times come from, and plans of them, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet_support.h"
#include "heddle/base/json.h"

namespace heddle {
namespace {

Fleet fleet_of_two_classes() {
  Random random(3);
  Fleet fleet = random_fleet(random, {});
  for (auto& m : fleet.models)
    m.times_from = {TimesSource{Origin::kMeasured, 1.03}, TimesSource{Origin::kEstimated, 2}};
  return fleet;
}

TEST(TimesSource, IsReadAsItWasWritten) {
  const auto read = fleet_from_json(to_json(fleet_of_two_classes()));
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  const auto& from = read->models[0].times_from;
  ASSERT_EQ(from.size(), 2U);
  EXPECT_EQ(from[0]->origin, Origin::kMeasured);
  EXPECT_EQ(from[0]->error_factor, 1.03);
  EXPECT_EQ(from[1]->origin, Origin::kEstimated);
}

TEST(TimesSource, OfAClassIsThatOfItsLeastTrustedTimes) {
  Fleet fleet = fleet_of_two_classes();
  EXPECT_EQ(times_text(fleet), "measured on class0, within 3 %; estimated on class1, within a factor of 2");
  fleet.models[1].times_from[0] = TimesSource{Origin::kEstimated, 2};
  EXPECT_EQ(times_text(fleet), "estimated on class0 and class1, within a factor of 2");
  for (auto& m : fleet.models) m.times_from.clear();
  EXPECT_EQ(times_text(fleet), "");
}

TEST(TimesSource, OfNoClassOrNoNameIsAnError) {
  const Json good = to_json(fleet_of_two_classes());
  const auto message = [](const Json& json) {
    const auto read = fleet_from_json(json);
    return read.ok() ? "" : read.error().to_string();
  };
  Json json = good;
  json["models"][0]["times_from"]["clas1"] = {{"origin", "measured"}, {"error_factor", 1}};
  EXPECT_THAT(message(json), testing::HasSubstr("no class is named 'clas1' (did you mean 'class1'?)"));
  json = good;
  json["models"][0]["times_from"]["class1"]["origin"] = "guessed";
  EXPECT_THAT(message(json),
              testing::HasSubstr("'measured', 'given', 'interpolated', 'scaled' or 'estimated'"));
  json = good;
  json["models"][0]["times_from"]["class1"]["error_factor"] = 0.5;
  EXPECT_THAT(message(json), testing::HasSubstr("error_factor"));
}

}  // namespace
}  // namespace heddle
