#include "heddle/fleet/simulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "data_plane_support.h"

namespace heddle {
namespace {

constexpr TimeNs kMicro = kNsPerUs;

SimulationResult run(const Deployment& d, const std::vector<Arrival>& arrivals, const SimulationOptions& o) {
  auto result = simulate(d, arrivals, o);
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  return std::move(result).value();
}

void expect_conserved(const SimulationResult& r, uint64_t arrivals) {
  EXPECT_EQ(r.total.arrivals, arrivals);
  EXPECT_EQ(r.total.in_time + r.total.late + r.total.dropped + r.total.failed, arrivals);
  RequestCounts models, course;
  for (const auto& m : r.models) {
    models.arrivals += m.requests.arrivals;
    models.in_time += m.requests.in_time;
    EXPECT_EQ(m.latency.count(), m.requests.in_time + m.requests.late);
  }
  for (const auto& c : r.course) {
    course.arrivals += c.arrivals;
    course.in_time += c.in_time;
  }
  EXPECT_EQ(models.arrivals, arrivals);
  EXPECT_EQ(course.arrivals, arrivals);
  EXPECT_EQ(models.in_time, r.total.in_time);
  EXPECT_EQ(course.in_time, r.total.in_time);
}

TEST(Simulator, OneDeviceByHand) {
  // 10 us per run, SLO 25 us. The requests at 0 and 1 are done at 10 and 20. The one at 2 would be done at 30
  // > 27 and is dropped at once. The one at 15 is done at 30 <= 40.
  const auto d = small_deployment(25 * kMicro, {{{1, {10 * kMicro}, {}}}});
  const auto r = run(d, {{0, 0}, {1 * kMicro, 0}, {2 * kMicro, 0}, {15 * kMicro, 0}}, {});
  EXPECT_EQ(r.total.in_time, 3u);
  EXPECT_EQ(r.total.dropped, 1u);
  EXPECT_EQ(r.end, 30 * kMicro);
  EXPECT_EQ(r.latency.max(), 19 * kMicro);
  EXPECT_EQ(r.counters.batches, 3u);
  expect_conserved(r, 4);
}

TEST(Simulator, TwoPartitionsByHand) {
  // Run 10 on one of two devices, transfer 4 to one device, run 5: 19 us alone. Two requests at 0 run side by
  // side; the second transfer waits for the downlink: [10, 14) and [14, 18); runs [14, 19) and [19, 24).
  const auto d = small_deployment(30 * kMicro, {{{2, {10 * kMicro}, {}}, {1, {5 * kMicro}, {4 * kMicro}}}});
  SimulationOptions o;
  o.window_to = kNsPerSecond;
  const auto r = run(d, {{0, 0}, {0, 0}}, o);
  EXPECT_EQ(r.total.in_time, 2u);
  EXPECT_EQ(r.end, 24 * kMicro);
  EXPECT_EQ(r.transfer.max(), 8 * kMicro);
  ASSERT_EQ(r.window.size(), 6u);
  EXPECT_EQ(r.window[2].start, 10 * kMicro);
  EXPECT_EQ(r.window[2].end, 14 * kMicro);
}

TEST(Simulator, ABatchWaitsUntilTheLastMomentAndNoLonger) {
  // Batches of 1 or 2 take 10 and 14 us, SLO 50. A single request waits until 40 and is done at 50, in time.
  const auto d = small_deployment(50 * kMicro, {{{1, {10 * kMicro, 14 * kMicro}, {}}}});
  auto r = run(d, {{0, 0}}, {});
  EXPECT_EQ(r.total.in_time, 1u);
  EXPECT_EQ(r.end, 50 * kMicro);
  EXPECT_EQ(r.models[0].queueing.max(), 40 * kMicro);
  // A second request in between fills the batch.
  r = run(d, {{0, 0}, {7 * kMicro, 0}}, {});
  EXPECT_EQ(r.end, 21 * kMicro);
  EXPECT_EQ(r.counters.batches, 1u);
  ASSERT_EQ(r.models[0].batch_sizes.size(), 2u);
  EXPECT_EQ(r.models[0].batch_sizes[1], 1u);
  // A guard starts the batch earlier.
  SimulationOptions o;
  o.dispatch.guard_ns = 5 * kMicro;
  EXPECT_EQ(run(d, {{0, 0}}, o).end, 45 * kMicro);
}

TEST(Simulator, TheBatchShrinksToMeetTheDeadline) {
  // A batch of 3 (30 us) misses the SLO of 25, one of 2 (20 us) does not.
  const auto d = small_deployment(25 * kMicro, {{{1, {10 * kMicro, 20 * kMicro, 30 * kMicro}, {}}}});
  const auto r = run(d, {{0, 0}, {0, 0}, {0, 0}}, {});
  EXPECT_EQ(r.models[0].batch_sizes[1], 1u);
  EXPECT_EQ(r.total.in_time, 2u);
  EXPECT_EQ(r.total.dropped, 1u);
}

TEST(Simulator, WhatHasTimeOnlyForAWastefulBatchIsDropped) {
  // Two requests take 12 us together and 10 us each alone. The third has no time left for a batch of two, so that it
  // would take the device alone, and one of the last two would be late.
  const auto d = small_deployment(20 * kMicro, {{{1, {10 * kMicro, 12 * kMicro}, {}}}});
  const std::vector<Arrival> arrivals = {{0, 0}, {0, 0}, {2500, 0}, {11 * kMicro, 0}, {11 * kMicro, 0}};
  EXPECT_EQ(run(d, arrivals, {}).total.in_time, 4u);
  EXPECT_EQ(run(d, arrivals, {}).total.dropped, 1u);
  SimulationOptions as_written;
  as_written.dispatch.least_batch_rate = 0;
  EXPECT_EQ(run(d, arrivals, as_written).total.in_time, 3u);
  // Where two take twice as long as one, small batches waste nothing.
  const auto even = small_deployment(20 * kMicro, {{{1, {6 * kMicro, 12 * kMicro}, {}}}});
  EXPECT_EQ(run(even, {{0, 0}, {0, 0}, {2500, 0}}, {}).total.in_time, 3u);
}

TEST(Simulator, ThePipelineWithTheShorterWaitIsTakenAmongThoseInTime) {
  // The slow pipeline is free, but too late for the SLO; the fast one has a wait of 5 us.
  const auto d = small_deployment(20 * kMicro, {{{1, {10 * kMicro}, {}}}, {{1, {30 * kMicro}, {}}}});
  const auto r = run(d, {{0, 0}, {5 * kMicro, 0}}, {});
  EXPECT_EQ(r.total.in_time, 2u);
  EXPECT_EQ(r.end, 20 * kMicro);
}

TEST(Simulator, GapsAreFilledUnlessReservationsAreBusyUntil) {
  // The first batch runs in pool 0 for 40 us and has booked the uplink at [40, 50). Only gap filling lets a
  // batch of the short pipeline use the uplink before. Pools are not shared here, but links are: both
  // pipelines send to separate servers from one uplink.
  Deployment d = small_deployment(100 * kMicro, {{{1, {40 * kMicro}, {}}, {1, {5 * kMicro}, {10 * kMicro}}},
                                                 {{1, {2 * kMicro}, {}}, {1, {5 * kMicro}, {10 * kMicro}}}});
  d.models.push_back({"n", 22 * kMicro, 1000, {1}});
  d.models[0].pipelines = {0};
  d.pipelines[1].model = 1;
  const auto source = d.pipelines[0].partitions[0].first_device;
  d.devices[d.pipelines[1].partitions[0].first_device].server = d.devices[source].server;
  ASSERT_TRUE(check_deployment(d).ok());
  // Model m books the uplink at [40, 50). Model n at 1 us: run until 3, send [3, 13), done at 18 <= 23.
  const std::vector<Arrival> arrivals = {{0, 0}, {1 * kMicro, 1}};
  EXPECT_EQ(run(d, arrivals, {}).total.in_time, 2u);
  SimulationOptions o;
  o.scheduler = SchedulerKind::kBusyUntil;
  const auto r = run(d, arrivals, o);
  EXPECT_EQ(r.total.in_time, 1u);
  EXPECT_EQ(r.total.dropped, 1u) << "behind the booking at [40, 50) it would be late";
}

TEST(Simulator, ReactiveBatchesByItsPoolsPartOfTheDeadline) {
  // The first pool must leave 9 us to the second: with an SLO of 25, a batch of 2 (16 us) just fits at 0.
  const auto d = small_deployment(25 * kMicro, {{{1, {10 * kMicro, 16 * kMicro}, {}},
                                                 {1, {5 * kMicro, 5 * kMicro}, {2 * kMicro, 4 * kMicro}}}});
  SimulationOptions o;
  o.scheduler = SchedulerKind::kReactive;
  auto r = run(d, {{0, 0}, {0, 0}}, o);
  // It does not wait: the first request runs alone at once; then [10, 20) is too late for the second.
  EXPECT_EQ(r.total.in_time, 1u);
  EXPECT_EQ(r.total.dropped, 1u);
  EXPECT_EQ(r.end, 17 * kMicro);
  r = run(d, {{0, 0}, {30 * kMicro, 0}}, o);
  EXPECT_EQ(r.total.in_time, 2u);
}

TEST(Simulator, WithExactTimesTheReservationPlaneIsNeverLate) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random = random_stream(seed, 5);
    const auto d = random_deployment(random);
    std::vector<double> rates(d.models.size(), 30000. + static_cast<double>(random.below(200000)));
    const auto arrivals = make_arrivals({}, rates, .01, seed);
    ASSERT_TRUE(arrivals.ok());
    for (const auto kind : {SchedulerKind::kReservation, SchedulerKind::kBusyUntil}) {
      SimulationOptions o;
      o.scheduler = kind;
      const auto r = run(d, *arrivals, o);
      expect_conserved(r, arrivals->size());
      EXPECT_EQ(r.total.late, 0u) << "seed " << seed;
      EXPECT_EQ(r.total.failed, 0u);
    }
  }
}

