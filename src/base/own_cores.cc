#include "heddle/base/own_cores.h"

#include <sched.h>

namespace heddle {

std::vector<int> own_cores() {
  // The mask must be as long as the kernel's; no kernel has more than 64 Ki CPUs.
  for (int bits = 1024; bits <= 65536; bits *= 4) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(bits));
    const size_t size = CPU_ALLOC_SIZE(static_cast<size_t>(bits));
    std::vector<int> cores;
    if (set != nullptr && sched_getaffinity(0, size, set) == 0) {
      for (int i = 0; i < bits; ++i) {
        if (CPU_ISSET_S(static_cast<size_t>(i), size, set)) cores.push_back(i);
      }
    }
    CPU_FREE(set);
    if (!cores.empty()) return cores;
  }
  return {0};
}

}  // namespace heddle
