// A histogram of durations: constant memory, any number of values, percentiles within 1/256 of the value.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "heddle/fleet/data_plane_time.h"

namespace heddle {

class DurationHistogram {
 public:
  // Negative values count as 0.
  void add(TimeNs value) {
    if (value < 0) value = 0;
    const size_t i = index_of(static_cast<uint64_t>(value));
    if (i >= counts_.size()) counts_.resize(i + 1, 0);
    ++counts_[i];
    ++count_;
    sum_ += static_cast<double>(value);
    if (value > max_) max_ = value;
  }
  void merge(const DurationHistogram& other);

  uint64_t count() const { return count_; }
  TimeNs max() const { return max_; }
  double mean_ns() const { return count_ ? sum_ / static_cast<double>(count_) : 0; }
  // The smallest value that at least a share q of all values do not exceed, rounded up to its bucket's end; 0
  // if empty.
  TimeNs percentile(double q) const;
  // Ranges that hold values: the greatest value of each, and how many it holds. Ranges are 1/16 of a power of two
  // wide, so that the differences between two times give the percentiles of what came between, to 6 %.
  std::vector<std::pair<TimeNs, uint64_t>> coarse() const;

 private:
  // A bucket below 2^kBits holds one value; above, each power of two has 2^kBits buckets.
  static constexpr int kBits = 8;
  static size_t index_of(uint64_t v) {
    if (v < (1u << kBits)) return static_cast<size_t>(v);
    const int shift = 63 - std::countl_zero(v) - kBits;
    return (static_cast<size_t>(shift + 1) << kBits) + static_cast<size_t>((v >> shift) - (1u << kBits));
  }
  static uint64_t last_of(size_t index);

  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  double sum_ = 0;
  TimeNs max_ = 0;
};

}  // namespace heddle
