// Any bytes: a simulation instance is a problem whose ops run one after another, an IOS file is a graph whose
// stages are a plan that can be timed and written back; or each is an error with a message.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "heddle/base/json.h"
#include "heddle/plan/evaluator.h"
#include "heddle/plan/hios_workload.h"
#include "heddle/plan/stage_list.h"
#include "json_mutator.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto document = heddle::parse_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!document.ok()) return 0;
  for (const bool by_reader : {false, true}) {
    const auto problem = heddle::hios_workload_from_json(*document, {2, by_reader});
    if (!problem.ok()) {
      require(!problem.error().to_string().empty());
      continue;
    }
    std::vector<heddle::ListedStage> stages;
    for (const auto op : problem->graph->topological_order()) stages.push_back({heddle::DeviceId(0), {{op}}});
    const auto plan =
        heddle::build_plan(*problem, heddle::assignment_of_stages(problem->graph->num_ops(), stages));
    require(plan.ok());
    const auto timeline = heddle::evaluate(*problem, *plan);
    require(timeline.ok() && std::isfinite(timeline->makespan_us));
  }
  (void)heddle::is_hios_workload(*document);
  const auto file = heddle::ios_graph_from_json(*document);
  if (!file.ok()) {
    require(!file.error().to_string().empty());
    return 0;
  }
  require(heddle::ios_graph_from_json(heddle::with_stages(*document, file->stages)).ok() ||
          file->stages.empty());
  return 0;
}
