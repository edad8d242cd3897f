#include "heddle/fleet/ppipe_data.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/csv.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"

namespace heddle {
namespace {

constexpr double kMax = 1e15;
constexpr double kGbit_bytes = 1e9 / 8;  // 1 Gbit/s in bytes/s

int index_of(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  names.push_back(name);
  return static_cast<int>(names.size()) - 1;
}

FleetModel* model_named(PpipeData& data, const std::string& name) {
  for (auto& m : data.models)
    if (m.name == name) return &m;
  return nullptr;
}

Status read_clusters(const std::string& folder, PpipeData& data) {
  const auto path = folder + "/clusters.json";
  HEDDLE_ASSIGN_OR_RETURN(const auto json, read_json_file(path));
  const auto read = [&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const auto list, JsonCursor(json).at("clusters"));
    HEDDLE_ASSIGN_OR_RETURN(const auto clusters, list.elements(1000));
    for (const auto& at : clusters) {
      Fleet fleet;
      HEDDLE_ASSIGN_OR_RETURN(const auto name, at.at("name"));
      HEDDLE_ASSIGN_OR_RETURN(fleet.name, name.as_string());
      HEDDLE_ASSIGN_OR_RETURN(const auto gbit, at.number_or("bandwidth_gbps", -1, 1e-6, 1e6));
      if (gbit < 0) return at.error("there is no bandwidth_gbps");
      HEDDLE_ASSIGN_OR_RETURN(const auto partitions, at.int_or("max_partitions", 2, 1, kMaxPartitions));
      fleet.max_partitions = static_cast<int>(partitions);
      HEDDLE_ASSIGN_OR_RETURN(const auto gpus_at, at.at("gpus"));
      HEDDLE_ASSIGN_OR_RETURN(const auto gpus, gpus_at.elements(kMaxFleetClasses));
      for (const auto& gpu : gpus) {
        DeviceClass c;
        HEDDLE_ASSIGN_OR_RETURN(const auto type, gpu.at("type"));
        HEDDLE_ASSIGN_OR_RETURN(c.name, type.as_string());
        HEDDLE_ASSIGN_OR_RETURN(c.count, gpu.int_or("count", 0, 0, kMaxFleetDevices));
        HEDDLE_ASSIGN_OR_RETURN(const auto levels, gpu.int_or("vgpu_levels", 1, 1, kMaxShare));
        HEDDLE_ASSIGN_OR_RETURN(const auto per_server, gpu.int_or("gpus_per_server", 1, 1, 1024));
        c.share_levels = static_cast<int>(levels);
        c.devices_per_server = static_cast<int>(per_server);
        c.nic_bytes_per_s = gbit * kGbit_bytes;
        fleet.classes.push_back(std::move(c));
      }
      data.clusters.push_back(std::move(fleet));
    }
    return {};
  };
  auto status = read();
  return status.ok() ? status : Status(std::move(status).error().with_context(path));
}

Status read_models(const std::string& folder, PpipeData& data) {
  const auto path = folder + "/models.json";
  HEDDLE_ASSIGN_OR_RETURN(const auto json, read_json_file(path));
  const auto read = [&]() -> Status {
    const JsonCursor root(json);
    HEDDLE_ASSIGN_OR_RETURN(const auto margin_at, root.at("margin"));
    HEDDLE_ASSIGN_OR_RETURN(const auto margin, margin_at.number_or("main", 0.4, 0, 0.999));
    HEDDLE_ASSIGN_OR_RETURN(const auto list, root.at("models"));
    HEDDLE_ASSIGN_OR_RETURN(const auto models, list.elements(10'000));
    for (const auto& at : models) {
      FleetModel m;
      HEDDLE_ASSIGN_OR_RETURN(const auto name, at.at("dnn"));
      HEDDLE_ASSIGN_OR_RETURN(m.name, name.as_string());
      HEDDLE_ASSIGN_OR_RETURN(const auto blocks, at.at("n_blocks"));
      HEDDLE_ASSIGN_OR_RETURN(const auto n, blocks.as_int(1, kMaxBlocks));
      m.blocks = static_cast<int>(n);
      HEDDLE_ASSIGN_OR_RETURN(const auto slo, at.at("slo_us"));
      HEDDLE_ASSIGN_OR_RETURN(m.slo_us, slo.as_number(1e-9, kMax));
      m.margin_us = std::nearbyint(margin * m.slo_us);
      m.cut_bytes.assign(static_cast<size_t>(m.blocks) + 1, NAN);
      data.models.push_back(std::move(m));
    }
    if (root.has("groups")) {
      HEDDLE_ASSIGN_OR_RETURN(const auto groups, root.at("groups"));
      for (const auto& [name, unused] : groups.value().items()) {
        PpipeGroup group{name, {}};
        HEDDLE_ASSIGN_OR_RETURN(const auto at, groups.at(name));
        HEDDLE_ASSIGN_OR_RETURN(group.models, at.as_strings());
        data.groups.push_back(std::move(group));
      }
    }
    if (root.has("workloads")) {
      HEDDLE_ASSIGN_OR_RETURN(const auto workloads, root.at("workloads"));
      if (workloads.value().is_object() && !workloads.value().empty()) {
        HEDDLE_ASSIGN_OR_RETURN(const auto first, workloads.at(workloads.value().begin().key()));
        HEDDLE_ASSIGN_OR_RETURN(const auto weights, first.at("weights"));
        HEDDLE_ASSIGN_OR_RETURN(data.weights, weights.as_numbers(1e-9, kMax));
      }
    }
    return {};
  };
  auto status = read();
  return status.ok() ? status : Status(std::move(status).error().with_context(path));
}

Status read_cuts(const std::string& folder, PpipeData& data) {
  HEDDLE_ASSIGN_OR_RETURN(const auto table, CsvTable::read(folder + "/cuts.csv"));
  for (size_t row = 0; row < table.rows(); ++row) {
    HEDDLE_ASSIGN_OR_RETURN(const auto dnn, table.text(row, "dnn"));
    auto* model = model_named(data, dnn);
    if (model == nullptr) return table.error(row, "models.json has no model " + quote_text(dnn));
    HEDDLE_ASSIGN_OR_RETURN(const auto cut, table.whole(row, "cut", 0, model->blocks));
    HEDDLE_ASSIGN_OR_RETURN(model->cut_bytes[static_cast<size_t>(cut)],
                            table.number(row, "wire_bytes", 0, kMax));
  }
  for (const auto& m : data.models)
    for (size_t k = 0; k < m.cut_bytes.size(); ++k)
      if (std::isnan(m.cut_bytes[k]))
        return Error(Code::kInvalidInput,
                     "model " + quote_text(m.name) + " has no row for cut " + std::to_string(k))
            .with_context(folder + "/cuts.csv");
  return {};
}

Status read_timings(const std::string& folder, PpipeData& data) {
  HEDDLE_ASSIGN_OR_RETURN(const auto table, CsvTable::read(folder + "/block_timing.csv"));
  for (size_t row = 0; row < table.rows(); ++row) {
    HEDDLE_ASSIGN_OR_RETURN(const auto dnn, table.text(row, "dnn"));
    auto* model = model_named(data, dnn);
    if (model == nullptr) return table.error(row, "models.json has no model " + quote_text(dnn));
    HEDDLE_ASSIGN_OR_RETURN(const auto gpu, table.text(row, "gpu"));
    HEDDLE_ASSIGN_OR_RETURN(const auto share, table.whole(row, "vgpu", 1, kMaxShare));
    HEDDLE_ASSIGN_OR_RETURN(const auto batch, table.whole(row, "batch", 1, kMaxFleetBatch));
    HEDDLE_ASSIGN_OR_RETURN(const auto block, table.whole(row, "block", 0, model->blocks - 1));
    HEDDLE_ASSIGN_OR_RETURN(const auto latency, table.number(row, "latency_us", 0, kMax));
    const auto c = static_cast<size_t>(index_of(data.class_names, gpu));
    if (data.class_names.size() > static_cast<size_t>(kMaxFleetClasses))
      return table.error(row, "more than " + std::to_string(kMaxFleetClasses) + " kinds of GPU");
    auto& times = model->latency_us;
    times.resize(std::max(times.size(), c + 1));
    times[c].resize(std::max(times[c].size(), static_cast<size_t>(share)));
    auto& of_share = times[c][static_cast<size_t>(share) - 1];
    of_share.resize(std::max(of_share.size(), static_cast<size_t>(batch)));
    auto& blocks = of_share[static_cast<size_t>(batch) - 1];
    if (blocks.empty()) blocks.assign(static_cast<size_t>(model->blocks), NAN);
    blocks[static_cast<size_t>(block)] = std::max(1.0, latency);
  }
  for (auto& m : data.models) m.latency_us.resize(data.class_names.size());
  return {};
}

// A copy of the model with the times of these classes.
FleetModel for_classes(const FleetModel& model, const PpipeData& data,
                       const std::vector<DeviceClass>& classes) {
  FleetModel m = model;
  m.latency_us.assign(classes.size(), {});
  for (size_t c = 0; c < classes.size(); ++c) {
    const auto found = std::find(data.class_names.begin(), data.class_names.end(), classes[c].name);
    if (found != data.class_names.end())
      m.latency_us[c] = model.latency_us[static_cast<size_t>(found - data.class_names.begin())];
  }
  return m;
}

Status add_models(const PpipeData& data, const std::vector<std::string>& models,
                  const std::vector<double>& weights, Fleet& fleet) {
  if (!weights.empty() && weights.size() != models.size())
    return Error(Code::kInvalidInput, std::to_string(models.size()) + " models have " +
                                          std::to_string(weights.size()) +
                                          " weights; expected as many or none");
  std::vector<std::string> names;
  for (const auto& m : data.models) names.push_back(m.name);
  for (size_t i = 0; i < models.size(); ++i) {
    const auto found = std::find(names.begin(), names.end(), models[i]);
    if (found == names.end())
      return Error(Code::kNotFound,
                   "no model is named " + quote_text(models[i]) + did_you_mean(models[i], names));
    fleet.models.push_back(
        for_classes(data.models[static_cast<size_t>(found - names.begin())], data, fleet.classes));
    fleet.models.back().weight = weights.empty() ? 1 : weights[i];
  }
  return check_fleet(fleet);
}

}  // namespace

Result<PpipeData> read_ppipe_data(const std::string& folder) {
  PpipeData data;
  HEDDLE_RETURN_IF_ERROR(read_clusters(folder, data));
  HEDDLE_RETURN_IF_ERROR(read_models(folder, data));
  HEDDLE_RETURN_IF_ERROR(read_cuts(folder, data));
  HEDDLE_RETURN_IF_ERROR(read_timings(folder, data));
  return data;
}

Result<Fleet> ppipe_fleet(const PpipeData& data, const std::string& cluster,
                          const std::vector<std::string>& models, const std::vector<double>& weights) {
  std::vector<std::string> names;
  for (const auto& c : data.clusters) names.push_back(c.name);
  const auto found = std::find(names.begin(), names.end(), cluster);
  if (found == names.end())
    return Error(Code::kNotFound, "no cluster is named " + quote_text(cluster) +
                                      did_you_mean(cluster, names) + "; there are " + join_names(names));
  Fleet fleet = data.clusters[static_cast<size_t>(found - names.begin())];
  HEDDLE_RETURN_IF_ERROR(add_models(data, models, weights, fleet));
  return fleet;
}

Result<Fleet> ppipe_mixed_fleet(const PpipeData& data,
                                const std::vector<std::pair<std::string, int64_t>>& counts,
                                const std::vector<std::string>& models, const std::vector<double>& weights) {
  Fleet fleet;
  for (const auto& [name, count] : counts) {
    const DeviceClass* found = nullptr;
    for (const auto& cluster : data.clusters) {
      const int c = cluster.class_named(name);
      if (c >= 0 && found == nullptr) found = &cluster.classes[static_cast<size_t>(c)];
    }
    if (found == nullptr) return Error(Code::kNotFound, "no cluster has a class named " + quote_text(name));
    fleet.classes.push_back(*found);
    fleet.classes.back().count = count;
    fleet.name += (fleet.name.empty() ? "" : "+") + name;
  }
  HEDDLE_RETURN_IF_ERROR(add_models(data, models, weights, fleet));
  return fleet;
}

}  // namespace heddle
