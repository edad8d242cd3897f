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
  ResourceId resource[2] = {kNoId, kNoId};  // the second only where two are taken at once
  BookingId prev[2] = {kNoId, kNoId}, next[2] = {kNoId, kNoId};
  BookingId step_before = kNoId,
            step_after = kNoId;  // of the same batch; must be done before, waits for this
};
static_assert(sizeof(Booking) == 64);

class ReservationBook {
 public:
  // Without gaps a booking goes behind all others of its resources ("busy until").
  explicit ReservationBook(uint32_t resources, bool fill_gaps = true, bool feedback = true);

  // The earliest start >= t at which the resource is free for `length`; kNever or later when it is closed.
  // O(bookings of the resource); O(1) when no gap is long enough.
  TimeNs earliest(ResourceId r, TimeNs t, TimeNs length) const {
    const Room& room = room_[r];
    return room.may_have_gap(t, length) ? earliest_in_gaps(r, t, length) : std::max(t, room.tail);
  }
  // The same for two resources at once.
  TimeNs earliest_both(ResourceId a, ResourceId b, TimeNs t, TimeNs length) const;
  // When the last booking ends (none: some time that has passed).
  TimeNs tail(ResourceId r) const { return room_[r].tail; }
  // A time that earliest() does not come before. O(1).
  TimeNs not_before(ResourceId r, TimeNs t, TimeNs length) const {
    const Room& room = room_[r];
    return room.may_have_gap(t, length) ? t : std::max(t, room.tail);
  }

  // Books [start, start + length), which earliest() has found free. `after` is the batch's step before it, or
  // kNoId.
  BookingId book(TimeNs now, uint32_t batch, uint16_t step, ResourceId a, ResourceId b, TimeNs start,
                 TimeNs length, BookingId after);

  const Booking& operator[](BookingId id) const { return bookings_[id]; }
  BookingId head(ResourceId r) const { return head_[r]; }
  // Can it begin: first on its resources, the batch's step before it done, and not running yet?
  bool can_start(BookingId id) const {
    const Booking& b = bookings_[id];
    return !b.running && b.step_before == kNoId && b.prev[0] == kNoId && b.prev[1] == kNoId &&
           !closed_[b.resource[0]] && (b.resource[1] == kNoId || !closed_[b.resource[1]]);
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
  void finish(BookingId id, TimeNs now) { remove(id, now); }
  // Taken back, running or not. Steps after it must be cancelled by the caller, too.
  void cancel(BookingId id, TimeNs now) { remove(id, now); }

  // A closed resource is never free; its bookings stay until they are cancelled.
  void close(ResourceId r);
  void open(ResourceId r, TimeNs now);
  bool is_closed(ResourceId r) const { return closed_[r]; }

  uint32_t resources() const { return static_cast<uint32_t>(head_.size()); }
  uint32_t live() const { return bookings_.taken(); }

 private:
  TimeNs earliest_in_gaps(ResourceId r, TimeNs t, TimeNs length) const;
  void link(BookingId id, int side);
  void unlink(BookingId id, int side);
  void measure(ResourceId r, TimeNs now);
  void measure_booked(ResourceId r, BookingId id, int side, TimeNs now);
  void measure_done(ResourceId r, TimeNs now);
  void start_at(BookingId id, TimeNs now);
  void remove(BookingId id, TimeNs now);
  void touch(BookingId id);
  void touch_followers(BookingId id);
  void settle(TimeNs now);

  bool fill_gaps_, feedback_;
  Slots<Booking> bookings_;
  std::vector<BookingId> head_, last_;
  struct Room {
    TimeNs tail = 0;         // when the last booking ends; none: some time that has passed
    TimeNs widest_gap = -1;  // no gap between bookings is wider
    TimeNs gaps_end = 0;     // nor ends later
    bool may_have_gap(TimeNs t, TimeNs length) const {
      return widest_gap >= length && gaps_end - t >= length;
    }
  };
  std::vector<Room> room_;  // side by side, for probes look at both of many resources
  std::vector<char> closed_;
  struct Moved {
    TimeNs key;
    BookingId id;
  };
  std::vector<Moved> moved_;  // a heap, least key first
};

}  // namespace heddle
