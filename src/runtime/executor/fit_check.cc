#include "fit_check.h"

#include "heddle/base/units.h"
#include "heddle/plan/evaluator.h"
#include "heddle/runtime/backend.h"

namespace heddle {

Status check_fit(const Problem& problem, const Plan& plan) {
  HEDDLE_ASSIGN_OR_RETURN(const Timeline timeline, evaluate(problem, plan));
  for (const Segment& segment : plan.segments) {
    const Device& device = problem.cluster->device(segment.device);
    const Backend* backend = find_backend(device.backend);
    if (backend == nullptr || !backend->computes()) continue;
    const int pool = problem.cluster->memory_pool(segment.device);
    const int64_t limit = problem.cluster->memory_pool_bytes(pool);
    const int64_t peak = timeline.peak_memory_bytes[static_cast<size_t>(pool)];
    if (limit == 0 || peak <= limit) continue;
    return Error(Code::kInfeasible,
                 "device '" + device.name + "' has " + format_bytes(limit) +
                     " of memory, but the plan's parameters and tensors there need " + format_bytes(peak) +
                     "; plan again for this cluster, which splits the model where it must");
  }
  return {};
}

}  // namespace heddle
