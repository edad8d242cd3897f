#include "measuring.h"

#include "heddle/runtime/segment_measurer.h"

namespace heddle {

Result<ProfileSummary> profile_segments(const Session& session, const LoadedModel& loaded, const Graph& graph,
                                        const std::vector<ProfileRequest>& wanted,
                                        const MeasuringOptions& options, const Control& control) {
  MeasureOptions measuring;
  measuring.min_s = options.min_s;
  measuring.max_s = 3 * options.min_s;
  const auto measurer = make_segment_measurer(loaded.model, measuring, options.conditions);
  ProfileOptions profiling;
  profiling.deadline = control.deadline();
  profiling.progress = control.progress;
  profiling.batch = options.batch;
  profiling.what = options.what;
  return profile(graph, *session.cluster, wanted, signature_of(session.loaded), *measurer, *session.store,
                 profiling);
}

Result<ProfileSummary> profile_segments(const Session& session, const std::vector<ProfileRequest>& wanted,
                                        const MeasuringOptions& options, const Control& control) {
  return profile_segments(session, session.loaded, *session.problem.graph, wanted, options, control);
}

}  // namespace heddle