TEST(Simulator, RequestsAreConservedUnderNoiseFaultsAndMigration) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Random random = random_stream(seed, 6);
    const auto d = random_deployment(random);
    auto other = d;  // same roles, other times: a plan to migrate to
    for (auto& p : other.pipelines)
      for (auto& pool : p.partitions)
        if (random.below(2)) pool.role.block_to += 1;
    Traffic traffic;
    traffic.kind = TrafficKind::kBursty;
    traffic.burst_s = 1e-3;
    std::vector<double> rates(d.models.size(), 20000. + static_cast<double>(random.below(100000)));
    const auto arrivals = make_arrivals(traffic, rates, .02, seed);
    ASSERT_TRUE(arrivals.ok());
    SimulationOptions o;
    o.seed = seed;
    o.scheduler = static_cast<SchedulerKind>(seed % 3);
    o.dispatch.retry = random.below(2) == 0;
    o.dispatch.feedback = random.below(4) != 0;
    o.noise = {.05 * static_cast<double>(random.below(5)), .01, 20};
    for (int i = 0; i < 4; ++i) {
      DeviceFault f;
      f.at = static_cast<TimeNs>(random.below(20000)) * kMicro;
      f.device_class = static_cast<uint32_t>(random.below(2));
      f.devices = 1 + static_cast<uint32_t>(random.below(4));
      if (random.below(3)) f.back = f.at + 1 + static_cast<TimeNs>(random.below(8000)) * kMicro;
      o.faults.push_back(f);
    }
    if (seed % 2 == 0)
      o.migrations = {{.to = &other,
                       .at = static_cast<TimeNs>(random.below(20000)) * kMicro,
                       .load = static_cast<TimeNs>(random.below(2000)) * kMicro}};
    const auto r = run(d, *arrivals, o);
    expect_conserved(r, arrivals->size());
    if (HasFailure()) FAIL() << "seed " << seed;
    EXPECT_EQ(r.migrated < kNever, seed % 2 == 0);
  }
}

