// Which part of a plan large-neighbourhood search decides anew, and how it learns what pays: adaptive choice
// after S. Ropke, D. Pisinger, "An adaptive large neighborhood search heuristic for the pickup and delivery
// problem with time windows", Transportation Science 40(4), 2006.
#pragma once

#include <array>

#include "heddle/base/random.h"
#include "lns_window.h"

namespace heddle {

enum class AreaKind : uint8_t {
  kTime,      // all ops of a stretch of time
  kCritical,  // ops on the critical path and those with the least slack around them
  kDevices,   // ops of two devices, which may change between them
  kSubgraph,  // an op and what is connected to it
  kModules,   // runs of connected ops of one device, which stay together
};
inline constexpr size_t kAreaKinds = 5;

// Draws kinds in proportion to what they gained lately, and sizes by what CP-SAT could finish.
class AreaChoice {
 public:
  // `most`: free ops of an area at most.
  explicit AreaChoice(size_t most);
  AreaKind draw(Random& random) const;
  size_t size(AreaKind kind) const;
  void learn(AreaKind kind, bool better, bool complete);

 private:
  struct Record {
    double weight = 1, size = 0;
  };
  const double most_;
  std::array<Record, kAreaKinds> records_;
};

// `critical`: the ops that determine the makespan (may be empty). The plan's order must be by start. Empty
// `free` when nothing of the kind is there. O(size of the window).
Neighbourhood draw_area(const FlatProblem& flat, const TimedPlan& timed,
                        const std::vector<uint32_t>& critical, const std::vector<uint32_t>& place,
                        AreaKind kind, size_t size, Random& random);

}  // namespace heddle
