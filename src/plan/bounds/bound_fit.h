// Energetic reasoning: do ops with a head and a tail per device fit into a span of time? docs/bounds.md,
// section 9. Private to bounds.
#pragma once

#include <cstdint>
#include <vector>

#include "bound_tables.h"

namespace heddle {

// Rounds of improving multipliers per call of too_short().
inline constexpr int kFitRounds = 12;

class SpanFit {
 public:
  explicit SpanFit(const BoundTables& tables);

  void clear();
  // head[i]: least time from the span's start to the op's end on device i; tail[i]: from the op's start on
  // device i to the span's end.
  void add(uint32_t op, const double* head, const double* tail);
  // The smallest positive time of any op: a starting point for a search.
  double least_us() const;
  // True only if no schedule of these ops fits into `span` under the heads and tails, with one device of each
  // exclusive set running at a time. Monotone in `span` (up to the limit on rounds).
  bool too_short(double span);

 private:
  struct Entry {
    uint32_t op;
    const double *head, *tail;
  };
  const BoundTables& b_;
  const size_t k_;
  std::vector<std::vector<uint32_t>> sets_;     // exclusive sets of devices
  std::vector<std::vector<uint32_t>> sets_of_;  // per device
  std::vector<Entry> entries_;
  std::vector<double> time_;  // entry x device: infinite if the op cannot be there within the span
  std::vector<double> first_, last_, room_;     // per set
  std::vector<double> weight_, per_us_, busy_;  // per set; per device
};

}  // namespace heddle
