// Measures the executor's cost per message beside the transport's own.
#pragma once

#include <cstdint>

#include "heddle/runtime/rank_group.h"

namespace heddle::bench {

struct TransportBenchResult {
  double executor_us = 0;  // half a round trip in a chain of ops that take no time, median
  double raw_us = 0;       // half a round trip of the same bytes by the library's blocking calls
  int messages = 0;
};
// Called by all of at least two ranks; ranks 0 and 1 take part. `messages`: length of the chain, at least 4.
// Both are measured in turns, `repeats` times; the medians are returned on rank 0.
Result<TransportBenchResult> bench_messages(RankGroup& group, int64_t bytes, int messages, int repeats);

}  // namespace heddle::bench
