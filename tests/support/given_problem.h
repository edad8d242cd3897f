// A problem with given times.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "heddle/plan/problem.h"

namespace heddle::test {

// times[op][device]; negative: impossible.
inline Problem make_problem(std::shared_ptr<const Graph> graph, std::shared_ptr<const Cluster> cluster,
                            const std::vector<std::vector<double>>& times,
                            Objective objective = Objective::kLatency) {
  auto costs = std::make_shared<CostTable>(graph->num_ops(), cluster->num_devices());
  for (size_t v = 0; v < times.size(); ++v) {
    for (size_t d = 0; d < times[v].size(); ++d) {
      if (times[v][d] >= 0) costs->set(OpId(v), DeviceId(d), {times[v][d], Origin::kGiven, 0});
    }
  }
  Problem problem;
  problem.graph = std::move(graph);
  problem.cluster = std::move(cluster);
  problem.costs = std::move(costs);
  problem.objective = objective;
  return problem;
}

}  // namespace heddle::test
