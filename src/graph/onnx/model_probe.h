// Runs work that may crash, hang or eat memory in a child process first.
#pragma once

#include <cstdint>
#include <functional>

#include "heddle/base/status.h"

namespace heddle::internal {

struct ProbeLimits {
  double cpu_s = 60;                        // of the child
  int64_t memory_bytes = int64_t{4} << 30;  // anonymous memory that the work adds; mapped files do not count
};

// Forks, runs `work` in the child with its output silenced, and waits. Success when the work returned,
// whatever it returned; an error says how it ended otherwise (signal, time, memory). The child has only the
// calling thread: `work` must not wait for others. When the child makes no progress, because another thread
// held a lock at the fork, it is tried again, and at last taken as a success: then nothing is known.
Status probe(const std::function<void()>& work, const ProbeLimits& limits);

}  // namespace heddle::internal
