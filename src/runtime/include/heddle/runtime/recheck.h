// Tests a prediction: times the plan's segments alone again, in turns with requests of the plan.
#pragma once

#include <memory>

#include "heddle/base/status.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/run.h"

namespace heddle {

// A shared machine changes its speed by the second. A run then differs from an earlier profile even if the
// prediction is right, so segments and requests are timed in turns. Each round's prediction is the
// evaluator's, with the segment medians of this round instead of the profile's.
struct Recheck {
  double predicted_us = 0;  // median over the rounds
  double measured_us = 0;
  double error = 0;                      // median over the rounds of measured / predicted - 1
  double error_low = 0, error_high = 0;  // quartiles
  // Median of the round's prediction / the plan's own - 1: how much the machine has slowed down since the
  // profile.
  double drift = 0;
  int rounds = 0;
};

// For plans whose devices are all real. In throughput problems all devices time their segments concurrently,
// as in the real run.
Result<Recheck> recheck_prediction(const Problem& problem, const Plan& plan,
                                   std::shared_ptr<const Model> model, const RoundOptions& options = {});

}  // namespace heddle
