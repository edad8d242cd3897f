#include "fit_check.h"

#include <set>
#include <string>

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

Status check_use(const Cluster& cluster, DeviceId device, std::span<const PoolUse> pools) {
  const int pool = cluster.memory_pool(device);
  const PoolUse& use = pools[static_cast<size_t>(pool)];
  const int64_t limit = cluster.memory_pool_bytes(pool);
  if (limit == 0 || use.param_bytes + use.tensor_bytes <= limit) return {};
  return Error(Code::kInfeasible,
               "device '" + cluster.device(device).name + "' has " + std::to_string(limit) +
                   " bytes of memory, but parameters (" + std::to_string(use.param_bytes) +
                   ") and tensors (" + std::to_string(use.tensor_bytes) +
                   " for the requests in flight) need more; reduce --in-flight or use another plan");
}

int64_t parameter_bytes(const Graph& graph, const Segment& segment) {
  std::set<ParamId> params;
  for (const OpId op : segment.ops) params.insert(graph.op(op).params.begin(), graph.op(op).params.end());
  int64_t bytes = 0;
  for (const ParamId p : params) bytes += graph.param(p).bytes;
  return bytes;
}

}  // namespace heddle
