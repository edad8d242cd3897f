#include "heddle/fleet/reservation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "heddle/fleet/random.h"

namespace heddle {
namespace {

// The state of every nanosecond of each resource.
class BruteTable {
 public:
  explicit BruteTable(size_t resources) : busy_(resources, std::vector<char>(4096, 0)) {}
  bool free(size_t r, TimeNs from, TimeNs length) const {
    for (TimeNs t = from; t < from + length; ++t)
      if (busy_[r][static_cast<size_t>(t)]) return false;
    return true;
  }
  TimeNs earliest(const std::vector<size_t>& resources, TimeNs t, TimeNs length) const {
    for (;; ++t)
      if (std::all_of(resources.begin(), resources.end(), [&](size_t r) { return free(r, t, length); }))
        return t;
  }
  void set(size_t r, TimeNs from, TimeNs to, char busy) {
    std::fill(busy_[r].begin() + from, busy_[r].begin() + to, busy);
  }

 private:
  std::vector<std::vector<char>> busy_;
};

TEST(ReservationBook, EarliestSlotsAreThoseOfABruteForceIntervalSet) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random = random_stream(seed, 0);
    constexpr uint32_t kResources = 4;
    ReservationBook book(kResources, true, false);
    BruteTable brute(kResources);
    struct Made {
      BookingId id;
      TimeNs start, length;
      uint32_t a, b;
    };
    std::vector<Made> made;
    for (int i = 0; i < 60; ++i) {
      if (!made.empty() && random.below(4) == 0) {
        const auto which = random.below(made.size());
        const auto m = made[which];
        book.cancel(m.id, 0);
        brute.set(m.a, m.start, m.start + m.length, 0);
        if (m.b != kNoId) brute.set(m.b, m.start, m.start + m.length, 0);
        made.erase(made.begin() + static_cast<std::ptrdiff_t>(which));
        continue;
      }
      const auto t = static_cast<TimeNs>(random.below(300));
      const auto length = static_cast<TimeNs>(1 + random.below(30));
      const auto a = static_cast<uint32_t>(random.below(kResources));
      uint32_t b = random.below(2) ? kNoId : static_cast<uint32_t>(random.below(kResources));
      if (b == a) b = kNoId;
      const TimeNs start = b == kNoId ? book.earliest(a, t, length) : book.earliest_both(a, b, t, length);
      const TimeNs expected = b == kNoId ? brute.earliest({a}, t, length) : brute.earliest({a, b}, t, length);
      ASSERT_EQ(start, expected) << "seed " << seed << ", booking " << i;
      made.push_back({book.book(0, 0, 0, a, b, start, length, kNoId), start, length, a, b});
      brute.set(a, start, start + length, 1);
      if (b != kNoId) brute.set(b, start, start + length, 1);
    }
  }
}

TEST(ReservationBook, BusyUntilLooksAtTheLastBookingAlone) {
  ReservationBook book(1, false);
  book.book(0, 0, 0, 0, kNoId, 100, 10, kNoId);
  EXPECT_EQ(book.earliest(0, 0, 5), 110);
  ReservationBook filling(1, true);
  filling.book(0, 0, 0, 0, kNoId, 100, 10, kNoId);
  EXPECT_EQ(filling.earliest(0, 0, 5), 0);
  EXPECT_EQ(filling.earliest(0, 0, 101), 110);
  EXPECT_EQ(filling.earliest(0, 96, 5), 110);
}

TEST(ReservationBook, ALateEndMovesWhatDependsOnItAndKeepsTheOrder) {
  // Batch 0 runs on 0 in [0, 10), is sent over 1 in [10, 15), and runs on 2 in [15, 20). Batch 1 runs on 0 in
  // [10, 20).
  ReservationBook book(3);
  const auto run = book.book(0, 0, 0, 0, kNoId, 0, 10, kNoId);
  const auto send = book.book(0, 0, 1, 1, kNoId, 10, 5, run);
  const auto second = book.book(0, 0, 2, 2, kNoId, 15, 5, send);
  const auto other = book.book(0, 1, 0, 0, kNoId, 10, 10, kNoId);
  book.start(run, 0);
  book.finish(run, 13);
  EXPECT_EQ(book[send].start, 13);
  EXPECT_EQ(book[second].start, 18);
  EXPECT_EQ(book[other].start, 13);
  EXPECT_EQ(book[other].end, 23);
  EXPECT_EQ(book.tail(0), 23);
}

