// Parts of a session that its other sources share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/base/control.h"
#include "heddle/cost/measurer.h"
#include "heddle/cost/profile_store.h"
#include "heddle/runtime/profiler.h"
#include "heddle/session/session.h"

namespace heddle {

// Measuring takes about 0.1 s per unit and kind of device. This many units are measured within seconds and
// leave enough places to cut.
inline constexpr size_t kMeasuredUnits = 24;
inline constexpr size_t kEstimatedUnits = 2000;

// Groups the ops of session.loaded into the units that are placed, at most `limit` (more if settings.keep_apart needs
// them). With `whole_ops` the usual coarsening is none. session.cluster tells which engines need whole nodes.
Result<std::shared_ptr<const Graph>> make_units(const Session& session, size_t limit, bool whole_ops,
                                                const ProblemSettings& settings);

struct MeasuringOptions {
  double min_s = 0;  // of each segment; at most three times as long
  int batch = 1;
  MeasureConditions conditions;
  std::string what;  // for the progress
};

// The only function that measures segments of a model, those that the session's store does not have. `loaded`
// is the session's model, possibly at another batch size, and `wanted` are ops of `graph`, which is made from
// it. After a cancellation the summary is incomplete.
Result<ProfileSummary> profile_segments(const Session& session, const LoadedModel& loaded, const Graph& graph,
                                        const std::vector<ProfileRequest>& wanted,
                                        const MeasuringOptions& options, const Control& control);
// The same for units of the session's problem.
Result<ProfileSummary> profile_segments(const Session& session, const std::vector<ProfileRequest>& wanted,
                                        const MeasuringOptions& options, const Control& control);

// The same decisions, with units united into segments wherever that delays nothing.
Result<Plan> with_united_segments(const Problem& problem, const Plan& plan);
// The plan's segments of several units whose times are sums of their units'.
std::vector<ProfileRequest> unknown_segments(const Problem& problem, const Plan& plan);

// The result's plan, verified and timed under the problem's present costs; `bound` holds under these.
Result<PlanResult> verified_again(const Problem& problem, PlanResult result,
                                  const std::optional<Bound>& bound);

// A session of a file that holds a whole problem (heddle/plan/problem_file.h): nothing is grouped or
// measured. nullopt for other files. Settings that the file decides are errors.
Result<std::optional<Session>> open_given(const ModelSpec& source, const ProblemSettings& settings);

// With a budget: finds the types that units may have, and puts them into the problem (precision.cc). Units must have
// been measured.
Status choose_types(Session& session, const ProblemSettings& settings, const Control& control);
// Takes the times of forbidden types out of the problem's costs. O(units x devices + known segments).
void forbid_types(Problem& problem);
// Measures the plan's error on the session's samples, for problem.precision. Nothing without a budget.
Status measure_error(Session& session, const Plan& plan, const Control& control);
// Takes their types from the `count` units of the plan that err most. False if no other type is left to any.
Result<bool> widen_worst(Session& session, const Plan& plan, int count, const Control& control);

// Plans that follow from the types that units may have, without a search (typed_plans.cc). O(devices x (V + E) log V).
std::vector<Plan> typed_plans(const Problem& problem);

// Measures units with their parameters read in place, if the settings ask for host access, the accelerator is
// here and the store lacks the times.
Status measure_host_access(Session& session, const ProblemSettings& settings, const Control& control);
// Applies the settings of cold starts to the problem, whose costs are known by now: host access, resident and
// dropped parameters. Errors name the setting.
Status allow_cold_start(Problem& problem, const ProblemSettings& settings);

// Lets devices run up to settings.stage_width segments at once, with times by settings.stage_times.
Status allow_stages(Session& session, const ProblemSettings& settings, const Control& control);
// The device of the same name, else of the same class; invalid if there is neither.
DeviceId device_like(const Device& device, const Cluster& cluster);
// The same stages on another cluster: each device has the stage model and utilizations of device_like() it.
void keep_stages(const Problem& from, Problem& to);

}  // namespace heddle
