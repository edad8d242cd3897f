#include "heddle/fleet/ppipe_data.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/csv.h"
#include "heddle/base/fields.h"
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

Status read_gpu(const JsonCursor& at, Fleet& fleet) {
  DeviceClass& c = fleet.classes.emplace_back();
  Fields f(at);
  f.required("type", c.name)
      .optional("count", c.count, 0, kMaxFleetDevices)
      .optional("vgpu_levels", c.share_levels, 1, kMaxShare)
      .optional("gpus_per_server", c.devices_per_server, 1, 1024);
  return f.others_ignored().finish();
}

Result<Fleet> read_cluster(const JsonCursor& at) {
  Fleet fleet;
  double gbit = 0;
  Fields f(at);
  f.required("name", fleet.name)
      .required("bandwidth_gbps", gbit, 1e-6, 1e6)
      .optional("max_partitions", fleet.max_partitions, 1, kMaxPartitions)
      .required("gpus", each([&](const JsonCursor& gpu) { return read_gpu(gpu, fleet); }, kMaxFleetClasses));
  HEDDLE_RETURN_IF_ERROR(f.others_ignored().finish());
  for (auto& c : fleet.classes) c.nic_bytes_per_s = gbit * kGbit_bytes;
  return fleet;
}

Result<FleetModel> read_model(const JsonCursor& at, double margin) {
  FleetModel m;
  Fields f(at);
  f.required("dnn", m.name)
      .required("n_blocks", m.blocks, 1, kMaxBlocks)
      .required("slo_us", m.slo_us, 1e-9, kMax);
  HEDDLE_RETURN_IF_ERROR(f.others_ignored().finish());
  m.margin_us = std::nearbyint(margin * m.slo_us);
  m.cut_bytes.assign(static_cast<size_t>(m.blocks) + 1, NAN);
  return m;
}

Status read_models(const Json& json, PpipeData& data) {
  double margin = 0.4;
  Fields f{JsonCursor(json)};
  f.required("margin",
             [&](const JsonCursor& at) {
               Fields margins(at);
               return margins.optional("main", margin, 0, 0.999).others_ignored().finish();
             })
      .required("models",
                each_into(
                    data.models, [&](const JsonCursor& at) { return read_model(at, margin); }, 10'000))
      .optional("groups",
                each_member("an object of lists of models",
                            [&](const std::string& name, const JsonCursor& at) {
                              return take(at, data.groups.emplace_back(PpipeGroup{name, {}}).models);
                            }))
      // The first workload's.
      .optional("workloads",
                each_member("an object of workloads", [&](const std::string&, const JsonCursor& at) {
                  Fields workload(at);
                  if (!data.weights.empty()) return Status();
                  return workload.required("weights", data.weights, 1e-9, kMax).others_ignored().finish();
                }));
  return f.others_ignored().finish();
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
        return invalid_input("model " + quote_text(m.name) + " has no row for cut " + std::to_string(k))
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
    return invalid_input(std::to_string(models.size()) + " models have " + std::to_string(weights.size()) +
                         " weights; expected as many or none");
  std::vector<std::string> names;
  for (const auto& m : data.models) names.push_back(m.name);
  for (size_t i = 0; i < models.size(); ++i) {
    const auto found = std::find(names.begin(), names.end(), models[i]);
    if (found == names.end())
      return not_found("no model is named " + quote_text(models[i]) + did_you_mean(models[i], names));
    fleet.models.push_back(
        for_classes(data.models[static_cast<size_t>(found - names.begin())], data, fleet.classes));
    fleet.models.back().weight = weights.empty() ? 1 : weights[i];
  }
  return check_fleet(fleet);
}

}  // namespace

Result<PpipeData> read_ppipe_data(const std::string& folder) {
  PpipeData data;
  HEDDLE_RETURN_IF_ERROR(read_json_file(folder + "/clusters.json", [&](const Json& json) {
    Fields f{JsonCursor(json)};
    return f.required("clusters", each_into(data.clusters, read_cluster, 1000)).others_ignored().finish();
  }));
  HEDDLE_RETURN_IF_ERROR(
      read_json_file(folder + "/models.json", [&](const Json& json) { return read_models(json, data); }));
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
    return not_found("no cluster is named " + quote_text(cluster) + did_you_mean(cluster, names) +
                     "; there are " + join_names(names));
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
    if (found == nullptr) return not_found("no cluster has a class named " + quote_text(name));
    fleet.classes.push_back(*found);
    fleet.classes.back().count = count;
    fleet.name += (fleet.name.empty() ? "" : "+") + name;
  }
  HEDDLE_RETURN_IF_ERROR(add_models(data, models, weights, fleet));
  return fleet;
}

}  // namespace heddle