TEST(Simulator, LostDevicesTakeTheirRequestsAndReturn) {
  const auto d = small_deployment(100 * kMicro, {{{2, {10 * kMicro}, {}}}});
  SimulationOptions o;
  o.faults.push_back({.at = 5 * kMicro, .device_class = 0, .devices = 2, .back = 50 * kMicro});
  // Two requests run when the devices are lost; one arrives while there is no device, one after the return.
  auto r = run(d, {{0, 0}, {0, 0}, {20 * kMicro, 0}, {60 * kMicro, 0}}, o);
  EXPECT_EQ(r.total.failed, 2u);
  EXPECT_EQ(r.total.dropped, 1u);
  EXPECT_EQ(r.total.in_time, 1u);
  o.faults[0].devices = 1;
  o.dispatch.retry = true;
  r = run(d, {{0, 0}, {0, 0}}, o);
  EXPECT_EQ(r.total.in_time, 2u) << "the lost one runs again behind the other";
  EXPECT_EQ(r.end, 20 * kMicro);
  EXPECT_EQ(r.latency.max(), 20 * kMicro);
}

TEST(Simulator, ABatchGoesAroundADeviceLostAhead) {
  // The second pool's first device is lost during a transfer to it; the batch is sent to the other device.
  const auto d = small_deployment(100 * kMicro, {{{1, {10 * kMicro}, {}}, {2, {5 * kMicro}, {4 * kMicro}}}});
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SimulationOptions o;
    o.seed = seed;
    o.faults.push_back({.at = 12 * kMicro, .device_class = 1, .devices = 1});
    const auto r = run(d, {{0, 0}}, o);
    EXPECT_EQ(r.total.in_time, 1u);
    EXPECT_TRUE(r.end == 19 * kMicro || r.end == 21 * kMicro) << r.end;
  }
}

