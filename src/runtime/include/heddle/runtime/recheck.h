// Is the prediction true? The plan's segments are timed alone, again, between its requests.
#pragma once

#include <memory>

#include "heddle/base/cancel.h"
#include "heddle/base/progress.h"
#include "heddle/base/status.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/run.h"

namespace heddle {

struct RecheckOptions {
  int rounds = 15;
  double round_s = 0.1;  // for each half of a round: the segments alone, and requests of the whole plan
  int in_flight = 4;     // for throughput
  InputOptions inputs;
  Deadline deadline;  // fewer rounds when it comes early
  ProgressSink* progress = nullptr;
};

// A machine that others share changes its speed by the second, so a profile taken earlier and a run differ
// even where the prediction is right. Both are therefore taken in turns; one round's prediction is the
// evaluator's, with the segments' medians of that round in the place of the profile's.
struct Recheck {
  double predicted_us = 0;  // medians over the rounds
  double measured_us = 0;
  double error = 0;                      // median over the rounds of measured / predicted - 1
  double error_low = 0, error_high = 0;  // quartiles
  // Median of this moment's prediction / the plan's own - 1: how much the machine has slowed down since it
  // was profiled.
  double drift = 0;
  int rounds = 0;
};

// For plans whose devices are all real. In throughput problems all devices time their segments at once, for
// so they run.
Result<Recheck> recheck_prediction(const Problem& problem, const Plan& plan,
                                   std::shared_ptr<const Model> model, const RecheckOptions& options = {});

}  // namespace heddle
