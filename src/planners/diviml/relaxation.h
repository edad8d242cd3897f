// Where a task model's optimum is a lower bound for every plan of the problem.
#pragma once

#include "task_model.h"

namespace heddle {

// The task model lets transfers pass each other, ignores memory and uses the cluster's routes and the devices
// of its flat problem. Its optimum is no more than any plan's latency when
// - the objective is the latency of one request: of several, a plan may run two batches of one task on one
//   device, which equation 5 excludes;
// - the model has all usable devices;
// - no route is faster than the cluster's, for any size: it has both the least latency and the most
//   bandwidth of all paths of links;
// - no known segment is faster than its ops one by one.
// Contention and memory limits only make plans slower. O(nodes^3).
bool bounds_every_plan(const TaskModel& model);

}  // namespace heddle
