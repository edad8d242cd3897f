// Columns: all single-batch pipelines of a model that meet its deadline, without pool sizes. Every planner
// but the literal MILP chooses among them.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "heddle/fleet/fleet_plan.h"

namespace heddle {

inline constexpr int kTwelfths = 12;  // of a device: every share is a whole number of them

struct ColumnStage {
  int block_from = 0, block_to = 0, device_class = 0, share = 1;
  double rate_per_s = 0;  // X_k: of one virtual device
};

struct Column {
  int batch = 1, stages = 0;
  std::array<ColumnStage, kMaxPartitions> stage;

  // Devices of the class for a rate of one request per second, virtual devices counted as fractions.
  double devices_per_rate(int device_class) const;
  // min over stages of counts * X.
  double rate(const std::array<int64_t, kMaxPartitions>& counts) const;
};

struct ColumnRules {
  int max_partitions = 2;
  int max_share = kMaxShare;
  std::vector<bool> classes;  // that may be used; empty: those with a count above 0
};
ColumnRules rules_of(const Fleet& fleet);

// Those columns that no other with the same classes and shares dominates (each X at least as great), in a
// fixed order. Infeasible: none meets the deadline; the error names the model, its fastest class and by how
// much it is late. Visits every (batch, cuts, classes, shares) that can still meet the deadline; above 50
// million it is refused.
Result<std::vector<Column>> columns_of(const Fleet& fleet, size_t model, const ColumnRules& rules,
                                       const Deadline& deadline);
// Of every model.
Result<std::vector<std::vector<Column>>> all_columns(const Fleet& fleet, const ColumnRules& rules,
                                                     const Deadline& deadline);

// What arrives in front of a full batch takes this long to arrive, in us.
double batch_delay_us(const Fleet& fleet, size_t model, int batch);

// The configuration of a pipeline; none when it cannot run in this fleet in time: a class without devices, a
// share or time that is missing, too little memory, the deadline.
std::optional<Column> column_of(const Fleet& fleet, size_t model, const FleetPipeline& pipeline);
bool same_column(const Column& a, const Column& b);

FleetPipeline make_pipeline(const Column& column, const std::array<int64_t, kMaxPartitions>& counts);
// Pipelines of one configuration become one with their pools added up: never slower, never more devices.
void merge_pipelines(std::vector<FleetPipeline>& pipelines);

}  // namespace heddle
