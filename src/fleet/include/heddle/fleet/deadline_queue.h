// Requests in the order of their deadlines; those of one deadline in the order of arrival. Amortised O(1)
// where deadlines arrive in order, O(requests behind it) where a request overtakes.
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
    bool examined = false;  // a decision has looked at it as the first of the queue
  };

  bool empty() const { return first_ == entries_.size(); }
  size_t size() const { return entries_.size() - first_; }
  Entry& front() { return entries_[first_]; }
  const Entry& front() const { return entries_[first_]; }
  const Entry& operator[](size_t i) const { return entries_[first_ + i]; }

  void push(Entry entry) {
    entries_.push_back(entry);
    for (size_t i = entries_.size() - 1; i > first_ && entries_[i - 1].deadline > entry.deadline; --i)
      std::swap(entries_[i - 1], entries_[i]);
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
  std::vector<Entry> entries_;
  size_t first_ = 0;
};

}  // namespace heddle
