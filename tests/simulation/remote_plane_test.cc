// The plane against devices in other processes that answer, fall silent, fail, go and return as the test
// says, on a simulated clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>

#include "data_plane_support.h"
#include "heddle/serve/live_plane.h"
#include "plane/timed_devices.h"
#include "simulated_test.h"
#include "workers/feature_maps.h"

namespace heddle {
namespace {

constexpr TimeNs kStepMs = 1'000'000;

// Devices that do nothing but what the test tells of them.
class FakeDevices final : public RemoteDevices {
 public:
  explicit FakeDevices(size_t devices) : there_(devices, 1) {}
  std::vector<char> listen(RemoteListener* listener) override {
    const std::lock_guard lock(mutex_);
    listener_ = listener;
    return there_;
  }
  uint64_t next_attempt() override { return ++attempts_; }
  void begin(RemoteTask task) override {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_all();
  }

  void release(uint64_t batch, uint32_t device) override {
    const std::lock_guard lock(mutex_);
    released_.emplace_back(batch, device);
  }
  std::vector<std::pair<uint64_t, uint32_t>> released() {
    const std::lock_guard lock(mutex_);
    return released_;
  }

  // The next step that the plane begins; attempt 0 where none comes.
  RemoteTask next() {
    std::unique_lock lock(mutex_);
    const int64_t until = steady_ns() + 20'000 * kStepMs;
    while (tasks_.empty() && steady_ns() < until) changed_.wait_until(lock, until);
    if (tasks_.empty()) return {};
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }
  bool nothing_begun() {
    const std::lock_guard lock(mutex_);
    return tasks_.empty();
  }
  void answer(const RemoteTask& task, const Status& status = {}, bool no_map = false) {
    RemoteAnswer a;
    a.attempt = task.attempt;
    a.status = status;
    a.no_map = no_map;
    a.measured_ns = task.transfer ? 0 : task.expected_ns;
    for (const auto& row : task.payloads)
      a.digests.push_back(row.empty() ? payload_digest(nullptr, 0)
                                      : payload_digest(row[0].data, row[0].bytes));
    listener()->answered(a);
  }
  RemoteListener* listener() {
    const std::lock_guard lock(mutex_);
    return listener_;
  }

