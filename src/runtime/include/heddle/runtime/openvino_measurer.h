// Measuring segments as the executor runs them.
#pragma once

#include <memory>

#include "heddle/cost/measurer.h"

namespace heddle {

class Model;

struct MeasureOptions {
  double min_s = 0.3;  // per segment, after warm-up
  double max_s = 1.5;  // when the quiet time is not yet supported by enough samples
  int min_runs = 10;
};

// Measures segments of `model` on OpenVINO devices: compiled, bound and pinned as the executor does it, with
// the caches in the state that the rest of the model leaves. Measurement::median_us is the quiet time. Not
// thread-safe.
std::unique_ptr<SegmentMeasurer> make_openvino_measurer(std::shared_ptr<const Model> model,
                                                        const MeasureOptions& options = {});

}  // namespace heddle
