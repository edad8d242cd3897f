// Times several things in turns, so that a drift of the machine's speed favours none.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "heddle/runtime/executor.h"
#include "heddle/runtime/run.h"

namespace heddle {

// An executor for the plan with these inputs in every slot. Fails (invalid input) without a model, if a
// device is emulated, or if the options ask for no round.
Result<std::unique_ptr<Executor>> open_for_rounds(const Problem& problem, const Plan& plan,
                                                  std::shared_ptr<const Model> model,
                                                  const RoundOptions& options,
                                                  std::span<const TensorValue> inputs);

// Runs this many requests; returns the time of one in us.
using TimeRequests = std::function<Result<double>(int count)>;
// The number of requests that take RoundOptions::round_s, at least `least`. Warms up.
Result<int> requests_per_round(const TimeRequests& time, int in_flight, int least,
                               const RoundOptions& options);

using RoundTimes = std::vector<std::vector<double>>;  // us, [side][round]
// Each round times all sides, in an order that changes from round to round. The deadline leaves at least one round. A
// round that is cancelled does not count; kCancelled if it is the first. `what` is shown as progress.
Result<RoundTimes> time_in_turns(std::span<const std::function<Result<double>()>> sides,
                                 const RoundOptions& options, const char* what);

}  // namespace heddle
