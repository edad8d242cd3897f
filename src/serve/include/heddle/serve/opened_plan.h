// A plan file that is ready to be served: read, its model loaded, its segments compiled. Opened here, or on
// several ranks together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/base/control.h"
#include "heddle/base/status.h"
#include "heddle/plan/plan_file.h"
#include "heddle/runtime/executor.h"

namespace heddle {

class Model;
class RankGroup;

struct OpenedPlan {
  PlanFile file;
  std::shared_ptr<const Model> model;  // null where no device needs one
  std::shared_ptr<Executor> executor;  // open
  std::vector<int> cores;              // of the threads that bring requests; empty: any
};

// Called by all ranks: rank 0 reads the plan and shares it, each rank opens the devices that `placement`
// (place_on_ranks()) gives it. `in_flight`: requests at once; 0: as open_served_plan(). Every rank then calls
// `executor->serve_ranks()`; rank 0 serves the plan meanwhile and closes the executor at the end. All ranks
// get the same error.
Result<OpenedPlan> open_plan_on_ranks(RankGroup& group, const std::string& path, const std::string& placement,
                                      int in_flight, const Control& control);

}  // namespace heddle
