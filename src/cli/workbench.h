// What the verbs share: from flags to a problem with costs, and from a problem to a plan whose segments were
// measured.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/cost/cost_model.h"
#include "heddle/cost/profile_store.h"
#include "heddle/graph/ios_graph.h"
#include "heddle/graph/model.h"
#include "heddle/plan/plan_file.h"
#include "heddle/plan/problem.h"
#include "heddle/planners/planner.h"
#include "heddle/runtime/profiler.h"
#include "heddle/runtime/stage_fit.h"

namespace heddle::cli {

// Seconds of measuring: for one unit, enough to rank placements; for a segment that a plan may really use.
inline constexpr double kUnitSeconds = 0.06;
inline constexpr double kSegmentSeconds = 0.4;

struct ModelFlags {
  std::string model;
  std::vector<std::string> shapes;  // "NAME=1,3,224,224"
  std::optional<int64_t> batch;
  int64_t split_bytes = 0;
  void declare(Command& command);
  Result<ImportOptions> import_options() const;
};

struct LoadedModel {
  std::string name;
  std::shared_ptr<const Model> model;  // null for graph files and zoo graphs: they can be planned but not run
  std::shared_ptr<const Graph> graph;  // the finest graph
  // The same model at batch 1 where the model is loaded at a larger batch: profiles of all batch sizes share
  // its signatures, so that times between measured batch sizes can be interpolated.
  std::shared_ptr<const Model> base;
  bool ios = false;              // the file has the form of heddle/graph/ios_graph.h...
  std::vector<IosStage> stages;  // ...and may bring a schedule
  bool simulation = false;       // it is a simulation instance (heddle/plan/hios_workload.h)
  bool given = false;            // the file holds a whole problem (heddle/plan/problem_file.h)
};
// load_cluster(), and for preset:local also the devices beside the CPU that OpenVINO finds.
Result<std::shared_ptr<const Cluster>> open_cluster(const std::string& file_or_preset);

// .onnx and what else OpenVINO reads, a graph (.json: Heddle's, IOS's or a simulation instance of HIOS), or
// zoo:NAME[,key=value...].
Result<LoadedModel> load_model(const ModelFlags& flags);

// Under which its segments are filed. `loaded.model` is there.
SignatureFn signature_of(const LoadedModel& loaded);

struct ProblemFlags {
  std::string cluster = "preset:local";
  std::string objective = "latency";
  std::string devices;           // "cpu0,cpu1"; empty: all
  int64_t units = 0;             // at most so many units to place; 0: choose
  std::string coarsen;           // light, none, gcof or gcof:FILE; empty: light, none for graphs with times
  std::string store;             // profile store's file; empty: default
  bool no_profile = false;       // never measure, use what is in the store or estimates
  bool no_contention = false;    // transfers never wait for each other
  std::string transfer;          // simulation instances: source or reader; empty: source
  int64_t stages = 1;            // most segments at once on one device
  std::string stage_model;       // measured, simulated or serial; empty: measured where that is possible
  bool host_access = false;      // cold: segments may read their parameters in host memory
  bool fixed_sharing = false;    // fixed factors for shared links in place of waiting
  bool drop_parameters = false;  // cold: parameters may leave after their last use
  std::string resident;          // cold: a fraction of the parameters, or a file; empty: none
  bool contiguous = false;       // placement workloads, throughput: devices follow one another
  int64_t pieces = 1;            // placement workloads, latency: most segments on an accelerator
  void declare(Command& command);
};

struct SearchFlags {
  double time_limit_s = 10;
  int64_t seed = 1;
  int64_t threads = 1;
  int64_t q = 6, ndom = 1;  // sortinghat and its like
  void declare(Command& command);
  PlannerOptions options(const Invocation& invocation) const;
};

// A problem and where its numbers come from.
struct Workbench {
  LoadedModel loaded;
  std::shared_ptr<const Cluster> cluster;
  Problem problem;                      // over the units
  std::shared_ptr<ProfileStore> store;  // null when nothing here can be measured
  bool may_measure = false;
  ProfileSummary profiled;                                   // of the units
  ProfileSummary host_access;                                // of the units that read parameters in place
  std::vector<std::pair<std::string, StageFit>> stage_fits;  // by target, where stages were measured
};

// Loads, groups ops into units, measures what is missing (where a device is here and the model is real) and
// builds the cost table. Ctrl-C while measuring: goes on with what it has and estimates.
Result<Workbench> make_workbench(const ModelFlags& model, const ProblemFlags& flags,
                                 const Invocation& invocation);

// The same units on another cluster, with its costs. Nothing is measured.
Result<Problem> with_cluster(const Workbench& bench, std::shared_ptr<const Cluster> cluster,
                             const ProblemFlags& flags);

// Measures (for at least `min_s` seconds each) those segments of units that the profile store does not have,
// and puts all that are known into the problem's costs.
Result<ProfileSummary> learn(Workbench& bench, const std::vector<ProfileRequest>& wanted, double min_s,
                             const std::string& what, const Invocation& invocation);

// Runs one planner. Where the devices are here, also measures each multi-unit segment of the plan as it would
// run, puts it into the problem's costs and plans again, until the plan's segments are all measured; the
// workbench's problem is updated, and the result is the best plan under the final costs.
Result<PlanResult> plan_with_measurements(Workbench& bench, const PlannerEntry& entry,
                                          const SearchFlags& search, const Invocation& invocation);

// Can a file be made there? Asked before long work, so that a mistyped folder does not cost it. Empty paths
// are fine.
Status check_output(const std::string& path);

// The planner of that name, or an error that lists them.
Result<const PlannerEntry*> planner_named(const std::string& name);

PlanFile to_plan_file(const Problem& problem, const PlanResult& result, uint64_t seed);

// How many of the cost table's entries have which origin, over usable devices.
std::map<std::string, int> cost_origins(const Problem& problem);

// "12.3 ms" or "81.2 /s", by objective.
std::string value_text(const Problem& problem, double us);
// Fills value_us (latencies) or value_per_s (throughput) and bound in the same unit.
void put_value(Json& row, const Problem& problem, double value_us, double bound_us);

}  // namespace heddle::cli
