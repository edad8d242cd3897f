// What lies between ranks, measured: latency and bandwidth of messages, as plans will send them.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/runtime/rank_group.h"

namespace heddle {

struct MessageTime {
  int64_t bytes = 0;
  double us = 0;  // one way: the median of halved round trips
};

struct RankLink {
  int a = 0, b = 0;  // ranks, a < b
  std::vector<MessageTime> times;
  double latency_us = 0;   // of the smallest message
  double bytes_per_s = 0;  // of the largest message, without the latency
};

struct LinkOptions {
  std::vector<int64_t> bytes = {8, 1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 22};  // ascending, positive
  double seconds_per_size = 0.1;  // at least 5 round trips, at most 500
};

// Called by all ranks. Pairs take turns, so that they do not share what they measure. Every rank gets all
// links.
Result<std::vector<RankLink>> measure_links(RankGroup& group, const LinkOptions& options = {});

}  // namespace heddle
