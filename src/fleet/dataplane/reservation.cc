#include "heddle/fleet/reservation.h"

#include <algorithm>
#include <cassert>

namespace heddle {

ReservationBook::ReservationBook(uint32_t resources, bool fill_gaps, bool feedback)
    : fill_gaps_(fill_gaps), feedback_(feedback), resources_(resources) {}

uint32_t ReservationBook::add_group(ResourceId first, uint32_t count, TimeNs least_length) {
  const auto group = static_cast<uint32_t>(groups_.size());
  groups_.push_back(
      {.first = first, .end = first + count, .least_length = least_length, .order = FreeOrder(count)});
  for (uint32_t i = 0; i < count; ++i) resources_[first + i].group = group;
  return group;
}

FreeSlot ReservationBook::first_free(uint32_t group, TimeNs t, TimeNs length, TimeNs limit) const {
  const Group& g = groups_[group];
  if (g.gaps_end - t >= length) {
    FreeSlot found{kNoId, limit};
    for (ResourceId r = g.first; r < g.end; ++r) {
      const TimeNs start = earliest(r, t, length);
      if (start >= found.start) continue;
      found = {r, start};
      if (start == t) break;  // none can be earlier
    }
    return found;
  }
  // No gap is wide enough, so only the tails matter.
  const TimeNs until = g.order.first_until();
  if (until > t) {
    const uint32_t free = g.order.first_free();
    if (free != FreeOrder::kNone) return t < limit ? FreeSlot{g.first + free, t} : FreeSlot{kNoId, limit};
    return until < limit ? FreeSlot{g.first + g.order.first_booked(), until} : FreeSlot{kNoId, limit};
  }
  if (t >= limit) return {kNoId, limit};
  ResourceId r = g.first;
  while (resources_[r].tail > t) ++r;  // exists, as the last tail is at most t
  return {r, t};
}

// Searches from the last booking backwards, since most requests begin after most bookings.
TimeNs ReservationBook::earliest_in_gaps(ResourceId r, TimeNs t, TimeNs length) const {
  BookingId id = resources_[r].last;
  TimeNs end = id == kNoId ? t : bookings_[id].end;
  TimeNs found = std::max(t, end);
  while (id != kNoId && end > t) {
    const Booking& b = bookings_[id];
    id = b.prev[b.resource[0] != r];
    end = id == kNoId ? t : bookings_[id].end;
    const TimeNs free = std::max(t, end);
    if (b.start - free >= length) found = free;
  }
  return found;
}

TimeNs ReservationBook::earliest_both(ResourceId a, ResourceId b, TimeNs t, TimeNs length) const {
  // Each step moves past at least one booking, so there are at most as many steps as bookings.
  const ResourceId r[2] = {a, b};
  for (int side = 0, agreed = 0; agreed < 2; side ^= 1) {
    const TimeNs from = t;
    t = earliest(r[side], t, length);
    if (t >= kNever) return t;
    agreed = t == from ? agreed + 1 : 1;
  }
  return t;
}

// Inserts the booking behind all that start earlier. Positive lengths make starts on a resource distinct.
void ReservationBook::link(BookingId id, int side, TimeNs now) {
  Booking& b = bookings_[id];
  const ResourceId r = b.resource[side];
  Resource& on = resources_[r];
  const BookingId last = on.last;
  if (last != kNoId && bookings_[last].start >= b.start) return link_between(id, side);
  b.prev[side] = last;
  (last == kNoId ? on.head : next_on(r, last)) = id;
  on.last = id;
  // Only the gap before it is new; gaps in the past no longer count.
  const TimeNs free = last == kNoId ? now : std::max(now, on.tail);
  const bool gap = fill_gaps_ & (b.start > free);
  const TimeNs widest = std::max(on.gaps.end > now ? on.gaps.widest : -1, b.start - free);
  on.gaps.widest = gap ? widest : on.gaps.widest;
  on.gaps.end = gap ? b.start : on.gaps.end;
  on.tail = b.end;
  note(r, on);
}

// Inserts it before the last booking. It only shrinks gaps, so the bounds on them still hold.
void ReservationBook::link_between(BookingId id, int side) {
  Booking& b = bookings_[id];
  const ResourceId r = b.resource[side];
  BookingId after = resources_[r].last, before = prev_on(r, after);
  while (before != kNoId && bookings_[before].start >= b.start) {
    after = before;
    before = prev_on(r, before);
  }
  b.prev[side] = before;
  b.next[side] = after;
  (before == kNoId ? resources_[r].head : next_on(r, before)) = id;
  prev_on(r, after) = id;
}

void ReservationBook::unlink(BookingId id, int side) {
  const Booking& b = bookings_[id];
  const ResourceId r = b.resource[side];
  const BookingId before = b.prev[side], after = b.next[side];
  (before == kNoId ? resources_[r].head : next_on(r, before)) = after;
  (after == kNoId ? resources_[r].last : prev_on(r, after)) = before;
}

// Recomputes tail and gap bounds. Gaps shrink with time: bounds hold until a booking comes, goes or moves.
void ReservationBook::measure(ResourceId r, TimeNs now) {
  Resource& on = resources_[r];
  if (on.closed) return;
  on.tail = on.last == kNoId ? 0 : bookings_[on.last].end;
  on.gaps = {};
  TimeNs t = now;
  if (fill_gaps_) {
    for (BookingId id = on.head; id != kNoId;) {
      const Booking& b = bookings_[id];
      if (b.start > t) {
        on.gaps.widest = std::max(on.gaps.widest, b.start - t);
        on.gaps.end = b.start;
      }
      t = std::max(t, b.end);
      id = b.next[b.resource[0] != r];
    }
  }
  note(r, on);
}

// Updates the resource's group after its tail or gaps have changed.
void ReservationBook::note(ResourceId r, const Resource& on) {
  if (on.group == kNoId) return;
  Group& group = groups_[on.group];
  if (on.last == kNoId) {
    group.order.set_free(r - group.first);
    return;
  }
  group.order.set_booked(r - group.first, on.tail);
  if (on.gaps.widest >= group.least_length) group.gaps_end = std::max(group.gaps_end, on.gaps.end);
}

BookingId ReservationBook::book(TimeNs now, uint32_t batch, uint16_t step, ResourceId a, ResourceId b,
                                TimeNs start, TimeNs length, BookingId after) {
  assert(length > 0 && a != b && !resources_[a].closed && (b == kNoId || !resources_[b].closed));
  const BookingId id = bookings_.take();
  bookings_[id] = {.start = start,
                   .end = start + length,
                   .length = length,
                   .batch = batch,
                   .step = step,
                   .resource = {a, b},
                   .step_before = after};
  if (after != kNoId) bookings_[after].step_after = id;
  link(id, 0, now);
  if (b != kNoId) link(id, 1, now);
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

// Moves bookings to where their predecessors now end. A predecessor started earlier, so in the order of the
// old starts each booking moves once.
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
    b.moved = true;
    undisturbed_ = false;
    b.start = start;
    b.end = start + b.length;
    touch_followers(id);
    measure_both(b, now);
  }
}