 private:
  Mutex mutex_;
  Condition changed_;
  std::vector<char> there_;
  RemoteListener* listener_ = nullptr;
  std::deque<RemoteTask> tasks_;
  std::vector<std::pair<uint64_t, uint32_t>> released_;
  std::atomic<uint64_t> attempts_{0};
};

struct Row final : LiveRequest {
  std::atomic<int> times{0};
  void settled() override { ++times; }
};

struct Scene {
  explicit Scene(const Deployment& d, RemotePatience patience = {})
      : fake(std::make_shared<FakeDevices>(d.devices.size())) {
    LivePlaneOptions options;
    options.patience = patience;
    auto made = LivePlane::create_remote(d, options, fake);
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    plane = std::move(*made);
  }
  Row& add(TimeNs slo) {
    auto& r = rows.emplace_back();
    r.deadline = live_now() + slo;
    plane->submit(r);
    return r;
  }
  std::deque<Row> rows;
  std::shared_ptr<FakeDevices> fake;
  std::unique_ptr<LivePlane> plane;
};

// No batch waits for a second request where the planned size is 1.
Deployment two_devices(TimeNs run) { return small_deployment(60'000 * kStepMs, {{{2, {run}, {}}}}); }
// Two partitions, between which feature maps travel.
Deployment front_and_back(uint32_t fronts, uint32_t backs, TimeNs back_run = 5 * kStepMs) {
  return small_deployment(60'000 * kStepMs,
                          {{{fronts, {5 * kStepMs}, {}}, {backs, {back_run}, {1 * kStepMs}}}});
}

RemotePatience with_quarantine(TimeNs quarantine) {
  RemotePatience patience;
  patience.quarantine_ns = quarantine;
  return patience;
}

HEDDLE_SIMULATED_TEST(RemotePlane, ABatchGoesFromDeviceToDeviceUnderOneName) {
  Scene s(front_and_back(1, 1));
  auto& row = s.add(60'000 * kStepMs);
  const auto front = s.fake->next();
  EXPECT_FALSE(front.transfer);
  EXPECT_EQ(front.payloads.size(), 1U);
  s.fake->answer(front);
  const auto way = s.fake->next();
  EXPECT_TRUE(way.transfer);
  EXPECT_EQ(way.batch, front.batch);
  EXPECT_EQ(way.source, front.device);
  s.fake->answer(way);
  const auto back = s.fake->next();
  EXPECT_EQ(back.batch, front.batch);
  EXPECT_EQ(back.device, way.device);
  EXPECT_TRUE(back.payloads.empty());
  EXPECT_GT(back.attempt, way.attempt);
  EXPECT_THAT(s.fake->released(), testing::IsEmpty());
  s.fake->answer(back);
  ASSERT_TRUE(eventually([&] { return row.times == 1; }));
  EXPECT_EQ(row.outcome, Outcome::kInTime);
  EXPECT_THAT(s.fake->released(), testing::ElementsAre(testing::Pair(front.batch, front.device)));
}

HEDDLE_SIMULATED_TEST(RemotePlane, MapsOfBatchesThatDoNotGoOnAreReleased) {
  Scene s(front_and_back(2, 1));
  auto& row = s.add(60'000 * kStepMs);
  const auto front = s.fake->next();
  s.fake->answer(front);
  ASSERT_TRUE(s.fake->next().transfer);
  s.fake->listener()->remote_lost(front.device);
  const auto again = s.fake->next();
  EXPECT_NE(again.device, front.device);
  const auto first = testing::Pair(front.batch, front.device);
  EXPECT_TRUE(eventually([&] { return !s.fake->released().empty(); }));
  EXPECT_THAT(s.fake->released(), testing::ElementsAre(first));
  s.fake->answer(again);
  ASSERT_TRUE(s.fake->next().transfer);
  s.fake->listener()->remote_lost(again.device);
  ASSERT_TRUE(eventually([&] { return row.times == 1; })) << "no device is left";
  EXPECT_TRUE(eventually([&] { return s.fake->released().size() == 2; }));
  EXPECT_THAT(s.fake->released(), testing::ElementsAre(first, testing::Pair(again.batch, again.device)));
}

HEDDLE_SIMULATED_TEST(RemotePlane, WhatADeviceLosesRunsOnAnotherAndItsOldAnswerIsDropped) {
  Scene s(two_devices(10 * kStepMs));
  auto& row = s.add(60'000 * kStepMs);
  const auto first = s.fake->next();
  EXPECT_EQ(s.plane->counters().classes[0].busy, 1U);
  s.fake->listener()->remote_lost(first.device);
  const auto second = s.fake->next();
  EXPECT_EQ(s.plane->counters().classes[0].busy, 1U);
  EXPECT_EQ(s.plane->counters().classes[0].lost, 1U);
  EXPECT_NE(second.device, first.device);
  EXPECT_NE(second.attempt, first.attempt);
  s.fake->answer(first);  // of an attempt that was given up
  EXPECT_EQ(row.times, 0);
  s.fake->answer(second);
  ASSERT_TRUE(eventually([&] { return row.times == 1; }));
  s.fake->answer(second);  // twice
  EXPECT_EQ(row.times, 1);
  EXPECT_EQ(row.outcome, Outcome::kInTime);
  EXPECT_EQ(row.losses, 1U);
  const auto c = s.plane->counters();
  EXPECT_EQ(c.late_answers, 2U);
  EXPECT_EQ(c.losses, 1U);
  EXPECT_EQ(c.rerun, 1U);
}

HEDDLE_SIMULATED_TEST(RemotePlane, ASilentDeviceIsGivenUpAndWorksAgainOnceItHasAnswered) {
  RemotePatience patience;
  patience.least_ns = 500 * kStepMs;
  Scene s(two_devices(10 * kStepMs), patience);
  auto& row = s.add(60'000 * kStepMs);
  const auto first = s.fake->next();
  const auto second = s.fake->next();  // without a word of the first
  EXPECT_NE(second.device, first.device);
  s.fake->answer(second);
  ASSERT_TRUE(eventually([&] { return row.times == 1; }));
  EXPECT_EQ(s.plane->counters().given_up, 1U);
  // Until it answers it gets nothing, even if it were the only one that is there.
  s.fake->listener()->remote_lost(second.device);
  auto& refused = s.add(60'000 * kStepMs);
  EXPECT_EQ(refused.outcome, Outcome::kDropped);
  s.fake->answer(first);
  auto& served = s.add(60'000 * kStepMs);
  const auto third = s.fake->next();
  EXPECT_EQ(third.device, first.device);
  s.fake->answer(third);
  ASSERT_TRUE(eventually([&] { return served.times == 1; }));
  EXPECT_EQ(served.outcome, Outcome::kInTime);
}

// Others have its device's core: it is waited for, for as long as that is so.
HEDDLE_SIMULATED_TEST(RemotePlane, ADeviceThatIsOnlySlowKeepsItsStep) {
  RemotePatience patience;
  patience.least_ns = 300 * kStepMs;
  Scene s(two_devices(10 * kStepMs), patience);
  auto& row = s.add(60'000 * kStepMs);
  const auto task = s.fake->next();
  std::atomic<bool> quit{false};
  Thread worker([&] {
    for (TimeNs elapsed = 10; !quit; elapsed += 10) {
      s.fake->listener()->still_running(task.attempt, elapsed * kStepMs, elapsed * kStepMs * 9 / 10);
      sleep_ns(10 * kStepMs);
    }
  });
  sleep_ns(1000 * kStepMs);  // more than three times its patience
  EXPECT_EQ(s.plane->counters().given_up, 0U);
  EXPECT_TRUE(s.fake->nothing_begun());
  quit = true;
  worker.join();
  s.fake->answer(task);
  ASSERT_TRUE(eventually([&] { return row.times == 1; }));
  EXPECT_EQ(row.outcome, Outcome::kInTime);
  EXPECT_EQ(row.losses, 0U);
}

// Its process is alive and says so, but its run waits for nothing that others have: it hangs.
HEDDLE_SIMULATED_TEST(RemotePlane, ADeviceThatHangsLosesItsStepHoweverMuchItIsHeardOf) {
  RemotePatience patience;
  patience.least_ns = 300 * kStepMs;
  Scene s(two_devices(10 * kStepMs), patience);
  auto& row = s.add(60'000 * kStepMs);
  const auto hung = s.fake->next();
  std::atomic<bool> quit{false};
  Thread worker([&] {
    // It was slow at first.
    for (TimeNs elapsed = 10; !quit; elapsed += 10) {
      s.fake->listener()->still_running(hung.attempt, elapsed * kStepMs,
                                        std::min<TimeNs>(elapsed, 50) * kStepMs);
      sleep_ns(10 * kStepMs);
    }
  });
  const auto second = s.fake->next();
  EXPECT_NE(second.device, hung.device);
  EXPECT_NE(second.attempt, 0U);
  EXPECT_EQ(s.plane->counters().given_up, 1U);
  quit = true;
  worker.join();
  s.fake->listener()->still_running(hung.attempt, 1, 1);  // of an attempt that was given up: nothing
  s.fake->answer(second);
  ASSERT_TRUE(eventually([&] { return row.times == 1; }));
  EXPECT_EQ(row.outcome, Outcome::kInTime);
}

HEDDLE_SIMULATED_TEST(RemotePlane, AFailedWayLeadsToAnotherDeviceFromWhereTheMapIs) {
  Scene s(front_and_back(1, 2), with_quarantine(60'000 * kStepMs));
  auto& row = s.add(60'000 * kStepMs);
  const auto front = s.fake->next();
  s.fake->answer(front);
  const auto way = s.fake->next();
  s.fake->answer(way, Error(Code::kIo, "the link is cut"));
  const auto other = s.fake->next();
  EXPECT_TRUE(other.transfer);
  EXPECT_EQ(other.batch, front.batch);
  EXPECT_EQ(other.source, front.device);
  EXPECT_NE(other.device, way.device);
  s.fake->answer(other);
  s.fake->answer(s.fake->next());
  ASSERT_TRUE(eventually([&] { return row.times == 1; }));
  EXPECT_EQ(row.outcome, Outcome::kInTime);
}

// The map is nowhere: its batch begins anew, and neither device is at fault.
HEDDLE_SIMULATED_TEST(RemotePlane, AMapThatIsMissingAtItsSourcePutsNoDeviceToRest) {
  Scene s(front_and_back(1, 1), with_quarantine(60'000 * kStepMs));
  auto& row = s.add(60'000 * kStepMs);
  const auto front = s.fake->next();
  s.fake->answer(front);
  const auto way = s.fake->next();
  s.fake->answer(way, Error(Code::kInternal, "the batch's feature map is not here"), true);
  const auto again = s.fake->next();
  EXPECT_FALSE(again.transfer);
  EXPECT_NE(again.batch, front.batch);
  s.fake->answer(again);
  const auto sent = s.fake->next();
  EXPECT_EQ(sent.device, way.device);
  s.fake->answer(sent);
  s.fake->answer(s.fake->next());
  ASSERT_TRUE(eventually([&] { return row.times == 1; }));
  EXPECT_EQ(row.outcome, Outcome::kInTime);
  EXPECT_EQ(row.losses, 1U);
}

HEDDLE_SIMULATED_TEST(RemotePlane, AFailedDeviceIsLeftAloneForAWhile) {
  Scene s(two_devices(10 * kStepMs), with_quarantine(2'000 * kStepMs));
  auto& row = s.add(60'000 * kStepMs);
  const auto first = s.fake->next();
  s.fake->answer(first, Error(Code::kInternal, "it broke"));
  const auto second = s.fake->next();
  EXPECT_NE(second.device, first.device);
  s.fake->answer(second, Error(Code::kInternal, "it broke, too"));
  // Both are in quarantine: what cannot wait fails, and says why.
  ASSERT_TRUE(eventually([&] { return row.times == 1; }));
  EXPECT_EQ(row.outcome, Outcome::kFailed);
  EXPECT_THAT(row.error, testing::HasSubstr("lost"));
  EXPECT_TRUE(row.again);
  EXPECT_TRUE(eventually([&] { return s.add(60'000 * kStepMs).outcome != Outcome::kDropped; }));
}

HEDDLE_SIMULATED_TEST(RemotePlane, AMapThatDoesNotArriveDoesNotFreeADeviceAtWork) {
  RemotePatience patience;
  patience.least_ns = 300 * kStepMs;
  patience.quarantine_ns = kStepMs;
  Scene s(front_and_back(1, 1, 2000 * kStepMs), patience);
  s.add(60'000 * kStepMs);
  s.fake->answer(s.fake->next());
  s.fake->answer(s.fake->next());
  const auto run = s.fake->next();
  s.add(60'000 * kStepMs);
  s.fake->answer(s.fake->next());
  const auto way = s.fake->next();
  ASSERT_TRUE(way.transfer);
  ASSERT_EQ(way.device, run.device);
  ASSERT_TRUE(eventually([&] { return s.plane->counters().given_up == 1; }));
  s.fake->answer(way);
  EXPECT_EQ(s.add(60'000 * kStepMs).outcome, Outcome::kDropped) << "the run has not ended";
  s.fake->answer(run);
  auto& served = s.add(60'000 * kStepMs);
  EXPECT_EQ(served.outcome, Outcome::kOpen);
}

HEDDLE_SIMULATED_TEST(RemotePlane, NothingIsOpenAfterItsDeadlinesGrace) {
  RemotePatience patience;
  patience.least_ns = 60'000 * kStepMs;  // no step is given up
  patience.grace_ns = 20 * kStepMs;
  Scene s(two_devices(10 * kStepMs), patience);
  auto& row = s.add(100 * kStepMs);
  const auto task = s.fake->next();
  ASSERT_TRUE(eventually([&] { return row.times == 1; }));
  EXPECT_EQ(row.outcome, Outcome::kFailed);
  EXPECT_TRUE(row.again);
  EXPECT_GE(row.finished, row.deadline + 20 * kStepMs);
  EXPECT_TRUE(s.plane->idle());
  s.fake->answer(task);  // to nobody
  EXPECT_EQ(row.times, 1);
  EXPECT_EQ(s.plane->counters().overdue, 1U);
  // Its number is used again without harm.
  auto& next = s.add(60'000 * kStepMs);
  s.fake->answer(s.fake->next());
  ASSERT_TRUE(eventually([&] { return next.times == 1; }));
  EXPECT_EQ(next.outcome, Outcome::kInTime);
}

// Devices come, go, fail and fall silent by lot: every request is settled exactly once.
HEDDLE_SIMULATED_TEST(RemotePlane, EveryRequestIsSettledOnceWhateverTheDevicesDo) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Random random = random_stream(seed, 77);
    auto d = random_deployment(random);
    for (auto& m : d.models) m.slo_ns = 200 * kStepMs;
    RemotePatience patience;
    patience.least_ns = 20 * kStepMs;
    patience.quarantine_ns = 30 * kStepMs;
    patience.grace_ns = 50 * kStepMs;
    Scene s(d, patience);
    std::atomic<bool> quit{false};
    Thread devices([&] {
      Random own = random_stream(seed, 78);
      while (!quit) {
        if (s.fake->nothing_begun()) {
          sleep_ns(50 * kNsPerUs);
          continue;
        }
        const auto task = s.fake->next();
        const auto lot = own.below(100);
        if (lot < 70) s.fake->answer(task);
        if (lot >= 80 && lot < 90) s.fake->answer(task, Error(Code::kIo, "by lot"));
        if (lot >= 90) {
          s.fake->listener()->remote_lost(task.device);
          if (lot < 95) s.fake->answer(task);
          s.fake->listener()->remote_back(task.device);
        }
      }
    });
    for (int i = 0; i < 150; ++i) {
      auto& r = s.rows.emplace_back();
      r.model = static_cast<uint32_t>(random.below(d.models.size()));
      r.deadline = live_now() + d.models[r.model].slo_ns;
      s.plane->submit(r);
      sleep_ns(static_cast<int64_t>(random.below(1500)) * kNsPerUs);
    }
    EXPECT_TRUE(eventually([&] { return s.plane->idle(); }));
    quit = true;
    devices.join();
    for (const auto& r : s.rows) {
      EXPECT_EQ(r.times, 1) << outcome_name(r.outcome);
      EXPECT_NE(r.outcome, Outcome::kOpen);
    }
    s.plane.reset();
  }
}

TEST(RemotePlane, RefusesASchedulerThatFormsBatchesAnew) {
  const auto d = small_deployment(kStepMs, {{{1, {kStepMs}, {}}, {1, {kStepMs}, {kStepMs}}}});
  LivePlaneOptions options;
  options.scheduler = SchedulerKind::kReactive;
  const auto plane = LivePlane::create_remote(d, options, std::make_shared<FakeDevices>(2));
  ASSERT_FALSE(plane.ok());
  EXPECT_EQ(plane.error().code(), Code::kUnsupported);
}

HEDDLE_SIMULATED_TEST(FeatureMaps, ThatNobodyAsksForDoNotStay) {
  FeatureMaps maps(100, 20 * 1000 * kNsPerUs);
  maps.put(1, 0, {10, {}});
  EXPECT_TRUE(maps.get(1, 0));
  sleep_ns(30 * kStepMs);
  maps.put(2, 0, {10, {}});
  EXPECT_FALSE(maps.get(1, 0)) << "it was sent long ago";
  EXPECT_TRUE(maps.get(2, 0));
}

TEST(FeatureMaps, AreKnownByTheirBytes) {
  std::string bytes(1000, '\0');
  fill_feature_bytes(7, 64, bytes);
  EXPECT_TRUE(are_feature_bytes(7, 64, bytes));
  EXPECT_FALSE(are_feature_bytes(8, 64, bytes));
  EXPECT_FALSE(are_feature_bytes(7, 72, bytes));
  EXPECT_FALSE(are_feature_bytes(7, 63, bytes));
  bytes[999] ^= 1;
  EXPECT_FALSE(are_feature_bytes(7, 64, bytes));
  FeatureMaps maps(2);
  for (uint64_t batch = 1; batch <= 3; ++batch) maps.put(batch, 5, {batch, {}});
  EXPECT_FALSE(maps.get(1, 5));  // the oldest went
  EXPECT_FALSE(maps.get(2, 6));
  EXPECT_TRUE(maps.get(2, 5));
  EXPECT_EQ(maps.take(3, 5)->bytes, 3U);
  EXPECT_FALSE(maps.take(3, 5));
}

TEST(FeatureMaps, KnowWhichTheirWorkerHasMade) {
  FeatureMaps maps;
  maps.put(1, 0, {10, {}});
  EXPECT_FALSE(maps.has_made()) << "it has come for a run";
  maps.put(2, 0, {10, {}}, true);
  EXPECT_TRUE(maps.has_made());
  maps.release(2, 0);
  EXPECT_FALSE(maps.has_made());
}

HEDDLE_SIMULATED_TEST(TimedDevices, BeginNothingForAnEarlierOwner) {
  std::atomic<int> first{0}, second{0};
  TimedDevices devices(1);
  devices.give_to(1);
  devices.run(1, 0, 60'000 * kStepMs, [&](TimeNs, const std::string&) { ++first; });
  devices.give_to(2);
  devices.run(1, 0, 0, [&](TimeNs, const std::string&) { ++first; });
  devices.give_to(1);  // late
  devices.run(2, 0, kStepMs, [&](TimeNs, const std::string&) { ++second; });
  EXPECT_TRUE(eventually([&] { return second == 1; }));
  EXPECT_EQ(first, 0);
  const auto counts = devices.counts();
  EXPECT_EQ(counts.owner, 2U);
  EXPECT_EQ(counts.runs, 1U);
  EXPECT_EQ(counts.of_owner, 1U);
  EXPECT_EQ(counts.strays, 0U);
}

// Such a run is over for its device: the next one goes on.
TEST(TimedDevices, ReportWhyARunHasFailed) {
  std::atomic<int> good{0};
  std::string why;
  TimedDevices devices(1, [](uint32_t device) { return device == 3 ? "it is too hot" : ""; });
  devices.run(0, 3, kStepMs, [&](TimeNs, const std::string& error) { why = error; });
  devices.run(0, 3, kStepMs, [&](TimeNs, const std::string&) { ++good; });
  EXPECT_TRUE(eventually([&] { return good == 1; }));
  EXPECT_EQ(why, "it is too hot");
  EXPECT_EQ(devices.counts().runs, 0U);
}

}  // namespace
}  // namespace heddle
