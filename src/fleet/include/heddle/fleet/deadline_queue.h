// Requests ordered by priority, then deadline, then arrival. push() takes amortised O(1) if requests arrive
// in this order, otherwise O(requests that the new one overtakes).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "heddle/fleet/data_plane_time.h"

namespace heddle {

class DeadlineQueue {
 public:
  struct Entry {
    TimeNs deadline = 0;
    uint32_t request = 0;
    bool examined = false;  // a decision has already considered it as the first of the queue
    uint16_t priority = 0;  // the smallest is served first
  };

  bool empty() const { return first_ == entries_.size(); }
  size_t size() const { return entries_.size() - first_; }
  Entry& front() { return entries_[first_]; }
  const Entry& front() const { return entries_[first_]; }
  const Entry& operator[](size_t i) const { return entries_[first_ + i]; }
  // True if the queue holds several priorities; then the first request need not be due first.
  bool mixed() const { return !empty() && front().priority != entries_.back().priority; }
  // The earliest deadline of the first `count` requests; count >= 1. O(count) if their priorities differ.
  TimeNs earliest(size_t count) const {
    TimeNs least = front().deadline;
    if (front().priority != entries_[first_ + count - 1].priority)
      for (size_t i = 1; i < count; ++i) least = std::min(least, entries_[first_ + i].deadline);
    return least;
  }

  void push(Entry entry) {
    entries_.push_back(entry);
    for (size_t i = entries_.size() - 1; i > first_ && comes_before(entry, entries_[i - 1]); --i)
      std::swap(entries_[i - 1], entries_[i]);
  }
  // Removes the requests with a deadline before `at` and passes each to `each`. With mixed priorities,
  // expired requests would otherwise wait behind the requests that are served before them. O(size).
  template <class Each>
  void expire(TimeNs at, const Each& each) {
    size_t kept = first_;
    for (size_t i = first_; i < entries_.size(); ++i) {
      if (entries_[i].deadline < at)
        each(entries_[i]);
      else
        entries_[kept++] = entries_[i];
    }
    entries_.resize(kept);
    if (empty()) clear();
  }
  void pop() {
    if (++first_ == entries_.size()) {
      entries_.clear();
      first_ = 0;
    } else if (first_ >= 64 && first_ * 2 >= entries_.size()) {
      entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
  }
  void clear() {
    entries_.clear();
    first_ = 0;
  }

 private:
  static bool comes_before(const Entry& a, const Entry& b) {
    return a.priority != b.priority ? a.priority < b.priority : a.deadline < b.deadline;
  }

  std::vector<Entry> entries_;
  size_t first_ = 0;
};

}  // namespace heddle