TEST(Simulator, AMigrationDrainsThenServesWhatWaited) {
  const auto d = small_deployment(100 * kMicro, {{{1, {10 * kMicro}, {}}}});
  auto faster = small_deployment(100 * kMicro, {{{1, {4 * kMicro}, {}}}});
  faster.pipelines[0].partitions[0].role.block_to = 7;  // another role, so its device must load
  SimulationOptions o;
  o.migrations = {{.to = &faster, .at = 5 * kMicro}};
  // The first request ends at 10 under the old plan; the two waiting ones follow at 14 and 18.
  auto r = run(d, {{0, 0}, {6 * kMicro, 0}, {7 * kMicro, 0}}, o);
  EXPECT_EQ(r.migrated, 10 * kMicro);
  EXPECT_EQ(r.end, 18 * kMicro);
  EXPECT_EQ(r.total.in_time, 3u);
  // With a load of 20 us there is no device until 30: waiting requests are dropped, later ones are served.
  o.migrations[0].load = 20 * kMicro;
  r = run(d, {{0, 0}, {6 * kMicro, 0}, {7 * kMicro, 0}, {31 * kMicro, 0}}, o);
  EXPECT_EQ(r.total.dropped, 2u);
  EXPECT_EQ(r.total.in_time, 2u);
  // The same role needs no load.
  faster.pipelines[0].partitions[0].role = d.pipelines[0].partitions[0].role;
  EXPECT_EQ(run(d, {{0, 0}, {6 * kMicro, 0}, {7 * kMicro, 0}}, o).end, 18 * kMicro);
}

TEST(Simulator, SpareDevicesLoadWhileTheOldPlanServes) {
  auto d = small_deployment(100 * kMicro, {{{1, {10 * kMicro}, {}}}});
  d.classes[0].devices = 2;
  auto faster = small_deployment(100 * kMicro, {{{1, {4 * kMicro}, {}}}});
  faster.pipelines[0].partitions[0].role.block_to = 7;
  SimulationOptions o;
  o.migrations = {{.to = &faster, .at = 0, .load = 20 * kMicro, .spares_first = true},
                  {.to = &d, .at = 50 * kMicro}};
  // Until 20 us the old plan serves: at 10 and 20. The new device is ready then, and back at 50 the old role is.
  const std::vector<Arrival> arrivals = {{0, 0}, {1 * kMicro, 0}, {21 * kMicro, 0}, {60 * kMicro, 0}};
  const auto r = run(d, arrivals, o);
  EXPECT_EQ(r.total.in_time, 4u);
  EXPECT_EQ(r.end, 70 * kMicro);
  ASSERT_EQ(r.migrations.size(), 2u);
  EXPECT_EQ(r.migrations[0].taken_over, 20 * kMicro);
  EXPECT_EQ(r.migrations[0].spares, std::vector<int64_t>{1});
  EXPECT_EQ(r.migrations[1].taken_over, 50 * kMicro);
  expect_conserved(r, 4);
  std::swap(o.migrations[0].at, o.migrations[1].at);
  EXPECT_FALSE(simulate(d, arrivals, o).ok());
}

