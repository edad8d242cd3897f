#include "start_process.h"

#include <malloc.h>

#include <cstdlib>

namespace heddle {

void leave_out_hwloc_plugins() {
  // Not a folder, so none is found.
  setenv("HWLOC_PLUGINS_PATH", "/dev/null", 0);
}

void prepare_memory_for_start([[maybe_unused]] int load_workers, [[maybe_unused]] bool keep) {
#ifdef __GLIBC__
  // Only address space: pages come when they are touched.
  mallopt(M_TOP_PAD, 16 << 20);
  if (keep) {
    // Not even what is large is given back: the next segment needs as much.
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
  }
  // One for each load worker and what its compiler runs beside it, and for the threads that import and
  // execute.
  mallopt(M_ARENA_MAX, 2 + 2 * load_workers);
#endif
}

}  // namespace heddle
