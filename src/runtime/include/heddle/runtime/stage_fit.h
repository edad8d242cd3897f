// How much faster a device runs several segments at once than one after another: measured sets, and the stage
// model fitted to them.
#pragma once

#include <span>
#include <vector>

#include "heddle/cost/stage_model.h"

namespace heddle {

// A set of two or more segments that ran at once, and what each takes alone.
struct StageSample {
  std::vector<StageItem> items;
  double us = 0;
};

struct StageFit {
  StageModel model;
  int samples = 0;
  double median_error = 0, largest_error = 0;  // |t(S) - measured| / measured
};

// The stage model with non-negative coefficients that is nearest to the samples by relative error squared.
// Without samples: one after another. O(samples).
StageFit fit_stage_model(std::span<const StageSample> samples);

}  // namespace heddle
