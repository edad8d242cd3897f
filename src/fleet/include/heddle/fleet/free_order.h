// The resources of a group in the order in which they become free, to find the first without a scan. Free
// resources are bits. The others are a list sorted by the end of their last booking, then by number. A new
// booking mostly ends later than all others, which takes O(1); otherwise O(bookings that end later).
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "heddle/fleet/data_plane_time.h"

namespace heddle {

class FreeOrder {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  // All `count` resources start free.
  explicit FreeOrder(uint32_t count) : places_(count), free_((count + 63) / 64, 0) {
    for (uint32_t i = 0; i < count; ++i) set_free(i);
  }

  // Resource i has no booking.
  void set_free(uint32_t i) {
    unlink(i);
    free_[i >> 6] |= uint64_t{1} << (i & 63);
  }
  // The last booking of resource i ends at `until`.
  void set_booked(uint32_t i, TimeNs until) {
    unlink(i);
    free_[i >> 6] &= ~(uint64_t{1} << (i & 63));
    uint32_t before = last_, after = kNone;
    while (before != kNone &&
           (places_[before].until > until || (places_[before].until == until && before > i))) {
      after = before;
      before = places_[before].before;
    }
    places_[i] = {until, before, after, true};
    (before == kNone ? first_ : places_[before].after) = i;
    (after == kNone ? last_ : places_[after].before) = i;
  }
  // Resource i is neither free nor booked, e.g. closed.
  void leave(uint32_t i) {
    unlink(i);
    free_[i >> 6] &= ~(uint64_t{1} << (i & 63));
  }

  // The free resource with the smallest number; kNone if there is none.
  uint32_t first_free() const {
    for (uint32_t w = 0; w < free_.size(); ++w)
      if (free_[w] != 0) return w * 64 + static_cast<uint32_t>(std::countr_zero(free_[w]));
    return kNone;
  }
  // The booked resource whose booking ends first, and that end; kNone and kNever if there is none.
  uint32_t first_booked() const { return first_; }
  TimeNs first_until() const { return first_ == kNone ? kNever : places_[first_].until; }

 private:
  struct Place {
    TimeNs until = 0;
    uint32_t before = kNone, after = kNone;
    bool listed = false;
  };
  void unlink(uint32_t i) {
    Place& place = places_[i];
    if (!place.listed) return;
    place.listed = false;
    (place.before == kNone ? first_ : places_[place.before].after) = place.after;
    (place.after == kNone ? last_ : places_[place.after].before) = place.before;
  }

  std::vector<Place> places_;
  std::vector<uint64_t> free_;
  uint32_t first_ = kNone, last_ = kNone;
};

}  // namespace heddle
