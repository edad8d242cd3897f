// The data plane in real time, with timed devices and with devices of the test: every request has one outcome,
// and the outcomes are those of the simulator.
#include "heddle/serve/live_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "data_plane_support.h"
#include "heddle/base/simulation.h"
#include "heddle/base/sync.h"
#include "plane/device_thread.h"
#include "serve_support.h"

namespace heddle {
namespace {

constexpr TimeNs kMs = 1'000'000;

// Requests that count how often they are settled.
struct OutcomeTally {
  std::atomic<int> settled{0};
  struct Request final : LiveRequest {
    OutcomeTally* tally = nullptr;
    std::atomic<int> times{0};
    void settled() override {
      ++times;
      ++tally->settled;
    }
  };
  std::deque<Request> requests;

  Request& add(LivePlane& plane, uint32_t model, TimeNs slo) {
    auto& r = requests.emplace_back();
    r.tally = this;
    r.model = model;
    r.deadline = live_now() + slo;
    plane.submit(r);
    return r;
  }
  bool all_settled() const { return settled == static_cast<int>(requests.size()); }
  int count(Outcome outcome) const {
    int n = 0;
    for (const auto& r : requests) n += r.outcome == outcome;
    return n;
  }
};

std::unique_ptr<LivePlane> timed(const Deployment& d, SchedulerKind kind) {
  LivePlaneOptions options;
  options.scheduler = kind;
  auto plane = LivePlane::create(d, options, std::vector<std::shared_ptr<DeviceRunner>>(d.devices.size()));
  EXPECT_TRUE(plane.ok()) << plane.error().to_string();
  return std::move(*plane);
}

// A device that is busy half of the time counts half; what is long ago counts no more.
TEST(LivePoolCounters, ForgetWhatTheyDid) {
  LivePoolCounters pool;
  TimeNs now = 1;
  for (; now < 100'000 * kMs; now += 100 * kMs) {
    pool.pass(now);
    pool.running = 1 - pool.running;
  }
  EXPECT_NEAR(pool.mean_running, .5, .01);
  pool.pass(now);
  pool.running = 2;
  pool.pass(now + 10'000 * kMs);
  EXPECT_NEAR(pool.mean_running, 2 - 1.5 * std::exp(-1), .02);
  pool.pass(now);  // the time never goes back
  EXPECT_NEAR(pool.mean_running, 2 - 1.5 * std::exp(-1), .02);
}

class Kinds : public testing::TestWithParam<SchedulerKind> {};
INSTANTIATE_TEST_SUITE_P(All, Kinds,
                         testing::Values(SchedulerKind::kReservation, SchedulerKind::kBusyUntil,
                                         SchedulerKind::kReactive),
                         [](const auto& kind) {
                           return kind.param == SchedulerKind::kBusyUntil ? std::string("busy_until")
                                                                          : scheduler_name(kind.param);
                         });

TEST_P(Kinds, OneRequestGoesThroughAllPartitions) {
  const auto d = small_deployment(200 * kMs, {{{1, {5 * kMs}, {}}, {1, {7 * kMs}, {2 * kMs}}}});
  const auto plane = timed(d, GetParam());
  OutcomeTally tally;
  const auto& r = tally.add(*plane, 0, 200 * kMs);
  ASSERT_TRUE(eventually([&] { return tally.all_settled(); }));
  EXPECT_EQ(r.outcome, Outcome::kInTime);
  EXPECT_GE(r.finished - r.arrived, 14 * kMs);
  EXPECT_EQ(r.batch, 1U);
  const auto counters = plane->counters();
  EXPECT_EQ(counters.pools[0][0].runs, 1U);
  EXPECT_EQ(counters.pools[0][1].runs, 1U);
  EXPECT_NEAR(counters.pools[0][0].predicted_s, .005, 1e-9);
  EXPECT_TRUE(plane->idle());
}

TEST_P(Kinds, WhatCannotBeInTimeIsDroppedAtOnce) {
  const auto d = small_deployment(50 * kMs, {{{1, {20 * kMs}, {}}}});
  const auto plane = timed(d, GetParam());
  OutcomeTally tally;
  const auto& r = tally.add(*plane, 0, 10 * kMs);
  EXPECT_EQ(r.outcome, Outcome::kDropped);  // within submit()
  EXPECT_EQ(r.times, 1);
}

TEST_P(Kinds, EveryRequestIsSettledOnceWhateverTheLoad) {
  Random random = random_stream(7, 1);
  for (int round = 0; round < 3; ++round) {
    auto d = random_deployment(random);
    for (auto& m : d.models) m.slo_ns = std::max<TimeNs>(m.slo_ns, 5 * kMs);
    OutcomeTally tally;
    {
      const auto plane = timed(d, GetParam());
      std::mutex mutex;
      std::vector<std::thread> clients;
      for (int c = 0; c < 3; ++c)
        clients.emplace_back([&, c] {
          Random own = random_stream(static_cast<uint64_t>(c), 2);
          for (int i = 0; i < 60; ++i) {
            const auto model = static_cast<uint32_t>(own.below(d.models.size()));
            OutcomeTally::Request* r;
            {
              const std::lock_guard lock(mutex);
              r = &tally.requests.emplace_back();
            }
            r->tally = &tally;
            r->model = model;
            r->deadline = live_now() + d.models[model].slo_ns;
            plane->submit(*r);
            std::this_thread::sleep_for(std::chrono::microseconds(own.below(800)));
          }
        });
      for (auto& t : clients) t.join();
      if (round == 1) {
        EXPECT_TRUE(eventually([&] { return tally.all_settled(); }));
      }
      // In the other rounds the plane ends with requests in it.
    }
    ASSERT_TRUE(tally.all_settled());
    for (const auto& r : tally.requests) {
      EXPECT_EQ(r.times, 1);
      EXPECT_NE(r.outcome, Outcome::kOpen);
    }
  }
}

TEST_P(Kinds, DrainingHandsOverWhatHasNotBegun) {
  const auto d = small_deployment(500 * kMs, {{{1, {40 * kMs}, {}}}});
  const auto plane = timed(d, GetParam());
  OutcomeTally tally;
  for (int i = 0; i < 4; ++i) tally.add(*plane, 0, 500 * kMs);
  auto pending = plane->drain(true);
  // Reservations bind batches to the device at once; the reactive scheduler keeps all but the first.
  if (GetParam() == SchedulerKind::kReactive) {
    EXPECT_EQ(pending.size(), 3U);
  }
  EXPECT_EQ(tally.add(*plane, 0, 500 * kMs).outcome, Outcome::kWithdrawn);
  const auto next = timed(d, GetParam());
  for (auto* r : pending) next->submit(*r);
  ASSERT_TRUE(eventually([&] { return tally.all_settled(); }));
  EXPECT_EQ(tally.count(Outcome::kInTime), 4);
  EXPECT_TRUE(plane->idle());
}

// The deployment's own load, as the simulator has it and as the threads of the plane do on a simulated clock, which
// begin a little later.
TEST(LivePlane, AttainsWhatTheSimulatorDoes) {
  constexpr double kClose = .02;
  const auto d =
      small_deployment(120 * kMs, {{{3, {10 * kMs, 16 * kMs, 22 * kMs}, {}},
                                    {2, {8 * kMs, 12 * kMs, 15 * kMs}, {2 * kMs, 3 * kMs, 4 * kMs}}}});
  for (const auto kind : {SchedulerKind::kReservation, SchedulerKind::kReactive}) {
    const double rate = 250;
    const auto arrivals = make_arrivals({}, std::vector<double>{rate}, 2, 3);
    ASSERT_TRUE(arrivals.ok());
    SimulationOptions options;
    options.scheduler = kind;
    const auto simulated = simulate(d, *arrivals, options);
    ASSERT_TRUE(simulated.ok());
    Simulation simulation({.seed = 1});
    const auto status = simulation.run([&] {
      const auto plane = timed(d, kind);
      OutcomeTally tally;
      const TimeNs begin = live_now();
      for (const auto& a : *arrivals) {
        if (const TimeNs left = begin + a.at - live_now(); left > 0) sleep_ns(left);
        tally.add(*plane, 0, 120 * kMs);
      }
      while (!tally.all_settled()) sleep_ns(kMs);
      // What the plane accepts is what the simulator accepts.
      const double live = static_cast<double>(tally.count(Outcome::kInTime) + tally.count(Outcome::kLate)) /
                          static_cast<double>(arrivals->size());
      EXPECT_NEAR(live, simulated->total.attainment(), kClose) << scheduler_name(kind);
    });
    EXPECT_TRUE(status.ok()) << status.error().to_string();
  }
}

// A device of the test: it can be held, fails on demand, and records the batches that it got.
class TestDevice final : public DeviceRunner {
 public:
  Status run(std::span<LiveRequest* const> batch) override {
    std::unique_lock lock(mutex);
    batches.emplace_back(batch.begin(), batch.end());
    changed.notify_all();
    changed.wait(lock, [this] { return !held; });
    return fail ? Status(Error(Code::kInternal, "out of order")) : Status();
  }
  void hold(bool on) {
    {
      const std::lock_guard lock(mutex);
      held = on;
    }
    changed.notify_all();
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::vector<LiveRequest*>> batches;
  bool held = false, fail = false;
};

TEST(LivePlane, DevicesGetTheRequestsOfTheirBatch) {
  const auto d = small_deployment(10'000 * kMs, {{{1, {1 * kMs, 1 * kMs, 1 * kMs, 1 * kMs}, {}}}});
  const auto device = std::make_shared<TestDevice>();
  LivePlaneOptions options;
  options.scheduler = SchedulerKind::kReactive;
  auto plane = LivePlane::create(d, options, {device});
  ASSERT_TRUE(plane.ok());
  device->hold(true);
  OutcomeTally tally;
  for (int i = 0; i < 10; ++i) tally.add(**plane, 0, 10'000 * kMs);
  device->hold(false);
  ASSERT_TRUE(eventually([&] { return tally.all_settled(); }));
  std::vector<LiveRequest*> seen;
  for (const auto& b : device->batches) {
    EXPECT_LE(b.size(), 4U);
    for (auto* r : b) {
      EXPECT_EQ(r->batch, b.size());
      seen.push_back(r);
    }
  }
  std::vector<LiveRequest*> sent;
  for (auto& r : tally.requests) sent.push_back(&r);
  EXPECT_THAT(seen, testing::UnorderedElementsAreArray(sent));
  EXPECT_EQ(device->batches.front().size(), 1U);  // nothing waited when the first one came
}

TEST(LivePlane, ARunThatFailsFailsItsRequestsAndNoOthers) {
  const auto d = small_deployment(10'000 * kMs, {{{1, {1 * kMs}, {}}}});
  const auto device = std::make_shared<TestDevice>();
  device->fail = true;
  LivePlaneOptions options;
  options.scheduler = SchedulerKind::kReactive;
  auto plane = LivePlane::create(d, options, {device});
  ASSERT_TRUE(plane.ok());
  OutcomeTally tally;
  const auto& r = tally.add(**plane, 0, 10'000 * kMs);
  ASSERT_TRUE(eventually([&] { return tally.all_settled(); }));
  EXPECT_EQ(r.outcome, Outcome::kFailed);
  EXPECT_THAT(r.error, testing::HasSubstr("out of order"));
  device->fail = false;
  const auto& good = tally.add(**plane, 0, 10'000 * kMs);
  ASSERT_TRUE(eventually([&] { return tally.all_settled(); }));
  EXPECT_EQ(good.outcome, Outcome::kInTime);
}

// The plane ends while its devices work, and a request waits until it must begin. The run that ends last begins it,
// on a device whose own run has ended before.
TEST(LivePlane, EndsWhileItsDevicesWork) {
  const auto d = small_deployment(60'000 * kMs, {{{2, {1 * kMs, 1 * kMs}, {}}}});
  std::vector<std::shared_ptr<TestDevice>> devices = {std::make_shared<TestDevice>(),
                                                      std::make_shared<TestDevice>()};
  for (const auto& device : devices) device->hold(true);
  auto plane = LivePlane::create(d, {}, {devices[0], devices[1]});
  ASSERT_TRUE(plane.ok());
  OutcomeTally tally;
  for (int i = 0; i < 4; ++i) tally.add(**plane, 0, 60'000 * kMs);
  for (const auto& device : devices)
    ASSERT_TRUE(eventually([&device] {
      const std::lock_guard lock(device->mutex);
      return !device->batches.empty();
    }));
  tally.add(**plane, 0, 300 * kMs);
  const std::jthread release([&devices] {
    devices[0]->hold(false);
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    devices[1]->hold(false);
  });
  plane->reset();
  EXPECT_TRUE(tally.all_settled());
}

TEST(DeviceThread, RunsNothingAfterItsStop) {
  const auto device = std::make_shared<TestDevice>();
  DeviceThread thread(device, [](const DeviceTask&, const Status&) {});
  thread.stop();
  thread.give({});
  EXPECT_TRUE(device->batches.empty());
}

TEST(LivePlane, WatchesItsDecisionsWhereItIsAskedTo) {
  const auto d = small_deployment(200 * kMs, {{{2, {1 * kMs}, {}}}});
  for (const bool watch : {false, true}) {
    LivePlaneOptions options;
    options.watch_decisions = watch;
    const auto plane =
        LivePlane::create(d, options, std::vector<std::shared_ptr<DeviceRunner>>(d.devices.size()));
    ASSERT_TRUE(plane.ok());
    OutcomeTally tally;
    for (int i = 0; i < 5; ++i) tally.add(**plane, 0, 200 * kMs);
    ASSERT_TRUE(eventually([&] { return tally.all_settled(); }));
    const auto counters = (*plane)->counters();
    EXPECT_EQ(counters.decision.count(), 5U);
    EXPECT_EQ(counters.lock_wait.count(), watch ? 5U : 0U);
  }
}

TEST(LivePlane, HoldsNoMoreThanItMay) {
  const auto d = small_deployment(10'000 * kMs, {{{1, {1 * kMs}, {}}}});
  const auto device = std::make_shared<TestDevice>();
  device->hold(true);
  LivePlaneOptions options;
  options.scheduler = SchedulerKind::kReactive;
  options.max_queued = 3;
  auto plane = LivePlane::create(d, options, {device});
  ASSERT_TRUE(plane.ok());
  OutcomeTally tally;
  for (int i = 0; i < 5; ++i) tally.add(**plane, 0, 10'000 * kMs);
  EXPECT_EQ(tally.count(Outcome::kWithdrawn), 2);
  device->hold(false);
  ASSERT_TRUE(eventually([&] { return tally.all_settled(); }));
  EXPECT_EQ(tally.count(Outcome::kInTime), 3);
}

TEST(LivePlane, RefusesWhatItCannotRun) {
  auto d = small_deployment(10 * kMs, {{{1, {1 * kMs}, {}}, {1, {1 * kMs}, {1 * kMs}}}});
  EXPECT_FALSE(LivePlane::create(d, {}, {nullptr}).ok());
  d.pipelines[0].batch = 2;
  EXPECT_EQ(LivePlane::create(d, {}, {nullptr, nullptr}).error().code(), Code::kInvalidInput);
}

}  // namespace
}  // namespace heddle
