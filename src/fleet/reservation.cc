#include "heddle/fleet/reservation.h"

#include <algorithm>
#include <cassert>

namespace heddle {

ReservationBook::ReservationBook(uint32_t resources, bool fill_gaps, bool feedback)
    : fill_gaps_(fill_gaps),
      feedback_(feedback),
      head_(resources, kNoId),
      last_(resources, kNoId),
      room_(resources),
      closed_(resources, 0) {}

TimeNs ReservationBook::earliest_in_gaps(ResourceId r, TimeNs t, TimeNs length) const {
  for (BookingId id = head_[r]; id != kNoId;) {
    const Booking& b = bookings_[id];
    if (b.start - t >= length) return t;
    t = std::max(t, b.end);
    id = b.next[b.resource[0] == r ? 0 : 1];
  }
  return t;
}

TimeNs ReservationBook::earliest_both(ResourceId a, ResourceId b, TimeNs t, TimeNs length) const {
  // Each turn moves past at least one booking, so there are at most as many turns as bookings. What was moved
  // past ends by t and is not looked at again.
  const ResourceId r[2] = {a, b};
  BookingId at[2] = {head_[a], head_[b]};
  for (int side = 0, agreed = 0; agreed < 2; side ^= 1) {
    const TimeNs from = t;
    if (!room_[r[side]].may_have_gap(t, length)) {
      t = std::max(t, room_[r[side]].tail);
    } else {
      BookingId id = at[side];
      while (id != kNoId) {
        const Booking& booked = bookings_[id];
        if (booked.start - t >= length) break;
        t = std::max(t, booked.end);
        id = booked.next[booked.resource[0] == r[side] ? 0 : 1];
      }
      at[side] = id;
    }
    if (t >= kNever) return t;
    agreed = t == from ? agreed + 1 : 1;
  }
  return t;
}

// Behind every booking that starts before it. Starts on a resource differ, since lengths are positive.
void ReservationBook::link(BookingId id, int side) {
  Booking& b = bookings_[id];
  const ResourceId r = b.resource[side];
  BookingId before = last_[r], after = kNoId;
  while (before != kNoId && bookings_[before].start >= b.start) {
    after = before;
    before = bookings_[before].prev[bookings_[before].resource[0] == r ? 0 : 1];
  }
  b.prev[side] = before;
  b.next[side] = after;
  if (before == kNoId) {
    head_[r] = id;
  } else {
    bookings_[before].next[bookings_[before].resource[0] == r ? 0 : 1] = id;
  }
  if (after == kNoId) {
    last_[r] = id;
  } else {
    bookings_[after].prev[bookings_[after].resource[0] == r ? 0 : 1] = id;
  }
}

void ReservationBook::unlink(BookingId id, int side) {
  const Booking& b = bookings_[id];
  const ResourceId r = b.resource[side];
  const BookingId before = b.prev[side], after = b.next[side];
  if (before == kNoId) {
    head_[r] = after;
  } else {
    bookings_[before].next[bookings_[before].resource[0] == r ? 0 : 1] = after;
  }
  if (after == kNoId) {
    last_[r] = before;
  } else {
    bookings_[after].prev[bookings_[after].resource[0] == r ? 0 : 1] = before;
  }
}

// Gaps only shrink as time passes, so what is measured now bounds them until a booking comes, goes or moves.
void ReservationBook::measure(ResourceId r, TimeNs now) {
  if (closed_[r]) return;
  const BookingId last = last_[r];
  Room room{.tail = last == kNoId ? 0 : bookings_[last].end};
  TimeNs t = now;
  if (fill_gaps_) {
    for (BookingId id = head_[r]; id != kNoId;) {
      const Booking& b = bookings_[id];
      if (b.start > t) {
        room.widest_gap = std::max(room.widest_gap, b.start - t);
        room.gaps_end = b.start;
      }
      t = std::max(t, b.end);
      id = b.next[b.resource[0] == r ? 0 : 1];
    }
  }
  room_[r] = room;
}

// Behind all others it adds the gap before it. Between two others it takes from theirs, and the bounds hold.
void ReservationBook::measure_booked(ResourceId r, BookingId id, int side, TimeNs now) {
  if (last_[r] != id) return;
  const Booking& b = bookings_[id];
  Room& room = room_[r];
  const TimeNs free = b.prev[side] == kNoId ? now : std::max(now, room.tail);
  if (fill_gaps_ && b.start > free) {
    // Gaps that lie in the past do not count any more.
    room.widest_gap = std::max(room.gaps_end > now ? room.widest_gap : -1, b.start - free);
    room.gaps_end = b.start;
  }
  room.tail = b.end;
}

// Its first booking ended when it was expected to: what is behind it is as before, and what lies in the past
// does not count.
void ReservationBook::measure_done(ResourceId r, TimeNs now) {
  if (head_[r] == kNoId) measure(r, now);
}

BookingId ReservationBook::book(TimeNs now, uint32_t batch, uint16_t step, ResourceId a, ResourceId b,
                                TimeNs start, TimeNs length, BookingId after) {
  assert(length > 0 && a != b && !closed_[a] && (b == kNoId || !closed_[b]));
  const BookingId id = bookings_.take();
  Booking& n = bookings_[id];
  n = Booking{};
  n.start = start;
  n.end = start + length;
  n.length = length;
  n.batch = batch;
  n.step = step;
  n.resource[0] = a;
  n.resource[1] = b;
  n.step_before = after;
  if (after != kNoId) bookings_[after].step_after = id;
  link(id, 0);
  measure_booked(a, id, 0, now);
  if (b != kNoId) {
    link(id, 1);
    measure_booked(b, id, 1, now);
  }
  return id;
}

void ReservationBook::touch(BookingId id) {
  if (id == kNoId || bookings_[id].running) return;
  moved_.push_back({bookings_[id].start, id});
  std::push_heap(moved_.begin(), moved_.end(),
                 [](const Moved& x, const Moved& y) { return x.key != y.key ? x.key > y.key : x.id > y.id; });
}

void ReservationBook::touch_followers(BookingId id) {
  const Booking& b = bookings_[id];
  touch(b.next[0]);
  if (b.resource[1] != kNoId) touch(b.next[1]);
  touch(b.step_after);
}

// Moves bookings to where those before them now end. What precedes a booking started before it, so that in
// the order of the old starts each is moved once.
void ReservationBook::settle(TimeNs now) {
  while (!moved_.empty()) {
    std::pop_heap(moved_.begin(), moved_.end(), [](const Moved& x, const Moved& y) {
      return x.key != y.key ? x.key > y.key : x.id > y.id;
    });
    const BookingId id = moved_.back().id;
    moved_.pop_back();
    Booking& b = bookings_[id];
    TimeNs start = now;
    if (b.step_before != kNoId) start = std::max(start, bookings_[b.step_before].end);
    for (const int side : {0, 1})
      if (b.prev[side] != kNoId) start = std::max(start, bookings_[b.prev[side]].end);
    if (start == b.start) continue;
    b.start = start;
    b.end = start + b.length;
    touch_followers(id);
    measure(b.resource[0], now);
    if (b.resource[1] != kNoId) measure(b.resource[1], now);
  }
}

// What has nothing before it, in its batch or on its resources, can depend on nothing behind it.
void ReservationBook::pass(BookingId id, TimeNs now) {
  Booking& b = bookings_[id];
  assert(!b.running && b.step_before == kNoId);
  for (const int side : {0, 1}) {
    const ResourceId r = b.resource[side];
    if (r == kNoId || b.prev[side] == kNoId) continue;
    touch(b.next[side]);
    unlink(id, side);
    const BookingId head = head_[r];
    b.prev[side] = kNoId;
    b.next[side] = head;
    bookings_[head].prev[bookings_[head].resource[0] == r ? 0 : 1] = id;
    head_[r] = id;
  }
  b.start = now;
  b.end = now + b.length;
  touch_followers(id);
  measure(b.resource[0], now);
  if (b.resource[1] != kNoId) measure(b.resource[1], now);
  settle(now);
}

void ReservationBook::start_at(BookingId id, TimeNs now) {
  Booking& b = bookings_[id];
  if (!feedback_) {
    // Only so much is known that nothing can be put before it.
    b.start = std::min(b.start, now);
    measure(b.resource[0], now);
    if (b.resource[1] != kNoId) measure(b.resource[1], now);
    return;
  }
  b.start = now;
  b.end = now + b.length;
  touch_followers(id);
  measure(b.resource[0], now);
  if (b.resource[1] != kNoId) measure(b.resource[1], now);
  settle(now);
}

void ReservationBook::overdue(BookingId id, TimeNs now) {
  Booking& b = bookings_[id];
  if (!feedback_ || !b.running || b.end > now) return;
  b.end = now + overdue_extension(now - b.start, b.length);
  touch_followers(id);
  measure(b.resource[0], now);
  if (b.resource[1] != kNoId) measure(b.resource[1], now);
  settle(now);
}

void ReservationBook::remove(BookingId id, TimeNs now) {
  const Booking gone = bookings_[id];
  const bool as_expected =
      gone.running && gone.end == now;  // a running booking is the first of its resources
  unlink(id, 0);
  if (gone.resource[1] != kNoId) unlink(id, 1);
  if (gone.step_before != kNoId) bookings_[gone.step_before].step_after = kNoId;
  if (gone.step_after != kNoId) bookings_[gone.step_after].step_before = kNoId;
  bookings_.give_back(id);
  if (feedback_ && gone.end != now) {
    touch(gone.next[0]);
    if (gone.resource[1] != kNoId) touch(gone.next[1]);
    touch(gone.step_after);
  }
  if (as_expected) {
    measure_done(gone.resource[0], now);
    if (gone.resource[1] != kNoId) measure_done(gone.resource[1], now);
  } else {
    measure(gone.resource[0], now);
    if (gone.resource[1] != kNoId) measure(gone.resource[1], now);
  }
  settle(now);
}

void ReservationBook::close(ResourceId r) {
  closed_[r] = 1;
  room_[r] = {.tail = kNever};
}

void ReservationBook::open(ResourceId r, TimeNs now) {
  closed_[r] = 0;
  measure(r, now);
}

}  // namespace heddle
