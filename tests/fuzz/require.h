// What holds for any bytes; where it does not, the fuzzer has a finding.
#pragma once

#include <cstdlib>

inline void require(bool condition) {
  if (!condition) std::abort();
}
