// Measures how much faster a device runs several segments at once than one after another, and fits the stage
// model to these sets.
#pragma once

#include <span>
#include <vector>

#include "heddle/cost/stage_model.h"

namespace heddle {

// Two or more segments that ran at once: `items` with their times alone, and the time of the set.
struct StageSample {
  std::vector<StageItem> items;
  double us = 0;
};

struct StageFit {
  StageModel model;
  int samples = 0;
  double median_error = 0, largest_error = 0;  // |t(S) - measured| / measured
};

// The stage model with non-negative coefficients that minimises the sum of squared relative errors. Without
// samples: segments run one after another. O(samples).
StageFit fit_stage_model(std::span<const StageSample> samples);

}  // namespace heddle
