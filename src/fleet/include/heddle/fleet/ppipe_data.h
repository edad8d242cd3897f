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
  std::vector<std::string> models;  // in the order of the weights
};

// A published plan and the instance that it was made for.
struct PpipeReference {
  std::string plan_id, cluster, group;
  std::string algorithm;  // "v4" (PPipe), "bl" (NP) or "dart-r", as the data names them
  Fleet fleet;            // with the row's margins, rates and limits
  FleetPlan plan;         // without pools if the table of pools is missing
  double norm_rate = 0;   // smallest rate / weight over the models
  double planning_s = 0;  // the published planning time
};

struct PpipeData {
  std::vector<Fleet> clusters;     // with classes, without models
  std::vector<FleetModel> models;  // all, with SLO and the main margin; latency_us follows class_names
  std::vector<std::string> class_names;
  std::vector<PpipeGroup> groups;
  std::vector<double> weights;  // of the first workload, for groups with as many models
};

// Reads all tables except the plans. Errors name the file and the line. A latency below 1 us counts as 1 us,
// as in the published planner.
Result<PpipeData> read_ppipe_data(const std::string& folder);

// The cluster's classes with these models; weights in the models' order (empty: all 1). An unknown name is an
// error that suggests the nearest one.
Result<Fleet> ppipe_fleet(const PpipeData& data, const std::string& cluster,
                          const std::vector<std::string>& models, const std::vector<double>& weights);

// A fleet of classes from any clusters, with the caller's counts. Each class has the settings of the first
// cluster that contains it.
Result<Fleet> ppipe_mixed_fleet(const PpipeData& data,
                                const std::vector<std::pair<std::string, int64_t>>& counts,
                                const std::vector<std::string>& models, const std::vector<double>& weights);

// The file with the pools of the plans in `csv` (empty: the folder's ppipe_reference.csv), beside it: NAME_pools.csv.
std::string ppipe_pools_path(const std::string& folder, const std::string& csv = {});

// Reads the rows of `csv` (empty: the folder's ppipe_reference.csv), and their pools, if that file exists.
Result<std::vector<PpipeReference>> read_ppipe_references(const PpipeData& data, const std::string& folder,
                                                          const std::string& csv = {});

}  // namespace heddle
