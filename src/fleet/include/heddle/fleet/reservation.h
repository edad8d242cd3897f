// Reservation tables: for each resource (a virtual device, a server's uplink, a server's downlink) the
// intervals that it is booked for, in order (PPipe, ATC'25, section 5.4 and Algorithm 2: earliestSlot and
// markReserved).
//
// A booking takes one or two resources at once. A resource serves its bookings in the order of the table,
// each as soon as it can: when its bookings before it are done and the batch's step before it is done. A new
// booking goes to the earliest slot, also one between two others, but never moves another booking. Measured
// times correct the table (section 5.4, "feedback correction"): every booking that depends on a late or early
// one, through its resource or through its batch, is moved, and its order kept unless the caller lets one
// pass.
//
// No clock and no thread inside: times are passed in and must not go back.
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

// One cache line: a booking is looked at for a field or two, among many others.
struct alignas(64) Booking {
  TimeNs start = 0, end = 0;  // believed, or measured once it runs
  TimeNs length = 0;          // that it was booked for, positive
  uint32_t batch = kNoId;     // the caller's
  uint16_t step = 0;          // the caller's
  bool running = false;
  bool moved = false;                       // since it was booked: `start` may not be what it was booked for
  ResourceId resource[2] = {kNoId, kNoId};  // the second only where two are taken at once
  BookingId prev[2] = {kNoId, kNoId}, next[2] = {kNoId, kNoId};
  BookingId step_before = kNoId,
            step_after = kNoId;  // of the same batch; must be done before, waits for this
};
static_assert(sizeof(Booking) == 64);

// A resource and when it would be free.
struct FreeSlot {
  ResourceId resource = kNoId;  // kNoId: there is none
  TimeNs start = kNever;
};

class ReservationBook {
 public:
  // Without gaps a booking goes behind all others of its resources ("busy until").
  explicit ReservationBook(uint32_t resources, bool fill_gaps = true, bool feedback = true);

  // The earliest start >= t at which the resource is free for `length`; kNever or later when it is closed.
  // O(bookings of the resource); O(1) when no gap is long enough.
  TimeNs earliest(ResourceId r, TimeNs t, TimeNs length) const {
    const Resource& on = resources_[r];
    return on.gaps.may_hold(t, length) ? earliest_in_gaps(r, t, length) : std::max(t, on.tail);
  }
  // The same for two resources at once.
  TimeNs earliest_both(ResourceId a, ResourceId b, TimeNs t, TimeNs length) const;
  // When the last booking ends (none: some time that has passed).
  TimeNs tail(ResourceId r) const { return resources_[r].tail; }
  // A time that earliest() does not come before. O(1).
  TimeNs not_before(ResourceId r, TimeNs t, TimeNs length) const {
    const Resource& on = resources_[r];
    return on.gaps.may_hold(t, length) ? t : std::max(t, on.tail);
  }

  // Resources that first_free() asks for together, `count` from `first` on, each in one group at most, before
  // anything is booked. Only what takes at least `least_length` is asked for.
  uint32_t add_group(ResourceId first, uint32_t count, TimeNs least_length);
  // Of the group the resource that earliest() gives the earliest start for, the first such on ties; none
  // where no start is before `limit`, at most kNever. O(1) where no gap is wide enough and each is either
  // free now or booked behind t, else O(the group's resources), mostly a look at one number each.
  FreeSlot first_free(uint32_t group, TimeNs t, TimeNs length, TimeNs limit) const;

  // Books [start, start + length), which earliest() has found free. `after` is the batch's step before it, or
  // kNoId.
  BookingId book(TimeNs now, uint32_t batch, uint16_t step, ResourceId a, ResourceId b, TimeNs start,
                 TimeNs length, BookingId after);

  const Booking& operator[](BookingId id) const { return bookings_[id]; }
  BookingId head(ResourceId r) const { return resources_[r].head; }
  // Can it begin: first on its resources, the batch's step before it done, and not running yet?
  bool can_start(BookingId id) const {
    const Booking& b = bookings_[id];
    // All bits of kNoId are set.
    const bool waits = (b.step_before & b.prev[0] & b.prev[1]) != kNoId;
    return !(waits | b.running) && !resources_[b.resource[0]].closed &&
           (b.resource[1] == kNoId || !resources_[b.resource[1]].closed);
  }

  void start(BookingId id, TimeNs now) {
    Booking& b = bookings_[id];
    b.running = true;
    if (b.start != now) start_at(id, now);
  }
  // Puts it first on its resources, none of which may be running; its batch's step before it must be done.
  void pass(BookingId id, TimeNs now);
  // Running and past its end: it is now expected to take overdue_extension() longer.
  void overdue(BookingId id, TimeNs now);
  // Done: the booking is gone, and its id may be used again.
  void finish(BookingId id, TimeNs now);
  // Taken back, running or not. Steps after it must be cancelled by the caller, too.
  void cancel(BookingId id, TimeNs now) { remove(id, now); }

  // A closed resource is never free; its bookings stay until they are cancelled.
  void close(ResourceId r);
  void open(ResourceId r, TimeNs now);
  bool is_closed(ResourceId r) const { return resources_[r].closed; }

  // Whether every booking so far stood where it was booked until it was done.
  bool undisturbed() const { return undisturbed_; }

  uint32_t resources() const { return static_cast<uint32_t>(resources_.size()); }
  uint32_t live() const { return bookings_.taken(); }

 private:
  struct Gaps {
    TimeNs widest = -1;  // no gap between bookings is wider
    TimeNs end = 0;      // nor ends later
    bool may_hold(TimeNs t, TimeNs length) const { return (widest >= length) & (end - t >= length); }
  };
  // Side by side, for what looks at one looks at most of it.
  struct Resource {
    TimeNs tail = 0;  // when the last booking ends; none: some time that has passed
    Gaps gaps;
    BookingId head = kNoId, last = kNoId;
    uint32_t group = kNoId;  // in groups_
    bool closed = false;
  };

  TimeNs earliest_in_gaps(ResourceId r, TimeNs t, TimeNs length) const;
  // The booking behind it, and before it, on one of its resources.
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
    TimeNs gaps_end = 0;  // no gap of that length ends later
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
