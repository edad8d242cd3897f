// Where the parameters of a plan's segments lie in the memories of its accelerators.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "heddle/plan/evaluator.h"
#include "heddle/plan/plan.h"
#include "heddle/runtime/stream_runtime.h"

namespace heddle {

// Device memory is handed out in such pieces.
constexpr int64_t whole_pieces(int64_t bytes) {
  return (bytes + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment;
}

// Of one segment: where it runs, and how much its parameters take there (0: nothing is copied).
struct ParameterNeed {
  int32_t memory = 0;  // ProgramInput::memory_of
  int64_t bytes = 0;
};

struct ParameterLayout {
  std::vector<int64_t> bytes;   // per memory: of the block for all that comes to lie there
  std::vector<int64_t> offset;  // per segment, in its memory's block; -1: it has none
  // (a, b): segment b's load writes where a's parameters were, so it follows a's run.
  std::vector<std::pair<int32_t, int32_t>> reuses;
};

// Parameters that stay lie side by side. A segment that drops its parameters has a place from its load to its
// run, the first that is wide enough: what a later load takes in their place is free by the plan's times and
// order, so waiting for the run costs the plan nothing. A plan that just fits may need more here, for pieces
// between others stay empty. O(segments^2) for each memory.
ParameterLayout lay_out_parameters(const Plan& plan, const Timeline& timeline,
                                   const std::vector<ParameterNeed>& needs, int32_t memories);

}  // namespace heddle