void ReservationBook::measure_both(const Booking& b, TimeNs now) {
  measure(b.resource[0], now);
  if (b.resource[1] != kNoId) measure(b.resource[1], now);
}

// Lets all bookings that depend on this one follow its new times.
void ReservationBook::has_moved(BookingId id, TimeNs now) {
  undisturbed_ = false;
  touch_followers(id);
  measure_both(bookings_[id], now);
  settle(now);
}

// No cycle can arise: the booking's previous step is done, so it depends on nothing that it passes.
void ReservationBook::pass(BookingId id, TimeNs now) {
  Booking& b = bookings_[id];
  assert(!b.running && b.step_before == kNoId);
  for (const int side : {0, 1}) {
    const ResourceId r = b.resource[side];
    if (r == kNoId || b.prev[side] == kNoId) continue;
    touch(b.next[side]);
    unlink(id, side);
    const BookingId head = resources_[r].head;
    b.prev[side] = kNoId;
    b.next[side] = head;
    prev_on(r, head) = id;
    resources_[r].head = id;
  }
  b.moved = true;
  b.start = now;
  b.end = now + b.length;
  has_moved(id, now);
}

void ReservationBook::start_at(BookingId id, TimeNs now) {
  Booking& b = bookings_[id];
  if (!feedback_) {
    // Without feedback the end stays. An earlier start closes the gap before the booking.
    b.moved = true;
    undisturbed_ = false;
    b.start = std::min(b.start, now);
    measure_both(b, now);
    return;
  }
  b.moved = true;
  b.start = now;
  b.end = now + b.length;
  has_moved(id, now);
}

void ReservationBook::overdue(BookingId id, TimeNs now) {
  Booking& b = bookings_[id];
  if (!feedback_ || !b.running || b.end > now) return;
  b.end = now + overdue_extension(now - b.start, b.length);
  has_moved(id, now);
}

void ReservationBook::finish(BookingId id, TimeNs now) {
  const Booking& b = bookings_[id];
  if (b.running && b.end == now) {
    finish_in_time(id);
  } else {
    remove(id, now);
  }
}

// Fast path: a running booking is the first on its resources. It ends when expected, so the bookings behind
// it keep their times, and the gap that it leaves lies in the past.
void ReservationBook::finish_in_time(BookingId id) {
  const Booking& b = bookings_[id];
  assert(b.prev[0] == kNoId && b.prev[1] == kNoId && b.step_before == kNoId);
  finish_in_time(b.resource[0], b.next[0]);
  if (b.resource[1] != kNoId) finish_in_time(b.resource[1], b.next[1]);
  if (b.step_after != kNoId) bookings_[b.step_after].step_before = kNoId;
  bookings_.give_back(id);
}

void ReservationBook::finish_in_time(ResourceId r, BookingId next) {
  Resource& on = resources_[r];
  on.head = next;
  if (next != kNoId) {
    prev_on(r, next) = kNoId;
    return;
  }
  on.last = kNoId;
  if (on.closed) return;
  on.tail = 0;
  on.gaps = {};
  note(r, on);
}

void ReservationBook::remove(BookingId id, TimeNs now) {
  const Booking gone = bookings_[id];
  undisturbed_ = false;
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
  measure_both(gone, now);
  settle(now);
}

void ReservationBook::close(ResourceId r) {
  Resource& on = resources_[r];
  on.closed = true;
  on.tail = kNever;
  on.gaps = {};
  if (on.group != kNoId) groups_[on.group].order.leave(r - groups_[on.group].first);
}

void ReservationBook::open(ResourceId r, TimeNs now) {
  resources_[r].closed = false;
  measure(r, now);
}

}  // namespace heddle
