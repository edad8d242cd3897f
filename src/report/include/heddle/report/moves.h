// A plan's loss or gain if a part of it ran on another device. It answers "why is this op there?" and
// "why does that device do nothing?".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/cost/cost.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

// The plan with some ops on another device and everything else as it is. Segments are merged again where that
// delays nothing.
struct Move {
  DeviceId device;
  std::vector<OpId> ops;               // those that move
  double ops_us = kImpossible;         // their time there, one by one
  Origin origin = Origin::kEstimated;  // of that time: the least trusted of the ops'
  bool planned = false;                // this is the plan itself
  std::optional<double> value_us;      // the objective after the move; nullopt: no valid plan
  std::string refused;                 // then: why
};

// The op (with the ops that must share its device) on each device that the plan may use, in their order. The
// plan's own device is among them, with the plan's value. Unsupported for plans of several lanes.
// O(devices (V + E) log V).
Result<std::vector<Move>> moves_of(const Problem& problem, const Plan& plan, OpId op);

struct BestUse {
  std::optional<Move> move;  // none: no move is valid, or all ops are there already
  size_t tried = 0,
         candidates = 0;  // fewer are tried if the deadline comes early, at least until one is valid
};
// Of the plan's segments and ops, the one whose move to `device` gives the best objective. O(V (V + E) log V).
Result<BestUse> best_use(const Problem& problem, const Plan& plan, DeviceId device,
                         const Deadline& deadline = {});

// With the names of device and ops.
Json move_json(const Problem& problem, const Move& move);
// A line for each of moves_of().
std::string moves_text(const Problem& problem, OpId op, const std::vector<Move>& moves);
// Of best_use(), beside the plan's own value.
std::string best_use_text(const Problem& problem, DeviceId device, const BestUse& best, double planned_us);

}  // namespace heddle
