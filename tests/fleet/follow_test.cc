// Plans that follow the load: books, reasons of changes, fallback, determinism.
#include "heddle/fleet/follow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "fleet_support.h"
#include "heddle/base/file.h"
#include "heddle/fleet/fleet_planner.h"

namespace heddle {
namespace {

using testing::HasSubstr;

// One model of 10 ms on devices of one class, 30 ms to answer.
Fleet follow_fleet(int64_t devices) {
  Fleet fleet;
  fleet.name = "plain";
  fleet.classes.push_back({.name = "c", .count = devices, .nic_bytes_per_s = 1e9});
  FleetModel model;
  model.name = "m";
  model.blocks = 1;
  model.latency_us = {{{{10'000}}}};
  model.cut_bytes = {1000, 1000};
  model.slo_us = 30'000;
  fleet.models.push_back(std::move(model));
  return fleet;
}

FollowOptions follow_options(double duration_s) {
  FollowOptions o;
  o.duration_s = duration_s;
  o.window_s = 2;
  o.load_s = .1;
  return o;
}

// Poisson arrivals at the rate of each window.
std::vector<Arrival> in_steps(const std::vector<double>& rates) {
  std::vector<Arrival> all;
  for (size_t w = 0; w < rates.size(); ++w) {
    const std::vector<double> rate = {rates[w]};
    const auto window = make_arrivals({}, rate, 2, w + 1);
    for (const auto& a : window.value()) all.push_back({a.at + static_cast<TimeNs>(w) * 2 * kNsPerSecond, 0});
  }
  return all;
}

FollowResult followed(const Fleet& fleet, const std::vector<Arrival>& arrivals, const FollowOptions& o) {
  auto result = follow_load(fleet, arrivals, o);
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  return std::move(result).value();
}

void expect_books(const FollowCourse& c, size_t arrivals) {
  EXPECT_EQ(c.total.arrivals, arrivals);
  EXPECT_EQ(c.total.in_time + c.total.late + c.total.dropped + c.total.failed, arrivals);
}

TEST(Follow, ServesADayWithFewerDeviceHoursThanOnePlan) {
  std::vector<double> rates;
  for (int w = 0; w < 60; ++w) rates.push_back(600 + 450 * std::sin(2 * M_PI * w / 60));
  const auto arrivals = in_steps(rates);
  const auto r = followed(follow_fleet(20), arrivals, follow_options(120));
  for (const auto* c : {&r.rolling, &r.fixed, &r.hindsight}) {
    expect_books(*c, arrivals.size());
    EXPECT_GE(c->attainment, .99);
  }
  EXPECT_LT(r.rolling.device_hours, .8 * r.fixed.device_hours);
  EXPECT_LT(r.hindsight.device_hours, r.rolling.device_hours);
  EXPECT_LE(r.hindsight.device_hours, r.fixed.device_hours);
  EXPECT_LT(r.bound_device_hours, r.hindsight.device_hours);
  EXPECT_EQ(r.rolling.fallback_windows, 0u);
  // The same again.
  const auto again = followed(follow_fleet(20), arrivals, follow_options(120));
  EXPECT_EQ(again.rolling.total.in_time, r.rolling.total.in_time);
  EXPECT_EQ(again.rolling.device_hours, r.rolling.device_hours);
}

TEST(Follow, AddsAtOnceAndGivesBackAfterTheLowerNeedHasHeld) {
  // The rate rises in window 10 and falls in window 20.
  std::vector<double> rates(30, 200);
  for (size_t w = 10; w < 20; ++w) rates[w] = 800;
  auto o = follow_options(60);
  o.hold = 4;
  const auto r = followed(follow_fleet(20), in_steps(rates), o);
  double up = 0, down = 0;
  for (const auto& c : r.rolling.changes) {
    if (c.reason == FollowReason::kUp && c.at_s > 18 && up == 0) up = c.at_s;
    if (c.reason == FollowReason::kDown && c.at_s > 22) down = std::max(down, c.at_s);
  }
  EXPECT_EQ(up, 22) << "window 10 is seen at the start of window 11";
  EXPECT_GE(down, 2 * (20 + o.hold));
}

TEST(Follow, DoesNotOscillateWithTheLoad) {
  std::vector<double> rates;
  for (int w = 0; w < 40; ++w) rates.push_back(w % 2 ? 800 : 200);
  const auto r = followed(follow_fleet(20), in_steps(rates), follow_options(80));
  EXPECT_LE(r.rolling.changes.size(), 8u) << "of 40 changes of the load";
}

TEST(Follow, FallsBackToAllDevicesIfNoPlanServesTheForecast) {
  std::vector<double> rates(20, 100);
  for (size_t w = 8; w < 14; ++w) rates[w] = 5000;
  const auto arrivals = in_steps(rates);
  const auto r = followed(follow_fleet(6), arrivals, follow_options(40));
  expect_books(r.rolling, arrivals.size());
  EXPECT_GT(r.rolling.fallback_windows, 3u);
  bool fell_back = false;
  for (const auto& c : r.rolling.changes) {
    if (c.reason != FollowReason::kFallback) continue;
    fell_back = true;
    EXPECT_EQ(c.devices, std::vector<int64_t>{6});
  }
  EXPECT_TRUE(fell_back);
}

TEST(Follow, WindowsWithoutArrivalsAreServed) {
  std::vector<Arrival> arrivals = {{5 * kNsPerSecond, 0}};
  const auto r = followed(follow_fleet(3), arrivals, follow_options(20));
  EXPECT_EQ(r.rolling.total.in_time, 1u);
  EXPECT_TRUE(follow_load(follow_fleet(3), {}, follow_options(20)).ok());
}

TEST(Follow, CoursesBelowTheBoundAreAnErrorThatKeepsFleetAndArrivals) {
  const Fleet fleet = follow_fleet(20);
  const auto arrivals = in_steps(std::vector<double>(10, 400));
  const auto o = follow_options(20);
  auto r = followed(fleet, arrivals, o);
  // 400 requests of 10 ms a second need 4 devices.
  EXPECT_NEAR(r.bound_device_hours, o.attainment * static_cast<double>(arrivals.size()) * .01 / 3600, 1e-6);
  EXPECT_GT(r.rolling.overtime_hours, 0);
  r.rolling.device_hours = r.bound_device_hours * .9 - r.rolling.overtime_hours;
  auto half = r;
  half.rolling.attainment = o.attainment / 2;
  EXPECT_TRUE(check_courses(fleet, arrivals, o, half).ok())
      << "half of the requests need half of the devices";
  const auto status = check_courses(fleet, arrivals, o, r);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kInternal);
  const std::string text = status.error().to_string();
  EXPECT_THAT(text, HasSubstr("the rolling plans serve"));
  EXPECT_THAT(text, HasSubstr("(proven: prices of the mean rates); one of the two is wrong"));
  const std::string name = kept_files(text);
  const auto kept = read_fleet(name + "-fleet.json");
  ASSERT_TRUE(kept.ok()) << text;
  const auto csv = read_file(name + "-arrivals.csv");
  ASSERT_TRUE(csv.ok());
  const std::vector<std::string> models = {"m"};
  const auto again = arrivals_from_csv(*csv, models);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(*again, arrivals);
  EXPECT_EQ(followed(*kept, *again, o).bound_device_hours, r.bound_device_hours);
  std::filesystem::remove(name + "-fleet.json");
  std::filesystem::remove(name + "-arrivals.csv");
}

TEST(Follow, RefusesOptionsOutOfRange) {
  auto o = follow_options(20);
  o.load_s = 2;
  EXPECT_FALSE(follow_load(follow_fleet(3), {}, o).ok());
  o = follow_options(3);
  EXPECT_FALSE(follow_load(follow_fleet(3), {}, o).ok());
  o = follow_options(20);
  const std::vector<Arrival> late = {{21 * kNsPerSecond, 0}};
  EXPECT_FALSE(follow_load(follow_fleet(3), late, o).ok());
}

TEST(Follow, ATraceGivesItsShape) {
  FunctionTrace trace;
  for (int i = 0; i < 4000; ++i) trace.start_s.push_back(i < 1000 ? i * .1 : 100 + (i - 1000) * .1 / 3);
  const std::vector<double> rate = {1000};
  const auto arrivals = arrivals_in_shape(trace, rate, 20, 1);
  ASSERT_TRUE(arrivals.ok());
  EXPECT_NEAR(static_cast<double>(arrivals->size()), 20000, 600);
  size_t first = 0;
  for (const auto& a : *arrivals) first += a.at < 10 * kNsPerSecond;
  EXPECT_NEAR(static_cast<double>(first), 5000, 300);
}

}  // namespace
}  // namespace heddle