TEST(Simulator, TheSameSeedGivesTheSameResultOnAnyThread) {
  Random random = random_stream(3, 7);
  const auto d = random_deployment(random);
  const auto arrivals = make_arrivals({}, std::vector<double>(d.models.size(), 60000), .02, 9);
  ASSERT_TRUE(arrivals.ok());
  SimulationOptions o;
  o.noise = {.2, .02, 5};
  o.window_to = kNsPerSecond;
  const auto first = run(d, *arrivals, o);
  std::vector<SimulationResult> others(4);
  std::vector<std::thread> threads;
  for (auto& r : others) threads.emplace_back([&] { r = run(d, *arrivals, o); });
  for (auto& t : threads) t.join();
  for (const auto& r : others) {
    EXPECT_EQ(r.events, first.events);
    EXPECT_EQ(r.end, first.end);
    EXPECT_EQ(r.total.in_time, first.total.in_time);
    EXPECT_EQ(r.latency.mean_ns(), first.latency.mean_ns());
    ASSERT_EQ(r.window.size(), first.window.size());
    for (size_t i = 0; i < r.window.size(); ++i) EXPECT_EQ(r.window[i].end, first.window[i].end);
  }
  o.seed = 2;
  EXPECT_NE(run(d, *arrivals, o).end, first.end);
}

// Pollaczek and Khinchine: the mean wait of M/D/1 is rho S / (2 (1 - rho)).
TEST(Simulator, AQueueWithPoissonArrivalsWaitsAsTheorySays) {
  const TimeNs service = 1000 * kMicro;
  const auto d = small_deployment(3600 * kNsPerSecond, {{{1, {service}, {}}}});
  for (const double rho : {.3, .6, .8}) {
    const auto arrivals = make_arrivals({}, std::vector<double>{rho * 1000}, 600, 11);
    ASSERT_TRUE(arrivals.ok());
    for (const auto kind : {SchedulerKind::kReservation, SchedulerKind::kReactive}) {
      SimulationOptions o;
      o.scheduler = kind;
      const auto r = run(d, *arrivals, o);
      const double wait = r.latency.mean_ns() - static_cast<double>(service);
      const double expected = rho * static_cast<double>(service) / (2 * (1 - rho));
      EXPECT_NEAR(wait / expected, 1, .05) << rho;
      EXPECT_NEAR(r.classes[0].busy_share, rho, .01);
    }
  }
}

TEST(Simulator, NoiseMakesAnswersLateAndCorrectionsHelp) {
  const auto d = small_deployment(40 * kMicro, {{{4, {10 * kMicro}, {}}, {4, {10 * kMicro}, {1 * kMicro}}}});
  const auto arrivals = make_arrivals({}, std::vector<double>{300000}, .2, 4);
  ASSERT_TRUE(arrivals.ok());
  SimulationOptions o;
  o.noise = {.1, .02, 8};
  const auto with = run(d, *arrivals, o);
  o.dispatch.feedback = false;
  const auto without = run(d, *arrivals, o);
  EXPECT_GT(with.total.late, 0u);
  EXPECT_GT(with.total.in_time, without.total.in_time);
  // With exact times there is nothing to correct.
  o = {};
  const auto exact = run(d, *arrivals, o);
  o.dispatch.feedback = false;
  const auto blind = run(d, *arrivals, o);
  EXPECT_EQ(blind.total.in_time, exact.total.in_time);
  EXPECT_EQ(blind.end, exact.end);
}

TEST(Simulator, RefusesWhatItCannotRun) {
  const auto d = small_deployment(40 * kMicro, {{{1, {10 * kMicro}, {}}}});
  SimulationOptions o;
  EXPECT_FALSE(simulate(d, std::vector<Arrival>{{0, 1}}, o).ok()) << "no such model";
  EXPECT_FALSE(simulate(d, std::vector<Arrival>{{5, 0}, {4, 0}}, o).ok()) << "not sorted";
  o.noise.jitter = std::nan("");
  EXPECT_FALSE(simulate(d, std::vector<Arrival>{{0, 0}}, o).ok());
  o = {};
  o.faults.push_back({.at = 0, .device_class = 4});
  EXPECT_FALSE(simulate(d, std::vector<Arrival>{{0, 0}}, o).ok());
  auto bad = d;
  bad.pipelines[0].partitions[0].run_ns[0] = 0;
  EXPECT_FALSE(simulate(bad, std::vector<Arrival>{{0, 0}}, {}).ok());
  bad = d;
  bad.pipelines[0].partitions[0].num_devices = 2;
  EXPECT_FALSE(simulate(bad, std::vector<Arrival>{{0, 0}}, {}).ok());
  o = {};
  o.cancel.cancel();
  const auto many = make_arrivals({}, std::vector<double>{1e6}, .2, 1);
  const auto stopped = simulate(d, *many, o);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code(), Code::kCancelled);
}

}  // namespace
}  // namespace heddle
