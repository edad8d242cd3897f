// Measuring segments as the executor runs them, and what a noisy series of times says.
#pragma once

#include <memory>
#include <span>

#include "heddle/cost/measurer.h"

namespace heddle {

class Model;

// What a device takes for a segment when nobody disturbs it, from a series of times that others disturbed: the 5 %
// quantile (interpolated). Disturbance only adds time, so low quantiles agree between runs where medians do not; the
// minimum itself rests on one sample (docs/runtime.md holds the figures). 0 for an empty series.
double quiet_time_us(std::span<const double> times_us);
double median_us(std::span<const double> times_us);
// Half the interquartile range over the median; 0 for fewer than 4 samples.
double relative_spread(std::span<const double> times_us);

struct MeasureOptions {
  double min_s = 0.3;             // per segment, after warm-up
  double max_s = 1.5;             // when the quiet time is not yet supported by enough samples
  int min_runs = 10;
};

// Measures segments of `model` on OpenVINO devices: compiled, bound and pinned as the executor does it, with the caches
// in the state that the rest of the model leaves. Measurement::median_us is the quiet time. Not thread-safe.
std::unique_ptr<SegmentMeasurer> make_openvino_measurer(std::shared_ptr<const Model> model,
                                                        const MeasureOptions& options = {});

}  // namespace heddle
