// One plan for several ranks: every rank gets it, its own part, and the model that this part needs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/plan/plan_file.h"
#include "heddle/runtime/rank_group.h"

namespace heddle {

class Model;

struct RankPlan {
  PlanFile file;
  std::shared_ptr<const Model> model;  // null where no device needs one
  std::vector<int> rank_of_device;
};

// Called by all ranks. `own` counts on rank 0 alone: its plan and model. The other ranks read the model
// themselves if their devices compute. `name` is the plan's, for messages; `placement` is the choice of
// place_on_ranks(). All ranks get the same error.
Result<RankPlan> share_plan(RankGroup& group, Result<RankPlan> own, const std::string& name,
                            const std::string& placement);

// An error of a run over several ranks: wherever it happened, the run has failed, unless it was cancelled.
Error failed_on_ranks(const Error& error);

}  // namespace heddle
