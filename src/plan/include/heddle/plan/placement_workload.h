// Placement workloads of Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators"
// (NeurIPS 2020). They have a graph with given times, identical accelerators with limited memory, and CPUs; all traffic
// goes through host memory. docs/placement-workloads.md describes the files and the two objectives.
#pragma once

#include <string>

#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

struct PlacementOptions {
  // kLatency: of one sample; CPU cores are unlimited and one device, "cpus". kThroughput: the largest load of a
  // device is the period; CPUs are devices cpu0, cpu1, ...
  Objective objective = Objective::kLatency;
  bool contiguous = false;  // kThroughput: PlacementRules::contiguous
  int pieces = 1;           // kLatency: at most so many segments on an accelerator (the paper's q)
};

// A unit of the files' times, which carry no name and are consistent with milliseconds.
inline constexpr double kPlacementUnitUs = 1000;

// Whether a document looks like such a workload: it has maxFPGAs, maxCPUs, nodes and edges.
bool is_placement_workload(const Json& json);

// A problem with Transfers::kWithinRuns. Nodes become ops named by their ids, in the file's order; devices are
// accelerator0, accelerator1, ... and the CPUs. Reads untrusted input; every error names the place in the file.
// Refused: options that do not fit the objective, missing, unknown or wrongly typed members, repeated ids or
// edges, edges to nodes that are not there, negative or infinite numbers, out-edges of one node with different
// costs, cycles, a workload without devices. O((V + E) log V).
Result<Problem> placement_workload_from_json(const Json& json, const std::string& name,
                                             const PlacementOptions& options);
// The name is the file's without folder and suffix; errors carry the path.
Result<Problem> read_placement_workload(const std::string& path, const PlacementOptions& options);

// Where each op of such a problem runs.
struct WorkloadPlacement {
  std::vector<DeviceId> device;
  // kLatency: which segment of its accelerator, in their order from 0. Empty: all are in the first.
  std::vector<int32_t> piece;
};

// The plan that places ops so. kLatency: the pieces are segments, ops on CPUs are alone. kThroughput: as few
// segments as an order of them allows. Fails when pieces wait for each other. O((V + E) log V).
Result<Plan> plan_of_placement(const Problem& problem, const WorkloadPlacement& placement);

}  // namespace heddle
