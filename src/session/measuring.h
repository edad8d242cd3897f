// The one way in which the library measures segments of a model.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/control.h"
#include "heddle/cost/measurer.h"
#include "heddle/cost/profile_store.h"
#include "heddle/runtime/profiler.h"
#include "heddle/session/session.h"

namespace heddle {

struct MeasuringOptions {
  double min_s = 0;  // of each segment; at most three times as long
  int batch = 1;
  MeasureConditions conditions;
  std::string what;  // for the progress
};

// Measures those that the session's store does not have. `loaded` is the session's model, perhaps at another
// batch size, and `wanted` are ops of `graph`, which is made from it. Cancelled: the summary is not complete.
Result<ProfileSummary> profile_segments(const Session& session, const LoadedModel& loaded, const Graph& graph,
                                        const std::vector<ProfileRequest>& wanted,
                                        const MeasuringOptions& options, const Control& control);
// Units of the session's problem.
Result<ProfileSummary> profile_segments(const Session& session, const std::vector<ProfileRequest>& wanted,
                                        const MeasuringOptions& options, const Control& control);

}  // namespace heddle