TEST(ReservationBook, AnEarlyEndPullsForwardWhatWaitsForItAlone) {
  ReservationBook book(3);
  const auto run = book.book(0, 0, 0, 0, kNoId, 0, 10, kNoId);
  const auto send = book.book(0, 0, 1, 1, kNoId, 10, 5, run);
  const auto busy = book.book(0, 1, 0, 2, kNoId, 0, 14, kNoId);
  const auto second = book.book(0, 0, 2, 2, kNoId, 15, 5, send);
  book.start(run, 0);
  book.start(busy, 0);
  book.finish(run, 6);
  EXPECT_EQ(book[send].start, 6);
  EXPECT_EQ(book[second].start, 14) << "the device is busy until then";
}

TEST(ReservationBook, OverdueWorkIsExpectedToTakeALittleLongerThenTwiceAsMuchEachTime) {
  ReservationBook book(1);
  const auto run = book.book(0, 0, 0, 0, kNoId, 0, 160, kNoId);
  const auto next = book.book(0, 1, 0, 0, kNoId, 160, 10, kNoId);
  book.start(run, 0);
  book.overdue(run, 160);
  EXPECT_EQ(book[next].start, 170);
  book.overdue(run, 165);  // not past its new end: nothing changes
  EXPECT_EQ(book[next].start, 170);
  book.overdue(run, 170);
  EXPECT_EQ(book[next].start, 180);
  book.overdue(run, 180);
  EXPECT_EQ(book[next].start, 200);
  book.finish(run, 187);
  EXPECT_EQ(book[next].start, 187);
}

TEST(ReservationBook, WithoutFeedbackReservationsStay) {
  ReservationBook book(1, true, false);
  const auto run = book.book(0, 0, 0, 0, kNoId, 0, 10, kNoId);
  const auto next = book.book(0, 1, 0, 0, kNoId, 10, 10, kNoId);
  book.start(run, 0);
  book.finish(run, 13);
  EXPECT_EQ(book[next].start, 10);
  EXPECT_TRUE(book.can_start(next));
}

TEST(ReservationBook, AClosedResourceIsNeverFree) {
  ReservationBook book(2);
  book.close(0);
  EXPECT_GE(book.earliest(0, 5, 1), kNever);
  EXPECT_GE(book.earliest_both(0, 1, 5, 1), kNever);
  EXPECT_GE(book.earliest_both(1, 0, 5, 1), kNever);
  book.open(0, 5);
  EXPECT_EQ(book.earliest(0, 5, 1), 5);
}

// Under random early, late and overdue ends, every resource keeps its order, bookings do not overlap, and no
// step is expected to begin before its predecessors end.
TEST(ReservationBook, CorrectionsKeepTheTablesConsistent) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random = random_stream(seed, 1);
    constexpr uint32_t kResources = 5;
    ReservationBook book(kResources);
    std::vector<BookingId> live;
    TimeNs now = 0;
    const auto check = [&] {
      for (const auto id : live) {
        const auto& b = book[id];
        for (const int side : {0, 1})
          if (b.prev[side] != kNoId) {
            ASSERT_GE(b.start, book[b.prev[side]].end);
            ASSERT_FALSE(b.running);
          }
        if (b.step_before != kNoId) {
          ASSERT_GE(b.start, book[b.step_before].end);
        }
      }
    };
    for (int i = 0; i < 200; ++i) {
      now += static_cast<TimeNs>(random.below(8));
      if (random.below(2)) {
        BookingId before = kNoId;
        TimeNs t = now;
        for (uint32_t s = 0; s < 3; ++s) {
          const auto length = static_cast<TimeNs>(1 + random.below(20));
          const auto a = static_cast<uint32_t>(random.below(kResources));
          const auto b = s == 1 ? (a + 1) % kResources : kNoId;
          const auto start = b == kNoId ? book.earliest(a, t, length) : book.earliest_both(a, b, t, length);
          before = book.book(now, static_cast<uint32_t>(i), s, a, b, start, length, before);
          live.push_back(before);
          t = start + length;
        }
      }
      for (const auto id : live)
        if (book.can_start(id)) book.start(id, now);
      for (size_t n = 0; n < live.size(); ++n) {
        if (!book[live[n]].running) continue;
        if (book[live[n]].end <= now && random.below(2)) {
          book.overdue(live[n], now);
        } else if (random.below(4) == 0) {
          book.finish(live[n], now);
          live.erase(live.begin() + static_cast<std::ptrdiff_t>(n--));
        }
      }
      for (const auto id : live)  // only overdue bookings may be expected in the past
        if (!book[id].running && book[id].prev[0] == kNoId && book[id].prev[1] == kNoId) {
          ASSERT_LE(book[id].start - now, 1 << 20);
        }
      check();
      if (HasFatalFailure()) return;
    }
    EXPECT_EQ(book.live(), live.size());
  }
}

}  // namespace
}  // namespace heddle
