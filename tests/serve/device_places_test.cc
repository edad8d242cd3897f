// Which worker has which devices of a plan, as workers come and go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data_plane_support.h"
#include "workers/worker_view.h"

namespace heddle {
namespace {

TEST(DevicePlaces, StayWhereTheyAreAndMoveWhenTheirWorkerIsGone) {
  DevicePlaces places(small_deployment(kNsPerSecond, {{{4, {kNsPerSecond}, {}}}}));
  EXPECT_EQ(places.missing({})["c0"], 4);
  places.assign({{"a", {{"c0", 3}}}});
  EXPECT_EQ(places.missing({{"a", {}}})["c0"], 1);
  places.assign({{"a", {{"c0", 3}}}, {"b", {{"c0", 3}, {"other", 9}}}});
  int of_a = 0;
  for (uint32_t v = 0; v < 4; ++v) of_a += places.worker_of(v) == "a";
  EXPECT_EQ(of_a, 3);
  places.assign({{"b", {{"c0", 3}}}});
  EXPECT_EQ(places.missing({{"b", {}}})["c0"], 1);
  places.assign({{"b", {{"c0", 3}}}, {"a", {{"c0", 3}}}});
  EXPECT_TRUE(places.missing({{"a", {}}, {"b", {}}}).empty());
}

TEST(DevicePlaces, AWorkerThatComesBackWithFewerKeepsSoMany) {
  DevicePlaces places(small_deployment(kNsPerSecond, {{{4, {kNsPerSecond}, {}}}}));
  places.assign({{"a", {{"c0", 4}}}});
  places.assign({{"a", {{"c0", 1}}}, {"b", {{"c0", 3}}}});
  std::map<std::string, int> devices;
  for (uint32_t v = 0; v < 4; ++v) ++devices[places.worker_of(v)];
  EXPECT_THAT(devices, testing::ElementsAre(testing::Pair("a", 1), testing::Pair("b", 3)));
}

}  // namespace
}  // namespace heddle
