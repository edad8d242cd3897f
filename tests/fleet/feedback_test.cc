// Effects of measured times: bookings pass others, paths are chosen anew, and batches are decided on anew.
#include <gtest/gtest.h>

#include "data_plane_support.h"
#include "fleet_support.h"
#include "heddle/fleet/dispatch.h"
#include "heddle/fleet/ppipe_data.h"
#include "heddle/fleet/reactive.h"
#include "heddle/fleet/simulator.h"

namespace heddle {
namespace {

constexpr TimeNs kUs = kNsPerUs;

// One device, 10 us per request.
Deployment one_device() { return small_deployment(100 * kUs, {{{1, {10 * kUs}, {}}}}); }

TEST(Feedback, ABatchThatWouldBeginTooLateIsDecidedOnAnew) {
  const auto d = one_device();
  for (const TimeNs end : {16 * kUs, 17 * kUs})
    for (const bool feedback : {true, false}) {
      Dispatcher dispatcher(d, {.feedback = feedback});
      Actions a;
      dispatcher.submit(0, 0, 25 * kUs, 0, a);
      dispatcher.submit(0, 1, 26 * kUs, 1 * kUs, a);
      ASSERT_EQ(a.start.size(), 1u);
      const auto work = a.start.front().id;
      dispatcher.overdue(work, 10 * kUs, a);
      a.clear();
      dispatcher.finished(work, end, a);
      const bool in_time = end == 16 * kUs;
      EXPECT_EQ(a.start.size(), in_time || !feedback ? 1u : 0u);
      EXPECT_EQ(a.dropped.size(), in_time || !feedback ? 0u : 1u);
      EXPECT_EQ(dispatcher.idle(), !in_time && feedback);
    }
}

TEST(Feedback, ASmallerBatchIsFoundForTheOnesThatAreStillInTime) {
  // Two take 14 us, one 10. After a run that ends at 20 instead of 10, a batch of two would end at 34.
  const auto d = small_deployment(100 * kUs, {{{1, {10 * kUs, 14 * kUs}, {}}}});
  Dispatcher dispatcher(d, {});
  Actions a;
  dispatcher.submit(0, 0, 10 * kUs, 0, a);  // cannot wait for a second request
  ASSERT_EQ(a.start.size(), 1u);
  const auto work = a.start.front().id;
  a.clear();
  dispatcher.submit(0, 1, 31 * kUs, 1 * kUs, a);
  dispatcher.submit(0, 2, 60 * kUs, 2 * kUs, a);
  EXPECT_TRUE(a.start.empty());
  EXPECT_EQ(a.begun.size(), 2u);
  dispatcher.overdue(work, 10 * kUs, a);
  a.clear();
  dispatcher.finished(work, 20 * kUs, a);
  ASSERT_EQ(a.start.size(), 1u);
  EXPECT_EQ(a.start.front().batch_size, 1u);
  EXPECT_EQ(a.start.front().first_request, 1u);
  EXPECT_TRUE(a.dropped.empty());
}

TEST(Feedback, WhatIsReadyPassesWhatIsLate) {
  // Two requests run side by side, but only one can be sent at a time: 0 at [10, 14), then 1. If 0 is late, 1
  // is sent first, provided that it ends before 0 is expected.
  const auto d = small_deployment(100 * kUs, {{{2, {10 * kUs}, {}}, {1, {5 * kUs}, {4 * kUs}}}});
  for (const bool feedback : {true, false}) {
    Dispatcher dispatcher(d, {.feedback = feedback});
    Actions a;
    dispatcher.submit(0, 0, 100 * kUs, 0, a);
    dispatcher.submit(0, 1, 100 * kUs, 0, a);
    ASSERT_EQ(a.start.size(), 2u);
    const auto first = a.start[0].id, second = a.start[1].id;
    a.clear();
    dispatcher.overdue(first, 10 * kUs, a);
    dispatcher.finished(second, 10 * kUs, a);
    EXPECT_TRUE(a.start.empty()) << "0 is expected in 10 / 16 us";
    dispatcher.overdue(first, 10625, a);
    ASSERT_EQ(a.start.size(), feedback ? 1u : 0u);
    if (!feedback) continue;
    EXPECT_TRUE(a.start[0].transfer);
    EXPECT_EQ(a.start[0].first_request, 1u);
    const auto sent = a.start[0].id;
    a.clear();
    dispatcher.finished(first, 11 * kUs, a);
    EXPECT_TRUE(a.start.empty()) << "the link is in use";
    dispatcher.finished(sent, 14625, a);
    ASSERT_EQ(a.start.size(), 2u) << "1 runs, and 0 is sent";
  }
}

TEST(Feedback, TheRestOfALatePathIsChosenAnew) {
  // Run 10, transfer 1, run 20. Request 0 arrives at 0 and is to run on device 3 in [11, 31). Request 1
  // arrives at 1 and is to run on device 4 in [12, 32). Request 2 arrives at 20 and is booked behind 0. As 0
  // is not done at 36, request 2 moves to device 4.
  const auto d = small_deployment(100 * kUs, {{{3, {10 * kUs}, {}}, {2, {20 * kUs}, {1 * kUs}}}});
  Dispatcher dispatcher(d, {});
  Actions a;
  const auto begun = [&a] {
    const Work work = a.start.at(0);
    a.clear();
    return work;
  };
  const auto submit = [&](RequestId r, TimeNs at) {
    dispatcher.submit(0, r, r == 2 ? 60 * kUs : 100 * kUs, at, a);
    return begun();
  };
  const auto finish = [&](const Work& work, TimeNs at) {
    dispatcher.finished(work.id, at, a);
    return a.start.empty() ? Work{} : begun();
  };
  Work first = submit(0, 0), second = submit(1, 1 * kUs);
  first = finish(finish(first, 10 * kUs), 11 * kUs);
  second = finish(finish(second, 11 * kUs), 12 * kUs);
  EXPECT_EQ(first.device, 3u);
  EXPECT_EQ(second.device, 4u);
  const Work third = submit(2, 20 * kUs);
  finish(second, 32 * kUs);
  dispatcher.overdue(third.id, 36 * kUs, a);
  dispatcher.overdue(first.id, 36 * kUs, a);
  const Work sent = finish(third, 38 * kUs);
  EXPECT_TRUE(sent.transfer);
  EXPECT_EQ(sent.device, 4u) << "behind request 0 it would end at 61, now at 59";
  EXPECT_TRUE(a.dropped.empty());
}

TEST(ReservationBook, WhatPassesMovesTheOthersBack) {
  ReservationBook book(3);
  const auto run = book.book(0, 0, 0, 0, kNoId, 0, 10, kNoId);
  const auto send = book.book(0, 0, 1, 1, 2, 10, 5, run);
  const auto other = book.book(0, 1, 1, 1, 2, 15, 4, kNoId);
  book.start(run, 0);
  book.overdue(run, 15);
  EXPECT_EQ(book[send].start, 20);
  book.pass(other, 15);
  EXPECT_EQ(book[other].start, 15);
  EXPECT_EQ(book.head(1), other);
  EXPECT_EQ(book.head(2), other);
  EXPECT_EQ(book[send].prev[0], other);
  EXPECT_EQ(book[send].start, 20);
  book.start(other, 15);
  book.finish(run, 16);
  EXPECT_EQ(book[send].start, 19) << "behind what passed";
  book.finish(other, 19);
  EXPECT_TRUE(book.can_start(send));
  EXPECT_EQ(book.tail(1), 24);
}

TEST(AvoidStragglers, ADeviceThatStragglesGetsNothingUntilItIsDone) {
  const auto d = small_deployment(1000 * kUs, {{{2, {10 * kUs}, {}}}});
  for (const double share : {0., .5}) {
    Dispatcher dispatcher(d, {.avoid_stragglers = share});
    Actions a;
    dispatcher.submit(0, 0, 900 * kUs, 0, a);
    ASSERT_EQ(a.start.size(), 1u);
    EXPECT_EQ(a.start[0].device, 0u);
    const auto straggler = a.start[0].id;
    dispatcher.submit(0, 1, 900 * kUs, 1 * kUs, a);  // on the other device, until 11 us
    ASSERT_EQ(a.start.size(), 2u);
    const auto other = a.start[1].id;
    for (const TimeNs at : {10 * kUs, 10 * kUs + 625}) dispatcher.overdue(straggler, at, a);
    dispatcher.finished(other, 11 * kUs, a);
    dispatcher.submit(0, 2, 900 * kUs, 11 * kUs, a);  // again on the other device, until 21 us
    ASSERT_EQ(a.start.size(), 3u);
    EXPECT_EQ(a.start[2].device, 1u);
    // Overdue by half of its time and expected at 20 us, before the other device is free.
    dispatcher.overdue(straggler, 15 * kUs, a);
    EXPECT_EQ(dispatcher.probe(0, 1, 15 * kUs).device[0], share > 0 ? 1u : 0u);
    dispatcher.finished(straggler, 16 * kUs, a);
    EXPECT_EQ(dispatcher.probe(0, 1, 16 * kUs).device[0], 0u) << "it is done";
  }
}

TEST(AvoidStragglers, WhereAllStraggleTheEarliestIsTaken) {
  const auto d = one_device();
  Dispatcher dispatcher(d, {.avoid_stragglers = .1});
  Actions a;
  dispatcher.submit(0, 0, 90 * kUs, 0, a);
  ASSERT_EQ(a.start.size(), 1u);
  dispatcher.overdue(a.start[0].id, 15 * kUs, a);
  dispatcher.submit(0, 1, 90 * kUs, 16 * kUs, a);
  EXPECT_EQ(a.begun.size(), 2u);
  EXPECT_TRUE(a.dropped.empty());
  const auto work = a.start[0].id;
  a.clear();
  dispatcher.finished(work, 40 * kUs, a);
  EXPECT_EQ(a.start.size(), 1u);
}

TEST(AvoidStragglers, OfTheDevicesThatAreFreeInTimeTheOneFreeLongestIsTakenAndNoClosedOne) {
  const auto d = small_deployment(1000 * kUs, {{{2, {10 * kUs}, {}}, {3, {5 * kUs}, {1 * kUs}}}});
  for (const double share : {0., .5}) {
    Dispatcher dispatcher(d, {.avoid_stragglers = share});
    Actions a;
    dispatcher.submit(0, 0, 900 * kUs, 0, a);  // on device 2 from 11 to 16 us
    EXPECT_EQ(dispatcher.probe(0, 1, 5 * kUs).device[1], share > 0 ? 3u : 2u);
    dispatcher.device_lost(3, 6 * kUs, a);
    EXPECT_EQ(dispatcher.probe(0, 1, 6 * kUs).device[1], share > 0 ? 4u : 2u);
    for (const uint32_t device : {2u, 4u}) dispatcher.device_lost(device, 7 * kUs, a);
    EXPECT_FALSE(dispatcher.probe(0, 1, 7 * kUs).found());
  }
}

TEST(AvoidStragglers, WhatComesOutOfTheFirstPartitionChoosesAnew) {
  // Both requests are booked on device 2, one of the second pool's two, back to back or side by side.
  const auto d = small_deployment(1000 * kUs, {{{1, {10 * kUs}, {}}, {2, {10 * kUs}, {1 * kUs}}}});
  for (const double share : {0., .2}) {
    Dispatcher dispatcher(d, {.avoid_stragglers = share});
    Actions a;
    const auto start_of = [&](uint32_t request, bool transfer) {
      for (const auto& w : a.start)
        if (w.first_request == request && w.transfer == transfer) return w;
      ADD_FAILURE() << "request " << request << " has not begun";
      return Work{};
    };
    dispatcher.submit(0, 0, 900 * kUs, 0, a);
    dispatcher.finished(start_of(0, false).id, 10 * kUs, a);
    const auto sent = start_of(0, true);
    a.clear();
    dispatcher.finished(sent.id, 11 * kUs, a);
    const auto straggler = start_of(0, false);
    a.clear();
    // The next request leaves the first device at 24 us, while the straggler is overdue.
    dispatcher.submit(0, 1, 900 * kUs, 14 * kUs, a);
    dispatcher.overdue(straggler.id, 21 * kUs, a);
    dispatcher.overdue(straggler.id, 21 * kUs + 625, a);
    dispatcher.overdue(straggler.id, 23 * kUs, a);
    dispatcher.finished(start_of(1, false).id, 24 * kUs, a);
    const auto chosen = start_of(1, true).device;
    if (share > 0) {
      EXPECT_NE(chosen, straggler.device);
    } else {
      EXPECT_EQ(chosen, straggler.device) << "free at 21 us, it was believed";
    }
  }
}

TEST(Feedback, ADeviceAtWorkIsNotFreeWhenItsBatchHasNoFurtherWay) {
  const auto d = small_deployment(1000 * kUs, {{{1, {10 * kUs}, {}}, {1, {10 * kUs}, {1 * kUs}}}});
  Dispatcher dispatcher(d, {.retry = true});
  Actions a;
  dispatcher.submit(0, 0, 900 * kUs, 0, a);
  ASSERT_EQ(a.start.size(), 1u);
  const auto run = a.start[0];
  a.clear();
  dispatcher.device_lost(1, 5 * kUs, a);
  EXPECT_TRUE(a.abort.empty());
  EXPECT_TRUE(a.failed.empty());
  dispatcher.device_back(1, 6 * kUs, a);
  dispatcher.submit(0, 1, 900 * kUs, 7 * kUs, a);
  EXPECT_TRUE(a.start.empty());
  dispatcher.finished(run.id, 12 * kUs, a);
  ASSERT_EQ(a.start.size(), 2u);
  for (const auto& w : a.start) EXPECT_EQ(w.transfer, w.first_request == 0) << w.first_request;
}

TEST(Feedback, ABatchWithoutAWaySkipsNoPartitionWhenALaterDeviceIsLost) {
  const auto d = small_deployment(
      1000 * kUs, {{{1, {10 * kUs}, {}}, {1, {10 * kUs}, {1 * kUs}}, {2, {10 * kUs}, {1 * kUs}}}});
  Dispatcher dispatcher(d, {.retry = true});
  Actions a;
  dispatcher.submit(0, 0, 900 * kUs, 0, a);
  ASSERT_EQ(a.start.size(), 1u);
  const auto run = a.start[0];
  a.clear();
  dispatcher.device_lost(1, 5 * kUs, a);  // the only one of the second partition
  for (const uint32_t device : {2u, 3u}) {
    dispatcher.device_lost(device, 6 * kUs, a);
    EXPECT_TRUE(a.start.empty()) << "device " << device;
    dispatcher.device_back(device, 7 * kUs, a);
  }
  EXPECT_TRUE(a.abort.empty());
  dispatcher.device_back(1, 8 * kUs, a);
  dispatcher.finished(run.id, 12 * kUs, a);
  ASSERT_EQ(a.start.size(), 1u);
  EXPECT_TRUE(a.start[0].transfer);
  EXPECT_EQ(a.start[0].partition, 1u);
}

TEST(Feedback, ALossFurtherOnLeavesADeviceAtWorkAlone) {
  const auto d = small_deployment(
      1000 * kUs, {{{1, {10 * kUs}, {}}, {1, {10 * kUs}, {1 * kUs}}, {1, {10 * kUs}, {1 * kUs}}}});
  Dispatcher dispatcher(d, {.retry = true});
  Actions a;
  dispatcher.submit(0, 0, 900 * kUs, 0, a);
  ASSERT_EQ(a.start.size(), 1u);
  const auto run = a.start[0];
  a.clear();
  dispatcher.device_lost(2, 5 * kUs, a);  // the only one of the third partition
  EXPECT_TRUE(a.abort.empty());
  EXPECT_TRUE(a.dropped.empty());
  EXPECT_TRUE(a.failed.empty());
  dispatcher.device_back(2, 6 * kUs, a);
  dispatcher.submit(0, 1, 900 * kUs, 7 * kUs, a);
  EXPECT_TRUE(a.start.empty()) << "device 0 is at work";
  dispatcher.finished(run.id, 12 * kUs, a);
  ASSERT_EQ(a.start.size(), 2u);
  EXPECT_TRUE(a.start[0].transfer);
  EXPECT_EQ(a.start[0].partition, 1u);
  EXPECT_EQ(a.start[0].first_request, 0u);
  EXPECT_FALSE(a.start[1].transfer);
  EXPECT_EQ(a.start[1].first_request, 1u);
}

class BatchLost : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Schedulers, BatchLost, testing::Bool(), [](const auto& reservation) {
  return std::string(reservation.param ? "reservation" : "reactive");
});

// Its feature map is missing: the batch begins anew, its devices are free, and what waits behind it goes on.
TEST_P(BatchLost, BeginsAnewAndFreesWhatItHeld) {
  const auto d = small_deployment(1000 * kUs, {{{1, {10 * kUs}, {}}, {1, {10 * kUs}, {1 * kUs}}}});
  const auto scheduler = GetParam() ? std::unique_ptr<Scheduler>(new Dispatcher(d, {.retry = true}))
                                    : std::unique_ptr<Scheduler>(new ReactiveScheduler(d, true));
  Actions a;
  const auto begun = [&a] {
    const Work work = a.start.at(0);
    a.clear();
    return work;
  };
  scheduler->submit(0, 0, 900 * kUs, 0, a);
  const Work first = begun();
  scheduler->finished(first.id, 10 * kUs, a);
  const Work way = begun();
  ASSERT_TRUE(way.transfer);
  scheduler->batch_lost(way.id, 10 * kUs, a);
  EXPECT_EQ(a.abort, std::vector<WorkId>{way.id});
  ASSERT_EQ(a.start.size(), 1u);
  const Work again = begun();
  EXPECT_FALSE(again.transfer);
  EXPECT_EQ(again.partition, 0u);
  EXPECT_EQ(again.first_request, 0u);
  scheduler->batch_lost(again.id, 15 * kUs, a);  // of a run, too
  const Work third = begun();
  scheduler->finished(third.id, 25 * kUs, a);
  const Work sent = begun();
  EXPECT_TRUE(sent.transfer);
  scheduler->finished(sent.id, 26 * kUs, a);
  scheduler->finished(begun().id, 36 * kUs, a);
  EXPECT_EQ(a.done, std::vector<RequestId>{0});
  EXPECT_TRUE(scheduler->idle());
}

TEST(Feedback, ReservationServesMoreThanReactiveWhereTimesVary) {
  if (ppipe_folder().empty()) GTEST_SKIP() << "HEDDLE_SHARED has no data/ppipe";
  const auto data = read_ppipe_data(ppipe_folder());
  ASSERT_TRUE(data.ok()) << data.error().to_string();
  const auto references = read_ppipe_references(*data, ppipe_folder());
  ASSERT_TRUE(references.ok()) << references.error().to_string();
  uint64_t reservation = 0, uncorrected = 0, reactive = 0, arrivals = 0;
  for (const auto& r : *references) {
    if (r.algorithm != "v4") continue;
    const auto d = deploy(r.fleet, r.plan);
    ASSERT_TRUE(d.ok()) << d.error().to_string();
    std::vector<double> rates;
    for (const auto& m : r.plan.models) rates.push_back(.95 * m.rate_per_s);
    const auto traffic = make_arrivals({}, rates, 1, 1);
    ASSERT_TRUE(traffic.ok());
    SimulationOptions o;
    o.noise = {.03, .001, 10};
    const auto in_time = [&] { return simulate(*d, *traffic, o)->total.in_time; };
    arrivals += traffic->size();
    reservation += in_time();
    o.dispatch.feedback = false;
    uncorrected += in_time();
    o.dispatch.feedback = true;
    o.scheduler = SchedulerKind::kReactive;
    reactive += in_time();
  }
  EXPECT_GT(reservation, uncorrected) << "of " << arrivals;
  EXPECT_GT(reservation, reactive) << "of " << arrivals;
}

}  // namespace
}  // namespace heddle
