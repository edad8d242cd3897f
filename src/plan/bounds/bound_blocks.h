// Fork-join blocks: for an op and the op that immediately dominates it, the least time between them for each
// pair of their devices. docs/bounds.md, section 9. Private to bounds.
#pragma once

#include <cstdint>
#include <vector>

#include "bound_tables.h"
#include "heddle/base/cancel.h"

namespace heddle {

struct Block {
  uint32_t fork = 0, join = 0;
  std::vector<double>
      span;  // fork's device x join's device: least time from the fork's end to the join's start
};

// Elementary steps that the blocks may take: about 0.1 s, and some seconds.
inline constexpr double kFewBlockSteps = 3e7, kManyBlockSteps = 1e9;

// The blocks (immediate dominator, join) among the ops reachable from the source with the longest path to the
// end, in topological order of their joins. Blocks are computed smallest first until `steps` are used up;
// inner blocks lengthen the paths of the blocks around them. For latencies; none if CPUs run ops at once. Stops at the
// deadline with the blocks found so far.
std::vector<Block> find_blocks(const BoundTables& tables, double steps, const Deadline& deadline);

}  // namespace heddle
