// What lies between ranks, measured: latency and bandwidth of messages, as plans will send them, and what
// messages at one time take from each other.
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
  // The time of the largest message while another one goes the other way, by its time alone: 1 where each
  // direction has its own bandwidth (full duplex), 2 where they share one (half duplex).
  double both_ways = 1;
  bool half_duplex() const { return both_ways > 1.5; }
};

// The largest messages between one rank and all others at once: 0 where they take no longer than the slowest
// of them alone, 1 where they take as long as one after the other, as all use the rank's one way out or in.
struct RankPort {
  double out = 0, in = 0;
  bool shared() const { return out > 0.5 || in > 0.5; }
};

struct RankLinks {
  std::vector<RankLink> pairs;
  std::vector<RankPort> ports;  // per rank, where there are more than two; else empty
};

struct LinkOptions {
  std::vector<int64_t> bytes = {8, 1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 22};  // ascending, positive
  double seconds_per_size = 0.1;  // at least 5 round trips, at most 500
  int at_once = 4;                // times that messages are sent at once; the fastest counts
};

// Called by all ranks. Pairs take turns, so that they do not share what they measure; then each rank with all
// others. Every rank gets all of it. O(ranks^2) messages of each size.
Result<RankLinks> measure_links(RankGroup& group, const LinkOptions& options = {});

}  // namespace heddle
