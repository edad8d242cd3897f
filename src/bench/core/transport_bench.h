// What a message of the executor costs beside the transport's own.
#pragma once

#include <cstdint>

#include "heddle/runtime/rank_group.h"

namespace heddle::bench {

struct TransportBenchResult {
  double executor_us = 0;  // a message of a chain of free ops, to and fro: half a round trip, the median
  double raw_us = 0;       // the same bytes by blocking calls of the transport's library, half a round trip
  int messages = 0;
};
// Called by all of at least two ranks; ranks 0 and 1 take part. `messages`: of the chain, at least 4. Both
// are measured in turns, `repeats` times, and the medians given; the result is rank 0's.
Result<TransportBenchResult> bench_messages(RankGroup& group, int64_t bytes, int messages, int repeats);

}  // namespace heddle::bench
