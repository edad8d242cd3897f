// PPipe's public measurements and plans as a folder of tables: block_timing.csv, cuts.csv, clusters.json,
// models.json, ppipe_reference.csv and ppipe_reference_pools.csv. Times in us, rates in requests/s, 1 Gbit/s
// = 1e9 bit/s.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "heddle/fleet/fleet.h"
#include "heddle/fleet/fleet_plan.h"

namespace heddle {

struct PpipeGroup {
  std::string name;
  std::vector<std::string> models;  // in the order that the weights follow
};

// A published plan and the instance that it was made for.
struct PpipeReference {
  std::string plan_id, cluster, group;
  std::string algorithm;  // "v4" (PPipe), "bl" (NP) or "dart-r"
  Fleet fleet;            // with the margins, rates and limits of the row
  FleetPlan plan;         // empty when there are no pools
  double norm_rate = 0;   // least rate / weight over the models
  double planning_s = 0;  // theirs
};

struct PpipeData {
  std::vector<Fleet> clusters;     // their classes; no models
  std::vector<FleetModel> models;  // all, with SLO and the main margin; latency_us by class_names
  std::vector<std::string> class_names;
  std::vector<PpipeGroup> groups;
  std::vector<double> weights;  // of the first workload, for groups of so many models
};

// Reads the tables without the plans. Errors name the file and the line. A latency below 1 us counts as 1 us,
// as in the published planner.
Result<PpipeData> read_ppipe_data(const std::string& folder);

// The cluster's classes with these models; their weights, in order (empty: all 1). Not found: an error with
// the nearest name.
Result<Fleet> ppipe_fleet(const PpipeData& data, const std::string& cluster,
                          const std::vector<std::string>& models, const std::vector<double>& weights);

// Classes of any of the clusters together, each with the settings of the first cluster that has it, and
// counts of the caller's.
Result<Fleet> ppipe_mixed_fleet(const PpipeData& data,
                                const std::vector<std::pair<std::string, int64_t>>& counts,
                                const std::vector<std::string>& models, const std::vector<double>& weights);

// The rows of `csv` (empty: the folder's ppipe_reference.csv); pools are read from the file beside it whose
// name ends in _pools.csv, where there is one.
Result<std::vector<PpipeReference>> read_ppipe_references(const PpipeData& data, const std::string& folder,
                                                          const std::string& csv = {});

}  // namespace heddle
