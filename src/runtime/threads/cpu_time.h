// CPU time that this process has used, of all its threads.
#pragma once

#include <sys/resource.h>

namespace heddle {

inline double process_cpu_s() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

}  // namespace heddle
