// Fork-join blocks: what must happen between an op and a later one that it dominates, for each pair of their
// devices. docs/bounds.md, section 9. Private to bounds.
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

// Elementary steps that the blocks may take: some 0.1 s, and some seconds.
inline constexpr double kFewBlockSteps = 3e7, kManyBlockSteps = 1e9;

// The blocks (immediate dominator, join) of the ops that the source with the longest way to the end reaches,
// in topological order of their joins. Smallest first as far as `steps` allow; a block within another one
// makes that one's paths longer. For latencies. Stops early at the deadline with the blocks found so far.
std::vector<Block> find_blocks(const BoundTables& tables, double steps, const Deadline& deadline);

}  // namespace heddle
