// Measures the links between ranks: latency and bandwidth of messages as plans send them, and how concurrent
// messages slow each other down.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "heddle/runtime/rank_group.h"

namespace heddle {

struct MessageTime {
  int64_t bytes = 0;
  double us = 0;  // one way: median of half round trips
};

struct RankLink {
  int a = 0, b = 0;  // ranks, a < b
  std::vector<MessageTime> times;
  double latency_us = 0;   // of the smallest message
  double bytes_per_s = 0;  // of the largest message, without the latency
  double least_us = 0;  // of the largest message: other users of the cores make messages slower, never faster
  // Least time of the largest message while another one goes the other way / least_us: 1 if each direction
  // has its own bandwidth (full duplex), 2 if both share one (half duplex).
  double both_ways = 1;
  bool half_duplex() const { return both_ways > 1.5; }
};

// The largest messages between one rank and all others at once. 0: they take no longer than the slowest of
// them alone. 1: they take as long as one after the other, since all use the rank's single port.
struct RankPort {
  double out = 0, in = 0;
  bool shared() const { return out > 0.5 || in > 0.5; }
};

struct RankLinks {
  std::vector<RankLink> pairs;
  std::vector<RankPort> ports;  // per rank if there are more than two ranks; otherwise empty
};

struct LinkOptions {
  std::vector<int64_t> bytes = {8, 1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 22};  // ascending, positive
  double seconds_per_size = 0.1;                                                  // 5 to 500 round trips
  int at_once = 4;                    // repetitions of concurrent messages; the fastest counts
  std::function<int64_t()> clock_ns;  // for messages on a clock of their own; empty: the machine's
};

// Called by all ranks. First the pairs take turns, so that they do not disturb each other; then each rank
// exchanges messages with all others. Every rank gets the whole result. O(ranks^2) messages of each size.
Result<RankLinks> measure_links(RankGroup& group, const LinkOptions& options = {});

}  // namespace heddle
