// DiviML's batched MET, Greedy and HEFT (section V-A) for problems whose known segments are batches.
#pragma once

#include <optional>
#include <string>

#include "heddle/planners/planner.h"

namespace heddle {

enum class BatchRule {
  kSingle,  // every batch whole, all on one device: the best one
  kMet,     // each task in the batches and on the device that take the least time per request
  kGreedy,  // each task, in topological order, divided among the devices so that it ends first
  kHeft,    // the same by falling upward rank (Topcuoglu et al. 2002, equation 8, of whole batches)
};

// nullopt when the problem has no batches: then the planner plans op by op. Tasks are appended to the
// devices, without insertion. O(V C(L + k - 1, k - 1) k) for L requests and k devices.
std::optional<Result<PlannerOutput>> plan_batched(const Problem& problem, const PlannerOptions& options,
                                                  const std::string& name, BatchRule rule);

}  // namespace heddle
