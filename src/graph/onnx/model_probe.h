// Runs work that may crash, hang or exhaust memory in a child process first.
#pragma once

#include <cstdint>
#include <functional>

#include "heddle/base/status.h"

namespace heddle::internal {

struct ProbeLimits {
  double cpu_s = 60;                        // CPU time of the child
  int64_t memory_bytes = int64_t{4} << 30;  // anonymous memory added; not mapped files
};

// Forks, runs `work` in the child with its output silenced, and waits. Succeeds if `work` returned, whatever
// its result; otherwise the error names the cause (signal, time, memory). The child has only the calling
// thread: `work` must not wait for other threads. If the child makes no progress, because another thread held
// a lock at the fork, the probe is repeated. If that fails too, the result is unknown and counts as success.
Status probe(const std::function<void()>& work, const ProbeLimits& limits);

}  // namespace heddle::internal
