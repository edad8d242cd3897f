// Any bytes: a flow workload is a problem whose ops, dealt to its devices, make a plan that can be timed, written
// and read again; or it is an error with a message.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "heddle/base/json.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/flow_workload.h"
#include "heddle/plan/plan_file.h"
#include "json_mutator.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto document = heddle::parse_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!document.ok()) return 0;
  const auto workload = heddle::flow_workload_from_json(*document);
  if (!workload.ok()) {
    require(!workload.error().to_string().empty());
    return 0;
  }
  require(heddle::is_flow_workload(*document));
  heddle::PlanFile file;
  file.problem = workload->problem;
  const heddle::Graph& graph = *file.problem.graph;
  heddle::Assignment decisions;
  for (size_t v = 0; v < graph.num_ops(); ++v)
    decisions.device.emplace_back(v % file.problem.cluster->num_devices());
  decisions.order.assign(graph.topological_order().begin(), graph.topological_order().end());
  auto plan = heddle::build_plan(file.problem, decisions);
  require(plan.ok());
  file.plan = std::move(*plan);
  auto timeline = heddle::evaluate(file.problem, file.plan);
  require(timeline.ok() && std::isfinite(timeline->makespan_us));
  file.predicted = std::move(*timeline);
  for (const auto& finding : heddle::check(file.problem, file.plan, file.predicted).findings)
    require(finding.kind == heddle::Violation::kMemory);
  const heddle::Json written = heddle::plan_to_json(file);
  const auto again = heddle::plan_from_json(heddle::JsonCursor(written));
  require(again.ok() && heddle::plan_to_json(*again) == written);
  return 0;
}
