// Cold starts: all parameters come out of host memory, over few links. Private to bounds.
#pragma once

#include <span>

#include "bound_tables.h"

namespace heddle {

// The least end of a request when the links and buses that lead out of host memory must carry, or be held for
// reading in place, what every op needs in time for what follows it. 0 where nothing must leave, or links are
// not exclusive. docs/bounds.md, section 15. O(V D + V log V).
double host_gate_us(const BoundTables& tables, const PathBounds& paths);

}  // namespace heddle
