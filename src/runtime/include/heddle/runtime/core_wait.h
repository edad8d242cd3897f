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

// The share of a time in which threads of this process waited for cores; above 1 if several waited at once. The time is
// that between resume() and pause(), which may be called in turns.
class CoreWait {
 public:
  void resume();
  void pause();
  // 0 before the first pause().
  double share() const;

 private:
  int64_t begin_ns_ = 0, waited_before_ns_ = 0;  // at resume()
  int64_t elapsed_ns_ = 0, waited_ns_ = 0;       // until the last pause()
};

}  // namespace heddle
