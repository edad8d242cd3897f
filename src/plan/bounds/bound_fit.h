// Whether ops fit into a span of time: energetic reasoning with a head and a tail per op and device.
// docs/bounds.md, section 9. Private to bounds.
#pragma once

#include <cstdint>
#include <vector>

#include "bound_tables.h"

namespace heddle {

// Rounds of multipliers that one question may take.
inline constexpr int kFitRounds = 12;

class SpanFit {
 public:
  explicit SpanFit(const BoundTables& tables);

  void clear();
  // head[i]: least time from the span's begin to the op's end on device i; tail[i]: from its start to the
  // end.
  void add(uint32_t op, const double* head, const double* tail);
  // The least time that some op takes: where a search may begin.
  double least_us() const;
  // True only when no schedule of these ops, each exclusive set of devices running one at a time, keeps
  // within `span` under the heads and tails. Monotone: false for a span, false for every longer one, but for
  // the rounds.
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
  std::vector<double> time_;                    // entry x device: infinite where the span is too short
  std::vector<double> first_, last_, room_;     // per set
  std::vector<double> weight_, per_us_, busy_;  // per set; per device
};

}  // namespace heddle
