// Future events, earliest first. Events of the same time are popped in the order of their insertion, so a
// simulation does not depend on the queue's layout.
//
// A calendar queue (R. Brown, Communications of the ACM 31(10), 1988): a ring of buckets of equal width, each
// a sorted list, with one bit per bucket that says if it is occupied. Events beyond the ring's end wait in a
// heap. Width and number of the buckets follow the number of events and how far ahead they are inserted, so
// that a bucket holds about one. O(1) per event in the ring; O(log n) for events beyond its end; O(events of
// the bucket) if many different times fall into one bucket.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "heddle/fleet/data_plane_time.h"
#include "heddle/fleet/slots.h"

namespace heddle {

template <class Payload>
class EventQueue {
 public:
  struct Event {
    TimeNs at = 0;
    Payload payload;
  };

  EventQueue() { lay_out(kFewestBits, kFirstShift); }

  bool empty() const { return in_ring_ == 0 && far_.empty(); }
  TimeNs next_at() const { return nodes_[in_ring_ > 0 ? ring_[first_ & mask_].head : far_.front()].at; }
  // Takes any time, even one before the last popped event.
  void push(TimeNs at, Payload payload) {
    if (empty()) base_ = std::min(base_, at >> shift_);  // no bucket is in use, so the ring may start earlier
    const uint32_t id = nodes_.take();
    Node& node = nodes_[id];
    node.at = at;
    node.order = next_order_++;
    node.payload = payload;
    lead_bits_ += static_cast<uint64_t>(std::bit_width(static_cast<uint64_t>(at > last_ ? at - last_ : 0)));
    if (++pushes_ == kPushesBetweenChecks) check_layout();
    put(id);
  }
  Event pop() {
    if (in_ring_ == 0) turn_to(bucket_of(nodes_[far_.front()].at));
    const int64_t here = first_;
    Bucket& bucket = ring_[here & mask_];
    const uint32_t id = bucket.head;
    const Node& node = nodes_[id];
    const Event event{node.at, node.payload};
    bucket.head = node.next;
    const bool last_of_bucket = bucket.head == kNone;
    if (last_of_bucket) occupied_[(here & mask_) >> 6] &= ~(uint64_t{1} << (here & 63));
    nodes_.give_back(id);
    --in_ring_;
    last_ = event.at;
    if (here != base_) turn_to(here);
    if (last_of_bucket && in_ring_ > 0) find_first();
    return event;
  }

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  static constexpr int kFewestBits = 10, kMostBits = 18;  // log2 of the number of buckets
  static constexpr int kFirstShift = 17;                  // 2^17 ns = .13 ms, until check_layout()
  static constexpr uint32_t kPushesBetweenChecks = 4096;
  struct Node {
    TimeNs at = 0;
    uint64_t order = 0;
    Payload payload;
    uint32_t next = kNone;
  };
  struct Bucket {
    uint32_t head = kNone, tail = kNone;  // `tail` is valid only if there is a head
  };

  int64_t bucket_of(TimeNs at) const { return std::max<int64_t>(base_, at >> shift_); }
  bool before(uint32_t a, uint32_t b) const {
    const Node &x = nodes_[a], &y = nodes_[b];
    return x.at != y.at ? x.at < y.at : x.order < y.order;
  }
  auto later() const {
    return [this](uint32_t a, uint32_t b) { return before(b, a); };
  }

  void put(uint32_t id) {
    const int64_t b = bucket_of(nodes_[id].at);
    if (b - base_ > mask_) {
      far_.push_back(id);
      std::push_heap(far_.begin(), far_.end(), later());
      return;
    }
    Bucket& bucket = ring_[b & mask_];
    const bool none = bucket.head == kNone;
    if (none || before(bucket.tail, id)) {
      nodes_[id].next = kNone;
      (none ? bucket.head : nodes_[bucket.tail].next) = id;
      bucket.tail = id;
      occupied_[(b & mask_) >> 6] |= uint64_t{1} << (b & 63);
    } else {
      uint32_t* link = &bucket.head;
      while (before(*link, id)) link = &nodes_[*link].next;
      nodes_[id].next = *link;
      *link = id;
    }
    if (in_ring_++ == 0 || b < first_) first_ = b;
  }

  // Lets the ring begin at this bucket, before which none is used. Events that it now covers leave the heap.
  void turn_to(int64_t bucket) {
    base_ = bucket;
    while (!far_.empty() && (nodes_[far_.front()].at >> shift_) - base_ <= mask_) {
      std::pop_heap(far_.begin(), far_.end(), later());
      const uint32_t id = far_.back();
      far_.pop_back();
      put(id);
    }
  }

  // Moves first_ to the first occupied bucket at or after it.
  void find_first() {
    const auto words = static_cast<uint32_t>(occupied_.size());
    const auto at = static_cast<uint32_t>(first_ & mask_);
    uint32_t w = at >> 6;
    uint64_t bits = occupied_[w] & (~uint64_t{0} << (at & 63));
    while (bits == 0) {
      w = (w + 1) & (words - 1);
      bits = occupied_[w];
    }
    const int64_t found = (int64_t{w} << 6) + std::countr_zero(bits);
    first_ += (found - at) & mask_;
  }

  void check_layout() {
    const int bits =
        std::clamp(static_cast<int>(std::bit_width(uint64_t{nodes_.taken()})), kFewestBits, kMostBits);
    // The ring covers sixteen times the (geometric) mean lead time of an event. Most runs take longer than
    // that mean, and an event beyond the ring costs more than empty buckets do.
    const int shift = std::max(0, static_cast<int>(lead_bits_ / pushes_) + 4 - bits);
    lead_bits_ = pushes_ = 0;
    const int now_bits = std::bit_width(static_cast<uint64_t>(mask_));
    if (bits == now_bits && shift >= shift_ - 1 && shift <= shift_ + 1) return;
    std::vector<uint32_t> all = std::move(far_);
    far_.clear();
    for (const Bucket& bucket : ring_)
      for (uint32_t id = bucket.head; id != kNone; id = nodes_[id].next) all.push_back(id);
    std::sort(all.begin(), all.end(), [this](uint32_t a, uint32_t b) { return before(a, b); });
    lay_out(bits, shift);
    for (const uint32_t id : all) put(id);
  }

  void lay_out(int bits, int shift) {
    shift_ = shift;
    mask_ = (int64_t{1} << bits) - 1;
    ring_.assign(size_t{1} << bits, {});
    occupied_.assign((size_t{1} << bits) / 64, 0);
    in_ring_ = 0;
    base_ = first_ = last_ >> shift;
  }

  Slots<Node> nodes_;
  std::vector<Bucket> ring_;
  std::vector<uint64_t> occupied_;  // one bit per bucket
  std::vector<uint32_t> far_;       // a min-heap: the earliest is at the front
  int64_t base_ = 0;                // the ring holds the buckets base_ .. base_ + mask_
  int64_t first_ = 0;               // the first occupied bucket, if there is one
  int64_t mask_ = 0;
  size_t in_ring_ = 0;
  int shift_ = 0;
  TimeNs last_ = 0;  // time of the last popped event
  uint64_t next_order_ = 0;
  uint64_t lead_bits_ = 0;
  uint32_t pushes_ = 0;
};

}  // namespace heddle
