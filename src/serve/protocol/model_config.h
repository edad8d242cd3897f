// A model's configuration in Triton's words.
#pragma once

#include <string>

#include "heddle/base/status.h"
#include "heddle/serve/model_source.h"
#include "heddle/serve/served_model.h"
#include "model_config.pb.h"

namespace heddle {

// Reads a config.pbtxt: max_batch_size (0: no batching), the inputs' dims and dynamic_batching's levels of
// priority become settings; the shape of an input whose dims hold -1 stays as it is. What else the file says
// is ignored. Errors: a file that is not there, is over 1 MiB, is no such text (with line and column), or
// names a size out of range.
Status read_triton_config(const std::string& path, ModelSettings& settings);

// The parameters that tell what is planned: the SLO in us, requests per second that the plan sustains.
inline constexpr const char *kSloParameter = "slo_us", *kRateParameter = "rate_per_s";

inference::ModelConfig triton_config(const ServedModel& model, double planned_rate_per_s);

}  // namespace heddle
