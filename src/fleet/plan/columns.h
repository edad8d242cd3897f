// Columns: all pipelines of a model that meet its deadline, with one batch size and without pool sizes. Every
// planner except ppipe-milp chooses among them.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "fleet_formulas.h"
#include "heddle/base/cancel.h"
#include "heddle/base/status.h"

namespace heddle {

struct ColumnStage {
  int block_from = 0, block_to = 0, device_class = 0, share = 1;
  double rate_per_s = 0;  // X_k, of one virtual device
};

struct Column {
  int batch = 1, stages = 0;
  std::array<ColumnStage, kMaxPartitions> stage;

  // Devices of the class for one request per second; virtual devices count as fractions.
  double devices_per_rate(int device_class) const;
  // min over stages of counts_k * X_k.
  double rate(const std::array<int64_t, kMaxPartitions>& counts) const;
};

struct ColumnRules {
  int max_partitions = 2;
  int max_share = kMaxShare;
  std::vector<bool> classes;  // allowed classes; empty: those with a count above 0
};
ColumnRules rules_of(const Fleet& fleet);

// The columns that no other column with the same classes and shares dominates (every X at least as great), in
// a fixed order. Infeasible if none meets the deadline; the error names the model, its fastest class and by
// how much it is late. Enumerates every (batch, cuts, classes, shares) that can still meet the deadline, and
// fails after 50 million.
Result<std::vector<Column>> columns_of(const Fleet& fleet, size_t model, const ColumnRules& rules,
                                       const Deadline& deadline);
// columns_of() for every model.
Result<std::vector<std::vector<Column>>> all_columns(const Fleet& fleet, const ColumnRules& rules,
                                                     const Deadline& deadline);

// Time until the other requests of a full batch have arrived, in us.
double batch_delay_us(const Fleet& fleet, size_t model, int batch);

// The column of a pipeline; none if the pipeline cannot run in time in this fleet: a class without devices, a
// missing share or time, too little memory, or the deadline.
std::optional<Column> column_of(const Fleet& fleet, size_t model, const FleetPipeline& pipeline);
// Do both have the same batch size and the same partitions, whatever their pools?
bool same_pipeline(const FleetPipeline& a, const FleetPipeline& b);

FleetPipeline make_pipeline(const Column& column, const std::array<int64_t, kMaxPartitions>& counts);
// Merges pipelines of the same column by adding up their pools: never slower, never more devices.
void merge_pipelines(std::vector<FleetPipeline>& pipelines);

}  // namespace heddle
