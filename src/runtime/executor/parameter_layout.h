// The layout of the segments' parameters in the memories of a plan's accelerators.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "heddle/plan/evaluator.h"
#include "heddle/plan/plan.h"
#include "heddle/runtime/stream_runtime.h"

namespace heddle {

// Rounds up to the granularity of device memory.
constexpr int64_t whole_pieces(int64_t bytes) {
  return (bytes + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment;
}

// One segment's memory, and the bytes of its parameters there (0: nothing is copied).
struct ParameterNeed {
  int32_t memory = 0;  // ProgramInput::memory_of
  int64_t bytes = 0;
};

struct ParameterLayout {
  std::vector<int64_t> bytes;   // [memory] size of the block for all parameters in it
  std::vector<int64_t> offset;  // [segment] position in its memory's block; -1: no parameters
  // (a, b): the load of segment b overwrites the parameters of a, so it follows the run of a.
  std::vector<std::pair<int32_t, int32_t>> reuses;
};

// Permanent parameters lie side by side. A segment that drops its parameters occupies a range from its load
// to its run: the first gap that is wide enough. A later load may overwrite it, after that run by the plan's
// times and order, so waiting for the run costs the plan nothing. Gaps between ranges may stay empty, so a
// plan that just fits may need more memory here. O(segments^2) per memory.
ParameterLayout lay_out_parameters(const Plan& plan, const Timeline& timeline,
                                   const std::vector<ParameterNeed>& needs, int32_t memories);

}  // namespace heddle
