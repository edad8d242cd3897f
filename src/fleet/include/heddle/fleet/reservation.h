// Reservation tables (PPipe, ATC'25, section 5.4 and Algorithm 2: earliestSlot and markReserved). Each
// resource (a virtual device, a server's uplink, a server's downlink) has a list of booked intervals, in
// order.
//
// A booking takes one or two resources at once. A resource serves its bookings in the order of the table,
// each as early as possible: after the bookings before it and after the batch's previous step. A new booking
// goes to the earliest free interval, possibly between two others, and never moves another booking. Measured
// times correct the table (section 5.4, "feedback correction"). Every booking that depends on a late or early
// one, through its resource or its batch, is moved. The order stays the same unless the caller calls pass().
//
// The class reads no clock and starts no thread: callers pass times in, which must not decrease.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "heddle/fleet/data_plane_time.h"
#include "heddle/fleet/free_order.h"
#include "heddle/fleet/slots.h"

namespace heddle {

using ResourceId = uint32_t;
using BookingId = uint32_t;
inline constexpr uint32_t kNoId = 0xffffffff;

// One cache line, because lookups read a few fields of many bookings.
struct alignas(64) Booking {
  TimeNs start = 0, end = 0;  // expected; measured once it runs
  TimeNs length = 0;          // the booked length, positive
  uint32_t batch = kNoId;     // the caller's batch number
  uint16_t step = 0;          // the caller's step number
  bool running = false;
  bool moved = false;                       // `start` may differ from the booked start
  ResourceId resource[2] = {kNoId, kNoId};  // the second only if two are taken at once
  BookingId prev[2] = {kNoId, kNoId}, next[2] = {kNoId, kNoId};
  BookingId step_before = kNoId,
            step_after = kNoId;  // steps of the same batch: must end before it / waits for it
};
static_assert(sizeof(Booking) == 64);

// A resource and when it would be free.
struct FreeSlot {
  ResourceId resource = kNoId;  // kNoId: there is none
  TimeNs start = kNever;
};

class ReservationBook {
 public:
  // With fill_gaps = false, a booking goes behind all others of its resources ("busy until").
  explicit ReservationBook(uint32_t resources, bool fill_gaps = true, bool feedback = true);

  // The earliest start >= t at which the resource is free for `length`; kNever or later if it is closed.
  // O(bookings of the resource); O(1) if no gap is long enough.
  TimeNs earliest(ResourceId r, TimeNs t, TimeNs length) const {
    const Resource& on = resources_[r];
    return on.gaps.may_hold(t, length) ? earliest_in_gaps(r, t, length) : std::max(t, on.tail);
  }
  // The same for two resources at once.
  TimeNs earliest_both(ResourceId a, ResourceId b, TimeNs t, TimeNs length) const;
  // The end of the last booking; if there is none, some time in the past.
  TimeNs tail(ResourceId r) const { return resources_[r].tail; }
  // A lower bound on earliest(). O(1).
  TimeNs not_before(ResourceId r, TimeNs t, TimeNs length) const {
    const Resource& on = resources_[r];
    return on.gaps.may_hold(t, length) ? t : std::max(t, on.tail);
  }

  // Makes `count` resources from `first` on a group for first_free(), before anything is booked. Groups must
  // be disjoint, and lengths passed to first_free() at least `least_length`.
  uint32_t add_group(ResourceId first, uint32_t count, TimeNs least_length);
  // The resource of the group with the smallest earliest(), the first on ties; none if no start is before
  // `limit` (at most kNever). O(1) if no gap is wide enough and every resource is free now or booked beyond
  // t; otherwise O(the group's resources), mostly one comparison each.
  FreeSlot first_free(uint32_t group, TimeNs t, TimeNs length, TimeNs limit) const;

  // Books [start, start + length), which earliest() has returned as free. `after` is the batch's previous
  // step, or kNoId.
  BookingId book(TimeNs now, uint32_t batch, uint16_t step, ResourceId a, ResourceId b, TimeNs start,
                 TimeNs length, BookingId after);

