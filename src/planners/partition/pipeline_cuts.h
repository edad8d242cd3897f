// Cuts a topological order into intervals, one a device, for the least largest load.
#pragma once

#include <optional>
#include <vector>

#include "core/flat_problem.h"
#include "heddle/base/cancel.h"
#include "lists/list_schedule.h"

namespace heddle {

// An op's interval runs on one device; tensors that cross a cut load the way between the two neighbours.
// Minimises the largest of all intervals' times and all cuts' transfer times, over all cuts and, for at most
// kExactDevices devices, all sequences of distinct devices; beyond that over subsequences of the devices in
// their order and in the order of speed.
struct PipelineCuts {
  std::vector<uint32_t> device;  // per op
  double us = 0;                 // the largest load of that model
};
inline constexpr size_t kExactDevices = 8;

// nullopt when there is no way to cut, or the deadline was cancelled.
std::optional<PipelineCuts> pipeline_cuts(const FlatProblem& flat, const std::vector<uint32_t>& order,
                                          const Reserve& reserve, const Deadline& deadline);

}  // namespace heddle
