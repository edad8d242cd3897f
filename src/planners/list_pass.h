// A quick estimate of an assignment's makespan: one pass over its order, transfers without contention.
#pragma once

#include <vector>

#include "heddle/plan/builder.h"
#include "placement_costs.h"

namespace heddle {

class ListPass {
 public:
  explicit ListPass(const Problem& problem);
  // kImpossible when an op cannot run where it is put. O(V + E).
  double makespan(const Assignment& assignment);

 private:
  const Graph& graph_;
  PlacementCosts costs_;
  std::vector<size_t> number_;  // per device of the cluster: its place among the usable ones
  std::vector<double> finish_, free_;
};

}  // namespace heddle
