#include "heddle/fleet/statistics.h"

#include <algorithm>
#include <cmath>

namespace heddle {

uint64_t DurationHistogram::last_of(size_t index) {
  if (index < (size_t{1} << kBits)) return index;
  const size_t shift = (index >> kBits) - 1;
  const uint64_t mantissa = (index & ((size_t{1} << kBits) - 1)) + (uint64_t{1} << kBits);
  return ((mantissa + 1) << shift) - 1;
}

void DurationHistogram::merge(const DurationHistogram& other) {
  if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size(), 0);
  for (size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

std::vector<std::pair<TimeNs, uint64_t>> DurationHistogram::coarse() const {
  constexpr size_t kUnited = size_t{1} << (kBits - 4);  // buckets
  std::vector<std::pair<TimeNs, uint64_t>> out;
  for (size_t from = 0; from < counts_.size(); from += kUnited) {
    uint64_t count = 0;
    for (size_t i = from; i < std::min(from + kUnited, counts_.size()); ++i) count += counts_[i];
    if (count > 0) out.emplace_back(static_cast<TimeNs>(last_of(from + kUnited - 1)), count);
  }
  return out;
}

TimeNs DurationHistogram::percentile(double q) const {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count_));
  const auto rank = std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, count_);
  uint64_t seen = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::min<TimeNs>(static_cast<TimeNs>(last_of(i)), max_);
  }
  return max_;
}

}  // namespace heddle