  const Booking& operator[](BookingId id) const { return bookings_[id]; }
  BookingId head(ResourceId r) const { return resources_[r].head; }
  // True if it is first on its open resources, its batch's previous step is done and it is not running.
  bool can_start(BookingId id) const {
    const Booking& b = bookings_[id];
    // kNoId has all bits set, so one AND tests three ids.
    const bool waits = (b.step_before & b.prev[0] & b.prev[1]) != kNoId;
    return !(waits | b.running) && !resources_[b.resource[0]].closed &&
           (b.resource[1] == kNoId || !resources_[b.resource[1]].closed);
  }

  void start(BookingId id, TimeNs now) {
    Booking& b = bookings_[id];
    b.running = true;
    if (b.start != now) start_at(id, now);
  }
  // Puts it first on its resources, which must not run anything; its batch's previous step must be done.
  void pass(BookingId id, TimeNs now);
  // A running booking is past its end: its expected end moves by overdue_extension().
  void overdue(BookingId id, TimeNs now);
  // The booking is done and removed; its id may be used again.
  void finish(BookingId id, TimeNs now);
  // Removes the booking, running or not. The caller must also cancel the batch's later steps.
  void cancel(BookingId id, TimeNs now) { remove(id, now); }

  // A closed resource is never free; its bookings stay until the caller cancels them.
  void close(ResourceId r);
  void open(ResourceId r, TimeNs now);
  bool is_closed(ResourceId r) const { return resources_[r].closed; }

  // True if every booking so far kept its booked times until it was done.
  bool undisturbed() const { return undisturbed_; }

  uint32_t resources() const { return static_cast<uint32_t>(resources_.size()); }
  uint32_t live() const { return bookings_.taken(); }

 private:
  struct Gaps {
    TimeNs widest = -1;  // upper bound on the width of the gaps between bookings
    TimeNs end = 0;      // upper bound on their ends
    bool may_hold(TimeNs t, TimeNs length) const { return (widest >= length) & (end - t >= length); }
  };
  // Kept side by side, since a lookup of one field reads most of the others.
  struct Resource {
    TimeNs tail = 0;  // end of the last booking; if there is none, some time in the past
    Gaps gaps;
    BookingId head = kNoId, last = kNoId;
    uint32_t group = kNoId;  // in groups_
    bool closed = false;
  };

  TimeNs earliest_in_gaps(ResourceId r, TimeNs t, TimeNs length) const;
  // The neighbours of a booking on one of its resources.
  BookingId& next_on(ResourceId r, BookingId id) {
    return bookings_[id].next[bookings_[id].resource[0] != r];
  }
  BookingId& prev_on(ResourceId r, BookingId id) {
    return bookings_[id].prev[bookings_[id].resource[0] != r];
  }
  void link(BookingId id, int side, TimeNs now);
  void link_between(BookingId id, int side);
  void unlink(BookingId id, int side);
  void measure(ResourceId r, TimeNs now);
  void measure_both(const Booking& b, TimeNs now);
  void has_moved(BookingId id, TimeNs now);
  void note(ResourceId r, const Resource& on);
  void finish_in_time(BookingId id);
  void finish_in_time(ResourceId r, BookingId next);
  void start_at(BookingId id, TimeNs now);
  void remove(BookingId id, TimeNs now);
  void touch(BookingId id);
  void touch_followers(BookingId id);
  void settle(TimeNs now);

  bool fill_gaps_, feedback_;
  bool undisturbed_ = true;
  Slots<Booking> bookings_;
  std::vector<Resource> resources_;
  struct Group {
    ResourceId first = 0, end = 0;
    TimeNs least_length = 0;
    TimeNs gaps_end = 0;  // no gap of that length ends later than this
    FreeOrder order;
  };
  std::vector<Group> groups_;
  struct Moved {
    TimeNs key;
    BookingId id;
  };
  std::vector<Moved> moved_;  // a heap, least key first
};

}  // namespace heddle
