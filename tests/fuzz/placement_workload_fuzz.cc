// Any bytes: a placement workload is a problem whose ops, all on the CPUs or dealt to its devices, make a plan that
// can be timed; or it is an error with a message.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "heddle/base/json.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/evaluator.h"
#include "heddle/plan/placement_workload.h"
#include "json_mutator.h"
#include "require.h"

namespace {

// Memory, colours and contiguity may be broken by ops that are dealt blindly, and an op may not run there.
void deal(const heddle::Problem& problem, size_t first_device) {
  heddle::WorkloadPlacement placement;
  const size_t devices = problem.cluster->num_devices() - first_device;
  for (size_t v = 0; v < problem.graph->num_ops(); ++v)
    placement.device.emplace_back(first_device + v % devices);
  const auto plan = heddle::plan_of_placement(problem, placement);
  if (!plan.ok()) return;
  const auto timeline = heddle::evaluate(problem, *plan);
  if (!timeline.ok()) return;
  require(std::isfinite(timeline->makespan_us));
  for (const auto& finding : heddle::check(problem, *plan, *timeline).findings)
    require(finding.kind == heddle::Violation::kMemory || finding.kind == heddle::Violation::kPlacement);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto document = heddle::parse_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!document.ok()) return 0;
  for (const auto objective : {heddle::Objective::kLatency, heddle::Objective::kThroughput}) {
    heddle::PlacementOptions options;
    options.objective = objective;
    options.contiguous = objective == heddle::Objective::kThroughput;
    const auto problem = heddle::placement_workload_from_json(*document, "fuzz", options);
    if (!problem.ok()) {
      require(!problem.error().to_string().empty());
      continue;
    }
    require(heddle::is_placement_workload(*document));
    deal(*problem, 0);
    if (objective == heddle::Objective::kLatency) deal(*problem, problem->cluster->num_devices() - 1);
  }
  return 0;
}
