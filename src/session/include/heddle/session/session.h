// The pipeline from a model to a plan whose segments were measured:
//
//   HEDDLE_ASSIGN_OR_RETURN(Session session, open_session({.path = "model.onnx"}, {}, control));
//   HEDDLE_ASSIGN_OR_RETURN(const PlanResult result, make_plan(session, "auto", {}, control));
//   write_plan_file("plan.json", plan_file(session.problem, result, 1));
//
// These functions print nothing and keep nothing between calls except the profile store's file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/control.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/cost/profile_store.h"
#include "heddle/plan/hios_workload.h"
#include "heddle/plan/plan_file.h"
#include "heddle/plan/problem.h"
#include "heddle/plan/problem_edit.h"
#include "heddle/planners/planner.h"
#include "heddle/runtime/profiler.h"
#include "heddle/runtime/run.h"
#include "heddle/runtime/segment_measurer.h"
#include "heddle/session/clusters.h"
#include "heddle/session/loaded_model.h"

namespace heddle {

// Seconds of measuring: of a unit, enough to rank placements; of a segment that a plan may use.
inline constexpr double kUnitSeconds = 0.06;
inline constexpr double kSegmentSeconds = 0.4;

// Which ops become one unit. kUsual: light ops join their neighbours, but graphs that come with times are not
// coarsened. kGcof: Moirai's fusion rules, the built-in ones or those of a file.
enum class Coarsening { kUsual, kLight, kNone, kGcof };

// How the time of a stage is found: measured here on pairs of units and fitted, by HIOS's simulation, or as
// the sum of its members. kUsual: measured if possible, else simulated.
enum class StageTimes { kUsual, kMeasured, kSimulated, kSerial };

// Parameters that are on the devices before a cold start: a fraction of all (0 to 1), or those that a file
// lists (resident_from_file()). The file has precedence.
struct ResidentParameters {
  double fraction = 0;
  std::string file;
};

struct ProblemSettings {
  std::shared_ptr<const Cluster> cluster;  // null: this machine, with every device that is found
  Objective objective = Objective::kLatency;
  std::vector<std::string> devices;  // by name, with their variants; empty: all
  VariantSettings variants;
  CalibrationOptions calibration;  // of a budget
  DecisionRules decisions;
  size_t units = 0;  // at most this many; 0: 24 if they are measured, else 2000
  Coarsening coarsening = Coarsening::kUsual;
  // Per op of the model's graph: a unit holds ops of one number only. Empty: any ops.
  std::vector<int> keep_apart;
  std::string fusion_rules;    // kGcof: their file; empty: the built-in ones
  std::string store;           // the profile store's file; empty: ProfileStore::default_path()
  bool measure = true;         // false: times are those in the store, or estimates
  bool contention = true;      // false: transfers never wait for each other
  bool fixed_sharing = false;  // of latencies: fixed factors for shared links instead of waiting
  int stage_width = 1;         // most segments at once on one device
  StageTimes stage_times = StageTimes::kUsual;  // of a width above 1
  // For the objective cold latency.
  bool host_access = false;      // segments may read their parameters in host memory
  bool drop_parameters = false;  // parameters may leave a device after their last use
  std::optional<ResidentParameters> resident;
  // For simulation instances, which bring their own cluster; an error for other inputs.
  std::optional<HiosWorkloadOptions> simulation;
  // For placement workloads (heddle/plan/placement_workload.h), which decide everything except these two and
  // the objective.
  bool contiguous = false;
  int pieces = 1;
};

// The stages measured on one target: pairs of units that ran at once, and the stage model fitted to them.
struct MeasuredStages {
  std::string target;
  std::vector<std::pair<OpId, OpId>> pairs;
  std::vector<StageSample> samples;  // of the pairs
  StageFit fit;
};

// A model on a cluster: its problem, and the sources of the problem's numbers. Not thread-safe.
struct Session {
  LoadedModel loaded;
  std::shared_ptr<const Cluster> cluster;
  std::shared_ptr<const Graph> units;   // what is placed, in the model's own types; null: problem.graph
  Problem problem;                      // over the units
  std::shared_ptr<ProfileStore> store;  // null if nothing here can be measured
  bool may_measure = false;
  ProfileSummary profiled;             // of the units
  ProfileSummary host_access;          // of the units that read parameters in place
  std::vector<MeasuredStages> stages;  // one of each target, if stages were measured
  // With a budget: the samples that errors are measured on. problem.precision holds what was chosen.
  std::shared_ptr<const Samples> samples;
  DecisionRules decisions;
};

// Loads, groups ops into units, measures missing times (if the device is here and the model is real) and
// builds the cost table. A cancellation while measuring leaves the remaining times estimated. Invalid
// settings are invalid input, and the error names the field.
Result<Session> open_session(const ModelSpec& source, const ProblemSettings& settings,
                             const Control& control);
// The same with what load_model(source) gave, for several sessions of one model.
Result<Session> open_session(const ModelSpec& source, LoadedModel loaded, const ProblemSettings& settings,
                             const Control& control);

// A session of a whole problem, whose times and devices are its own: nothing is grouped or measured.
Session session_of(Problem problem);

// The same units on another cluster, with the costs there. Nothing is measured.
Result<Problem> with_cluster(const Session& session, const std::shared_ptr<const Cluster>& cluster,
                             const ProblemSettings& settings);

// The session's problem after changes of its hardware, one after the other, by edit_problem(): devices keep their own
// times and whether the plan may use them. Nothing is measured.
Result<Problem> with_edits(const Session& session, const std::vector<ProblemEdit>& edits,
                           const ProblemSettings& settings);

// Measures (for at least `min_s` seconds each) the segments of units that the profile store does not have,
// and puts all known times into the problem's costs. Does nothing if session.may_measure is false. `what`
// names the work in the progress.
Result<ProfileSummary> measure_segments(Session& session, const std::vector<ProfileRequest>& wanted,
                                        double min_s, const std::string& what, const Control& control,
                                        const MeasureConditions& conditions = {});

struct SearchSettings {
  double time_limit_s = 10;
  uint64_t seed = 1;
  int threads = 1;
  int subgraph_slots = 6, dominators = 1;  // as PlannerOptions has them
};
// The time limit begins now.
PlannerOptions planner_options(const SearchSettings& search, const Control& control);

// The planner of that name; invalid input if there is none.
Result<const PlannerEntry*> planner_named(const std::string& name);

// Runs one planner. If the devices are here, it also measures each segment of several units as it would run,
// puts the time into the problem's costs and plans again, until all segments of the plan are measured.
// session.problem is updated, and the result is the best plan under the final costs. After a cancellation:
// the best plan so far, with its StopReason. With a budget (VariantSettings) the plan's error is measured, and units
// lose their narrower types, the worst first, until the plan keeps to it; infeasible, with the least error that
// was reached, if none does.
Result<PlanResult> make_plan(Session& session, const std::string& planner, const SearchSettings& search,
                             const Control& control);

// The plan of the file's own stages (IOS's form), on devices that run as many segments at once as the stages need. The
// session's problem must have the file's ops. `path` is for errors: those of plan_of_ios_stages().
Result<PlanResult> plan_as_scheduled(Session& session, const std::string& path);

// A result as the file that `heddle verify`, `explain` and `run` read.
PlanFile plan_file(const Problem& problem, const PlanResult& result, uint64_t seed);

// HIOS's simulation on every usable device, for stages of up to `width` segments: t(S) with serial = overlap
// = 1/2, and the utilizations that the graph gives. For ops without one: the part of the op's time that is
// not the device's launch overhead.
void simulate_stages(Problem& problem, int width);

// Puts the times of units that read their parameters in place into a table of the problem's costs, if the
// session's store has them. O(units x devices x log store).
void put_host_access(const Session& session, const Problem& problem, CostTable& costs);

}  // namespace heddle
