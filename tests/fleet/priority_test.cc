// Priorities in the schedulers' queues: higher ones go first, and unserved requests get an outcome.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data_plane_support.h"
#include "heddle/fleet/deadline_queue.h"
#include "heddle/fleet/dispatch.h"
#include "heddle/fleet/reactive.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr TimeNs kTick = kNsPerUs;

std::vector<uint32_t> drained(DeadlineQueue& queue) {
  std::vector<uint32_t> order;
  for (; !queue.empty(); queue.pop()) order.push_back(queue.front().request);
  return order;
}

TEST(DeadlineQueue, HigherPrioritiesComeFirstThenDeadlinesThenArrival) {
  DeadlineQueue queue;
  queue.push({50, 0, false, 2});
  queue.push({90, 1, false, 1});
  EXPECT_TRUE(queue.mixed());
  queue.push({40, 2, false, 2});
  queue.push({90, 3, false, 1});
  queue.push({10, 4, false, 7});
  queue.push({80, 5, false, 1});
  EXPECT_EQ(queue.earliest(3), 80);
  EXPECT_EQ(queue.earliest(4), 40);
  EXPECT_EQ(queue.earliest(6), 10);
  EXPECT_THAT(drained(queue), ElementsAre(5, 1, 3, 2, 0, 4));
  EXPECT_FALSE(queue.mixed());
}

TEST(DeadlineQueue, OnlyTheExpiredLeave) {
  DeadlineQueue queue;
  for (uint32_t r = 0; r < 6; ++r)
    queue.push({static_cast<TimeNs>(10 * (6 - r)), r, false, static_cast<uint16_t>(r % 2)});
  queue.pop();  // request 4, deadline 20
  std::vector<uint32_t> gone;
  queue.expire(40, [&gone](const DeadlineQueue::Entry& e) { gone.push_back(e.request); });
  EXPECT_THAT(gone, ElementsAre(5, 3));
  EXPECT_THAT(drained(queue), ElementsAre(2, 0, 1));
  queue.push({5, 9});
  queue.expire(6, [](const DeadlineQueue::Entry&) {});
  EXPECT_TRUE(queue.empty());
}

// One device, batch 1: waiting requests are served by priority. A low-priority request that expires is
// dropped even while requests of high priority keep the device busy.
TEST(Priorities, OrderWhatWaitsForAReactiveDevice) {
  const auto d = small_deployment(1000 * kTick, {{{1, {10 * kTick}, {}}}});
  ReactiveScheduler scheduler(d);
  Actions a;
  const auto begins = [&a] {
    const auto begun = a.begun;
    a.clear();
    return begun;
  };
  scheduler.submit(0, 0, 1000 * kTick, 0, a);
  const WorkId work = a.start.at(0).id;
  EXPECT_THAT(begins(), ElementsAre(0));
  scheduler.submit(0, 1, 25 * kTick, 1 * kTick, a, 3);
  scheduler.submit(0, 2, 900 * kTick, 2 * kTick, a, 2);
  scheduler.submit(0, 3, 950 * kTick, 3 * kTick, a, 1);
  scheduler.submit(0, 4, 940 * kTick, 4 * kTick, a, 1);
  EXPECT_THAT(begins(), IsEmpty());
  scheduler.finished(work, 10 * kTick, a);
  WorkId next = a.start.at(0).id;
  EXPECT_THAT(a.dropped, IsEmpty());
  EXPECT_THAT(begins(), ElementsAre(4));
  scheduler.finished(next, 20 * kTick, a);
  next = a.start.at(0).id;
  EXPECT_THAT(a.dropped, ElementsAre(1)) << "10 us do not fit before 25 us";
  EXPECT_THAT(begins(), ElementsAre(3));
  scheduler.finished(next, 30 * kTick, a);
  EXPECT_THAT(begins(), ElementsAre(2));
}

// An incomplete batch begins when its most urgent request must; its order is by priority.
TEST(Priorities, OrderWhatWaitsForABatch) {
  const auto d = small_deployment(1000 * kTick, {{{1, {10 * kTick, 10 * kTick, 10 * kTick}, {}}}});
  Dispatcher dispatcher(d, {});
  Actions a;
  dispatcher.submit(0, 0, 900 * kTick, 0, a, 1);
  dispatcher.submit(0, 1, 500 * kTick, 1 * kTick, a, 2);
  EXPECT_THAT(a.begun, IsEmpty());
  ASSERT_FALSE(a.wakes.empty());
  EXPECT_EQ(a.wakes.back().at, 490 * kTick) << "the second's deadline is the earlier one";
  dispatcher.wake(0, 490 * kTick, a);
  EXPECT_THAT(a.begun, ElementsAre(0, 1));
}

}  // namespace
}  // namespace heddle
