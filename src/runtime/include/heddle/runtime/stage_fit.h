// Measures how much faster a device runs several segments at once than one after another, and fits the stage
// model to these sets.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "heddle/cost/stage_model.h"
#include "heddle/runtime/openvino_measurer.h"

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

// Runs all probes at once, each on its own thread bound to its cores. Returns the median time from the common
// start to the last end, us, over at least `least_runs` runs and more for up to `min_s` seconds.
Result<double> measure_at_once(std::span<const std::unique_ptr<SegmentProbe>> probes, double min_s,
                               int least_runs, const Deadline& deadline);

}  // namespace heddle
