// Cold starts: all parameters leave host memory over few links. Private to bounds.
#pragma once

#include <span>

#include "bound_tables.h"

namespace heddle {

// Lower bound on the request's end: the links and buses out of host memory must carry every op's parameters,
// or be held while they are read in place, early enough for the ops that follow. 0 when nothing must leave
// host memory or links are not exclusive. docs/bounds.md, section 15. O(V D + V log V).
double host_gate_us(const BoundTables& tables, const PathBounds& paths);

}  // namespace heddle
