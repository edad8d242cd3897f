// The plan of ops that run as one segment on one device: how the executor serves a model, or a part of one,
// that is not split further.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "heddle/base/ids.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/graph/model.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

// What the executor needs for one batch size.
struct SizedPlan {
  Problem problem;
  Plan plan;
  std::shared_ptr<const Model> model;  // null: no device of the plan needs one
};

// `ops` of the model's graph, ascending; `cut` is model->cut(ops), whose tensors become the graph's inputs
// and outputs, in that order.
Result<SizedPlan> one_device_plan(const std::string& name, std::shared_ptr<const Model> model,
                                  std::span<const OpId> ops, const SegmentModel& cut, const Device& device);

}  // namespace heddle
