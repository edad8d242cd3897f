// Reads the published plans, each with the instance that its row describes.
#include <algorithm>

#include "heddle/base/csv.h"
#include "heddle/base/file.h"
#include "heddle/base/spelling.h"
#include "heddle/fleet/ppipe_data.h"

namespace heddle {
namespace {

constexpr double kMostReferenceValue = 1e15;
constexpr double kGbit = 1e9 / 8;

Result<Fleet> row_fleet(const PpipeData& data, const CsvTable& table, size_t row) {
  Fleet fleet;
  HEDDLE_ASSIGN_OR_RETURN(fleet.name, table.text(row, "plan_id"));
  HEDDLE_ASSIGN_OR_RETURN(const auto partitions, table.whole(row, "max_partitions", 1, kMaxPartitions));
  fleet.max_partitions = static_cast<int>(partitions);
  HEDDLE_ASSIGN_OR_RETURN(const auto gbit, table.number(row, "bw_gbps", 1e-6, 1e6));
  for (int k = 0; table.has("gpu" + std::to_string(k)); ++k) {
    const auto n = std::to_string(k);
    DeviceClass c;
    HEDDLE_ASSIGN_OR_RETURN(c.name, table.text(row, "gpu" + n));
    if (c.name.empty()) continue;
    HEDDLE_ASSIGN_OR_RETURN(c.count, table.whole(row, "count" + n, 0, kMaxFleetDevices));
    HEDDLE_ASSIGN_OR_RETURN(const auto levels, table.whole(row, "vgpu_levels" + n, 1, kMaxShare));
    HEDDLE_ASSIGN_OR_RETURN(const auto per_server, table.whole(row, "gpus_per_server" + n, 1, 1024));
    c.share_levels = static_cast<int>(levels);
    c.devices_per_server = static_cast<int>(per_server);
    c.nic_bytes_per_s = gbit * kGbit;
    fleet.classes.push_back(std::move(c));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto models, table.whole(row, "n_dnn", 1, kMaxFleetModels));
  for (int64_t d = 0; d < models; ++d) {
    const auto n = std::to_string(d);
    HEDDLE_ASSIGN_OR_RETURN(const auto name, table.text(row, "dnn" + n));
    const auto found = std::find_if(data.models.begin(), data.models.end(),
                                    [&](const FleetModel& m) { return m.name == name; });
    if (found == data.models.end()) return table.error(row, "models.json has no model " + quote_text(name));
    FleetModel m = *found;
    m.latency_us.assign(fleet.classes.size(), {});
    for (size_t c = 0; c < fleet.classes.size(); ++c) {
      const auto at = std::find(data.class_names.begin(), data.class_names.end(), fleet.classes[c].name);
      if (at != data.class_names.end())
        m.latency_us[c] = found->latency_us[static_cast<size_t>(at - data.class_names.begin())];
    }
    HEDDLE_ASSIGN_OR_RETURN(m.weight, table.number(row, "weight" + n, 1e-9, kMostReferenceValue));
    HEDDLE_ASSIGN_OR_RETURN(m.slo_us, table.number(row, "slo_us" + n, 1e-9, kMostReferenceValue));
    HEDDLE_ASSIGN_OR_RETURN(m.margin_us, table.number(row, "margin_us" + n, 0, kMostReferenceValue));
    HEDDLE_ASSIGN_OR_RETURN(m.estimated_rate_per_s, table.number(row, "est_rps" + n, 0, kMostReferenceValue));
    fleet.models.push_back(std::move(m));
  }
  auto status = check_fleet(fleet);
  if (!status.ok()) return table.error(row, status.error().to_string());
  return fleet;
}

Status read_pools(const std::string& path, std::vector<PpipeReference>& references) {
  HEDDLE_ASSIGN_OR_RETURN(const auto table, CsvTable::read(path));
  for (size_t row = 0; row < table.rows(); ++row) {
    HEDDLE_ASSIGN_OR_RETURN(const auto id, table.text(row, "plan_id"));
    const auto found =
        std::find_if(references.begin(), references.end(), [&](const auto& r) { return r.plan_id == id; });
    if (found == references.end()) continue;  // belongs to another table
    auto& fleet = found->fleet;
    HEDDLE_ASSIGN_OR_RETURN(const auto dnn, table.text(row, "dnn"));
    const int m = fleet.model_named(dnn);
    if (m < 0) return table.error(row, "plan " + quote_text(id) + " has no model " + quote_text(dnn));
    HEDDLE_ASSIGN_OR_RETURN(const auto gpu, table.text(row, "gpu"));
    const int c = fleet.class_named(gpu);
    if (c < 0) return table.error(row, "plan " + quote_text(id) + " has no class " + quote_text(gpu));
    auto& pipelines = found->plan.models[static_cast<size_t>(m)].pipelines;
    HEDDLE_ASSIGN_OR_RETURN(const auto pipeline, table.whole(row, "pipeline", 0, 100'000));
    if (static_cast<size_t>(pipeline) > pipelines.size())
      return table.error(row, "pipeline " + std::to_string(pipeline) + " comes before pipeline " +
                                  std::to_string(pipelines.size()));
    if (static_cast<size_t>(pipeline) == pipelines.size()) pipelines.emplace_back();
    auto& p = pipelines[static_cast<size_t>(pipeline)];
    const int blocks = fleet.models[static_cast<size_t>(m)].blocks;
    HEDDLE_ASSIGN_OR_RETURN(const auto from, table.whole(row, "block_from", 0, blocks - 1));
    HEDDLE_ASSIGN_OR_RETURN(const auto to, table.whole(row, "block_to", from + 1, blocks));
    HEDDLE_ASSIGN_OR_RETURN(const auto share, table.whole(row, "vgpu", 1, kMaxShare));
    HEDDLE_ASSIGN_OR_RETURN(const auto batch, table.whole(row, "batch", 1, kMaxFleetBatch));
    HEDDLE_ASSIGN_OR_RETURN(const auto count, table.whole(row, "n_vgpu", 1, kMaxFleetDevices * kMaxShare));
    if (!p.partitions.empty() && p.batch != batch) return table.error(row, "a pipeline has two batch sizes");
    p.batch = static_cast<int>(batch);
    p.partitions.push_back({static_cast<int>(from), static_cast<int>(to), c, static_cast<int>(share), count});
  }
  return {};
}

}  // namespace

std::string ppipe_pools_path(const std::string& folder, const std::string& csv) {
  auto path = csv.empty() ? folder + "/ppipe_reference.csv" : csv;
  if (path.ends_with(".csv")) path.resize(path.size() - 4);
  return path + "_pools.csv";
}

Result<std::vector<PpipeReference>> read_ppipe_references(const PpipeData& data, const std::string& folder,
                                                          const std::string& csv) {
  const auto path = csv.empty() ? folder + "/ppipe_reference.csv" : csv;
  HEDDLE_ASSIGN_OR_RETURN(const auto table, CsvTable::read(path));
  std::vector<PpipeReference> references;
  for (size_t row = 0; row < table.rows(); ++row) {
    PpipeReference r;
    HEDDLE_ASSIGN_OR_RETURN(r.plan_id, table.text(row, "plan_id"));
    HEDDLE_ASSIGN_OR_RETURN(r.cluster, table.text(row, "cluster"));
    HEDDLE_ASSIGN_OR_RETURN(r.group, table.text(row, "group"));
    HEDDLE_ASSIGN_OR_RETURN(r.algorithm, table.text(row, "algorithm"));
    HEDDLE_ASSIGN_OR_RETURN(r.norm_rate, table.number(row, "norm_pool_rps", 0, kMostReferenceValue));
    HEDDLE_ASSIGN_OR_RETURN(r.planning_s, table.number(row, "runtime_s", 0, kMostReferenceValue));
    HEDDLE_ASSIGN_OR_RETURN(r.fleet, row_fleet(data, table, row));
    r.plan.fleet = r.fleet.name;
    r.plan.planner = r.algorithm;
    r.plan.models.resize(r.fleet.models.size());
    references.push_back(std::move(r));
  }
  const auto pools = ppipe_pools_path(folder, csv);
  if (file_exists(pools)) {
    HEDDLE_RETURN_IF_ERROR(read_pools(pools, references));
    for (auto& r : references) evaluate_fleet_plan(r.fleet, r.plan);
  }
  return references;
}

}  // namespace heddle
