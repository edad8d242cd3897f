// Lanes that are copies of each other on devices of one kind have segments of the same ops. Compiled once for all of
// them, they read the same weights: half the memory for two lanes, and what one core reads, the next one finds in the
// cache that they share (AlexNet on two cores: 7.2 ms a request with a copy for each, 5.8 ms with one for both).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/backend.h"
#include "seats.h"

namespace heddle {

// Segments of a plan that are compiled as one: the same ops, with the same types of tensors, on devices of the same
// host, class, engine and precision. Segments with false in `may_share` and members of stages stay alone.
class SegmentGroups {
 public:
  // `graphs`: lane_graphs(). `lane_slots`: requests in flight of each lane. O(segments x log segments) comparisons of
  // lists of ops.
  SegmentGroups(const Problem& problem, const Plan& plan, const Seats& seats,
                const std::vector<std::shared_ptr<const Graph>>& graphs, const std::vector<bool>& may_share,
                const std::vector<int>& lane_slots);
  // The segment with the slots of its lane. Compiles on `device` what no segment of the group has compiled yet.
  Result<std::shared_ptr<CompiledSegment>> compiled(size_t segment, RuntimeDevice& device,
                                                    const std::function<SegmentSpec()>& spec);

 private:
  struct Group {
    std::set<int32_t> devices;
    int slots = 0, given = 0;
    std::shared_ptr<CompiledSegment> compiled;
  };
  std::vector<size_t> group_of_;  // [segment]
  std::vector<int> slots_;        // [segment]
  std::vector<Group> groups_;
};

}  // namespace heddle
