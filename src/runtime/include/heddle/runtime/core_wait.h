// How long threads that were ready to run have waited for a core so far: the sign of other work on the machine. By the
// kernel's count (Linux: /proc/self/task/*/schedstat), in ns; 0 if it keeps none.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace heddle {

// One thread of this process.
int64_t waited_for_a_core(pid_t thread);
// The sum over all threads of this process that are alive. Takes about 10 us a thread.
int64_t waited_for_cores();

}  // namespace heddle
