// What a test has computed, however busy the machine is.
#pragma once

#include <sys/resource.h>

namespace heddle::test {

// Of this process and of its children that have ended.
inline double processor_seconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    ::getrusage(who, &used);
    for (const timeval& t : {used.ru_utime, used.ru_stime})
      sum += static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  }
  return sum;
}

}  // namespace heddle::test
