// Pools shared by whole models: turns by deadline, and the gain in requests served in time.
#include <gtest/gtest.h>

#include <cmath>

#include "data_plane_support.h"
#include "heddle/fleet/goodput.h"
#include "heddle/fleet/simulator.h"

namespace heddle {
namespace {

constexpr TimeNs kMs = 1'000'000;

// Two models of one block that takes 10 ms. If not shared, each has its own pool.
Deployment two_models(TimeNs slo_a, TimeNs slo_b, uint32_t devices, bool shared) {
  Deployment d;
  d.models = {{"a", slo_a, 50, {0}}, {"b", slo_b, 50, {1}}};
  const uint32_t all = shared ? devices : 2 * devices;
  d.classes.push_back({"c", all, 0, all});
  for (uint32_t v = 0; v < all; ++v) d.devices.push_back({.device_class = 0, .device = v, .server = v});
  d.num_servers = all;
  for (uint32_t m = 0; m < 2; ++m) {
    DevicePool pool;
    pool.first_device = shared ? 0 : m * devices;
    pool.num_devices = devices;
    pool.run_ns = {10 * kMs};
    pool.role = {d.models[m].name, 0, 1, "c", 1};
    DeployedPipeline p;
    p.model = m;
    p.rate_per_s = 50;
    p.partitions.push_back(std::move(pool));
    d.pipelines.push_back(std::move(p));
  }
  EXPECT_TRUE(check_deployment(d).ok());
  return d;
}

SimulationResult run(const Deployment& d, const std::vector<Arrival>& arrivals, SchedulerKind scheduler,
                     const std::vector<DeviceFault>& faults = {}) {
  SimulationOptions o;
  o.scheduler = scheduler;
  o.window_to = 1000 * kMs;
  o.faults = faults;
  auto result = simulate(d, arrivals, o);
  EXPECT_TRUE(result.ok());
  return std::move(*result);
}

TEST(SharedPool, IsSharedAsAWholeByModelsInOnePiece) {
  auto d = two_models(50 * kMs, 50 * kMs, 2, true);
  d.pipelines[1].partitions[0].num_devices = 1;
  EXPECT_FALSE(check_deployment(d).ok()) << "a part of another's pool";
  d = two_models(50 * kMs, 50 * kMs, 2, true);
  d.pipelines[1].model = 0;
  d.models[0].pipelines = {0, 1};
  d.models[1].pipelines = {};
  EXPECT_FALSE(check_deployment(d).ok()) << "two pools of one model";
  d = two_models(50 * kMs, 50 * kMs, 1, false);
  auto later = d.pipelines[1].partitions[0];
  later.transfer_ns = {kMs};
  d.pipelines[0].partitions.push_back(later);
  EXPECT_FALSE(check_deployment(d).ok()) << "a part of a model in pieces";
}

// One device: b's request is due before a's second one, so it goes first.
TEST(SharedPool, BeginsWithWhatIsDueFirst) {
  const auto d = two_models(100 * kMs, 25 * kMs, 1, true);
  const auto result = run(d, {{0, 0}, {1 * kMs, 0}, {2 * kMs, 1}}, SchedulerKind::kReactive);
  EXPECT_EQ(result.total.in_time, 3U);
  ASSERT_EQ(result.window.size(), 3U);
  const uint32_t order[] = {0, 1, 0};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result.window[i].pipeline, order[i]) << i;
    EXPECT_EQ(result.window[i].start, static_cast<TimeNs>(i) * 10 * kMs);
    EXPECT_EQ(result.window[i].end, static_cast<TimeNs>(i + 1) * 10 * kMs);
  }
  // With 17 ms it would be late behind the first request: it is dropped and delays no other request.
  const auto late = run(two_models(100 * kMs, 17 * kMs, 1, true), {{0, 0}, {1 * kMs, 0}, {2 * kMs, 1}},
                        SchedulerKind::kReactive);
  EXPECT_EQ(late.models[0].requests.in_time, 2U);
  EXPECT_EQ(late.models[1].requests.dropped, 1U);
  ASSERT_EQ(late.window.size(), 2U);
  EXPECT_EQ(late.window[1].start, 10 * kMs);
}

class SharedPools : public testing::TestWithParam<SchedulerKind> {};
INSTANTIATE_TEST_SUITE_P(All, SharedPools,
                         testing::Values(SchedulerKind::kReservation, SchedulerKind::kBusyUntil,
                                         SchedulerKind::kReactive),
                         [](const auto& kind) {
                           return kind.param == SchedulerKind::kBusyUntil ? std::string("busy_until")
                                                                          : scheduler_name(kind.param);
                         });

