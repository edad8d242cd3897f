// Where each segment runs: on the whole device or, as a member of a stage, on a part of its cores.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

struct Seat {
  DeviceId device;
  std::vector<int> cores;     // of the device, ascending; empty: a device without cores
  int32_t index = 0, of = 1;  // member `index` of a stage of `of`
};

// Seats 0 .. devices - 1 are whole devices. Of c cores, member j of a stage of k gets those from j c / k up
// to (j + 1) c / k, at least one. With fewer cores than members, some members share a core and take turns.
struct Seats {
  std::vector<Seat> seats;
  std::vector<int32_t> of_segment;  // per segment of the plan
  std::vector<int32_t> widest;      // per device: members of its largest stage, at least 1
};
// Part `index` of `of` of ascending cores, by the rule above; empty if `cores` is.
std::vector<int> part_of_cores(const std::vector<int>& cores, int32_t index, int32_t of);
Seats seat_segments(const Problem& problem, const Plan& plan);

}  // namespace heddle
