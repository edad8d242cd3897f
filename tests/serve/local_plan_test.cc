// How models are arranged on this machine's devices.
#include "machine/local_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle {
namespace {

using testing::HasSubstr;

Device core_set(const std::string& name, std::vector<int> cores) {
  Device d;
  d.name = name;
  d.device_class = "cpu" + std::to_string(cores.size());
  d.target = d.device_class;
  d.cores = std::move(cores);
  return d;
}

std::shared_ptr<const LocalModel> model(const std::string& name, double slo_us) {
  auto m = std::make_shared<LocalModel>();
  m->served.name = name;
  m->served.slo_us = slo_us;
  return m;
}

class Arrange : public testing::Test {
 protected:
  const std::vector<Device> devices_ = {core_set("cpu0-1", {0, 1}), core_set("cpu0", {0}),
                                        core_set("cpu1", {1})};
  const std::vector<DeviceSet> ways_ = ways_to_divide(devices_, 16);

  // Times on two cores and on one.
  static std::vector<LocalTimes> times(double on_two, double on_one) {
    return {{"cpu2", {on_two}}, {"cpu1", {on_one}}};
  }
  Result<LocalPlan> plan(const std::vector<std::shared_ptr<const LocalModel>>& models,
                         const std::vector<std::vector<LocalTimes>>& times, LocalChoice choice,
                         SchedulerKind scheduler = SchedulerKind::kReactive) const {
    LocalServerOptions o;
    o.choice = choice;
    o.plane.scheduler = scheduler;
    auto made = plan_locally(models, times, ways_, o);
    if (made.ok()) {
      EXPECT_TRUE(check_deployment(made->deployment).ok());
      EXPECT_EQ(made->device_of.size(), made->deployment.devices.size());
    }
    return made;
  }
};

TEST_F(Arrange, ModelsShareDevicesWhereThatServesMoreInTime) {
  const std::vector<std::shared_ptr<const LocalModel>> models = {model("a", 50e3), model("b", 50e3)};
  for (const auto scheduler : {SchedulerKind::kReactive, SchedulerKind::kReservation}) {
    const auto shared = plan(models, {times(6e3, 10e3), times(6e3, 10e3)}, LocalChoice::kGoodput, scheduler);
    ASSERT_TRUE(shared.ok()) << shared.error().to_string();
    ASSERT_EQ(shared->deployment.pipelines.size(), 2U);
    const auto& a = shared->deployment.pipelines[0].partitions[0];
    const auto& b = shared->deployment.pipelines[1].partitions[0];
    EXPECT_EQ(a.first_device, b.first_device);
    EXPECT_EQ(a.num_devices, 2U);
    EXPECT_EQ(b.num_devices, 2U);
    EXPECT_EQ(a.run_ns, (std::vector<TimeNs>{10'000'000}));
    EXPECT_NEAR(shared->deployment.models[0].rate_per_s, 100, 1e-6);  // two devices, turns of 20 ms
    EXPECT_THAT(shared->reason, HasSubstr("shared on 2 x cpu1"));
    EXPECT_THAT(shared->reason, HasSubstr("apart on 2 x cpu1"));
    EXPECT_GT(shared->goodput_per_s, 100);
  }
  const auto apart = plan(models, {times(6e3, 10e3), times(6e3, 10e3)}, LocalChoice::kRate);
  ASSERT_TRUE(apart.ok());
  EXPECT_EQ(apart->deployment.pipelines[0].partitions[0].num_devices, 1U);
  EXPECT_EQ(apart->deployment.devices.size(), 2U);
  EXPECT_EQ(apart->reason, "");
}

// Behind one long request the short ones would be late.
TEST_F(Arrange, ModelsStayApartWhereOneWouldHoldTheOtherUp) {
  const auto made = plan({model("long", 5e6), model("short", 30e3)}, {times(500e3, 800e3), times(9e3, 10e3)},
                         LocalChoice::kGoodput);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  const auto& d = made->deployment;
  EXPECT_NE(d.pipelines[0].partitions[0].first_device, d.pipelines[1].partitions[0].first_device);
  EXPECT_THAT(made->reason, testing::StartsWith("apart on 2 x cpu1"));
}

// One device for two models: turns, and each is sure of half.
TEST_F(Arrange, MoreModelsThanDevicesTakeTurns) {
  const std::vector<DeviceSet> one = {{devices_[0]}};
  LocalServerOptions o;
  const std::vector<std::shared_ptr<const LocalModel>> models = {model("a", 100e3), model("b", 100e3)};
  const auto made = plan_locally(models, {times(6e3, 10e3), times(6e3, 10e3)}, one, o);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_EQ(made->deployment.devices.size(), 1U);
  EXPECT_NEAR(made->deployment.models[0].rate_per_s, 1 / .012, 1e-6);
  EXPECT_NEAR(made->plan.models[0].rate_per_s, 1 / .012, 1e-6);
  o.choice = LocalChoice::kRate;
  const auto side_by_side = plan_locally(models, {times(6e3, 10e3), times(6e3, 10e3)}, one, o);
  ASSERT_TRUE(side_by_side.ok());
  EXPECT_EQ(side_by_side->deployment.devices.size(), 2U);
  EXPECT_EQ(side_by_side->device_of[0].name, side_by_side->device_of[1].name);
}

// A device that has nothing else to do ends in 6 or 10 ms, which is behind the SLO less what is kept free.
TEST_F(Arrange, TellsWhenNoneServesInTime) {
  LocalServerOptions o;
  o.plane.scheduler = SchedulerKind::kReservation;
  o.plane.dispatch.guard_ns = 45'000'000;
  const std::vector<std::shared_ptr<const LocalModel>> models = {model("a", 50e3), model("b", 50e3)};
  const auto made = plan_locally(models, {times(6e3, 10e3), times(6e3, 10e3)}, ways_, o);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_EQ(made->goodput_per_s, 0);
  EXPECT_THAT(made->reason, HasSubstr("arrangements has 99 % in time"));
  EXPECT_THAT(made->reason, HasSubstr("less --guard are too short"));
}

TEST_F(Arrange, TellsOfAnSloThatNothingMeets) {
  for (const auto choice : {LocalChoice::kGoodput, LocalChoice::kRate}) {
    const auto made = plan({model("a", 1e3), model("b", 50e3)}, {times(6e3, 10e3), times(6e3, 10e3)}, choice);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code(), Code::kInfeasible);
  }
}

}  // namespace
}  // namespace heddle