// Three simultaneous requests of one model, none of the other. By hand: the third is in time only if the
// other model's device helps.
TEST_P(SharedPools, ADeviceHelpsWhereItsOwnModelHasNothingToDo) {
  const std::vector<Arrival> arrivals = {{0, 0}, {0, 0}, {0, 0}};
  const auto apart = run(two_models(20 * kMs, 20 * kMs, 1, false), arrivals, GetParam());
  EXPECT_EQ(apart.total.in_time, 2U);
  EXPECT_EQ(apart.total.dropped, 1U);
  const auto shared = run(two_models(20 * kMs, 20 * kMs, 2, true), arrivals, GetParam());
  EXPECT_EQ(shared.total.in_time, 3U);
  EXPECT_EQ(shared.latency.max(), 20 * kMs);
}

TEST_P(SharedPools, EveryRequestHasOneOutcomeWhenTheDevicesGoAndReturn) {
  const auto d = two_models(40 * kMs, 25 * kMs, 2, true);
  auto arrivals = make_arrivals({}, std::vector<double>{80, 80}, 2, 3);
  ASSERT_TRUE(arrivals.ok());
  const auto result =
      run(d, *arrivals, GetParam(),
          {{.at = 500 * kMs, .devices = 2, .back = 700 * kMs}, {.at = 900 * kMs, .back = 1000 * kMs}});
  for (const auto& m : result.models) {
    const auto& r = m.requests;
    EXPECT_EQ(r.in_time + r.late + r.dropped + r.failed, r.arrivals);
    EXPECT_GT(r.in_time, r.arrivals / 2);
    EXPECT_GT(r.dropped + r.failed, 0U);
  }
  EXPECT_EQ(result.total.arrivals, arrivals->size());
  // A device runs one batch at a time.
  TimeNs busy_until[2] = {};
  for (const auto& bar : result.window) {
    EXPECT_GE(bar.start, busy_until[bar.device]);
    busy_until[bar.device] = bar.end;
  }
}

// Probability that the wait in an M/D/1 queue is at most t (Erlang, 1909).
double md1_wait(double rate, double service, double t) {
  double sum = 0, factorial = 1;
  for (int k = 0; k * service <= t; ++k) {
    if (k > 0) factorial *= k;
    const double x = rate * (k * service - t);
    sum += std::pow(x, k) / factorial * std::exp(-x);
  }
  return (1 - rate * service) * sum;
}

// Requests that would wait longer than d are lost: their share in an M/G/1 queue (De Kok and Tijms, 1985).
TEST(Goodput, IsThatOfTheQueueWithImpatience) {
  constexpr double kService_s = .01, kPatience_s = .03;
  const auto d = small_deployment(40 * kMs, {{{1, {10 * kMs}, {}}}});
  GoodputOptions o;
  o.requests = 200000;
  const auto found = goodput(d, std::vector<double>{10}, o);
  ASSERT_TRUE(found.ok());
  const double load = found->per_s * kService_s;
  ASSERT_LT(load, 1);
  const double late = 1 - md1_wait(found->per_s, kService_s, kPatience_s);
  const double lost = (1 - load) * late / (1 - load * late);
  EXPECT_NEAR(lost, .01, .0015) << found->per_s;
  EXPECT_GE(found->attainment, .99);
}

// 10,000 requests that take 1 us each are all answered within a second, however fast they come.
TEST(Goodput, IsNoMoreThanTheDevicesSustain) {
  GoodputOptions o;
  o.requests = 10000;
  const auto alone =
      goodput(small_deployment(1000 * kMs, {{{2, {1000, 1500}, {}}}}), std::vector<double>{10}, o);
  ASSERT_TRUE(alone.ok());
  EXPECT_NEAR(alone->per_s, 2 * 2 / 1.5e-6 / .99, 1);
  const auto shared =
      goodput(two_models(100000 * kMs, 100000 * kMs, 2, true), std::vector<double>{10, 10}, o);
  ASSERT_TRUE(shared.ok());
  EXPECT_NEAR(shared->per_s, 2 / .01 / .99, 1e-3);
}

TEST(Goodput, SeesThatSharingHelps) {
  const std::vector<double> rates = {50, 50};
  const auto apart = goodput(two_models(30 * kMs, 30 * kMs, 1, false), rates, {});
  const auto shared = goodput(two_models(30 * kMs, 30 * kMs, 2, true), rates, {});
  ASSERT_TRUE(apart.ok() && shared.ok());
  EXPECT_GT(shared->per_s, 1.3 * apart->per_s);
  // Even an empty device misses this SLO.
  const auto never = goodput(two_models(5 * kMs, 30 * kMs, 1, false), rates, {});
  ASSERT_TRUE(never.ok());
  EXPECT_EQ(never->per_s, 0);
  EXPECT_FALSE(goodput(two_models(5 * kMs, 30 * kMs, 1, false), std::vector<double>{0, 0}, {}).ok());
}

}  // namespace
}  // namespace heddle
