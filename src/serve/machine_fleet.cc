#include "heddle/serve/machine_fleet.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

#include "heddle/base/spelling.h"
#include "heddle/cluster/discover.h"
#include "heddle/fleet/fleet_check.h"
#include "heddle/fleet/random.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/openvino_devices.h"
#include "heddle/runtime/share_measurer.h"
#include "heddle/serve/fleet_server.h"
#include "local_runner.h"
#include "partition_runner.h"
#include "split_check.h"

namespace heddle {
namespace {

// A model of the fleet as it is loaded: at every batch size that its pipelines run.
struct LoadedFile {
  FleetModelFile file;
  std::shared_ptr<LocalModel> local;
  int max_batch = 0;
  std::vector<TensorValue> inputs, outputs;  // of one random row, by the whole model
};

// What a compiled part is known by.
using PartKey = std::tuple<const LocalModel*, std::vector<int>, std::string, std::vector<int>, bool, double>;

class Machine final : public MachineFleet {
 public:
  explicit Machine(const MachineFleetOptions& options) : options_(options) {}

  Result<std::unique_ptr<Generation>> generation(const Fleet& fleet, const FleetPlan& plan) override {
    HEDDLE_RETURN_IF_ERROR(check_fleet_plan(fleet, plan));
    HEDDLE_ASSIGN_OR_RETURN(auto deployment, deploy(fleet, plan));
    HEDDLE_ASSIGN_OR_RETURN(const auto devices, devices_of(fleet, deployment));
    auto next = std::make_unique<Generation>();
    std::vector<std::shared_ptr<DeviceRunner>> runners(deployment.devices.size());
    std::map<PartKey, std::shared_ptr<PartitionRunner>> parts;
    std::map<std::string, LoadedFile> files;
    for (uint32_t m = 0; m < deployment.models.size(); ++m) {
      const FleetModel& model = fleet.models[m];
      if (model.file.path.empty()) {
        next->models.push_back(timed_model(deployment.models[m], false));
        continue;
      }
      auto served = serve_file(fleet, m, deployment, devices, files, parts, runners);
      if (!served.ok()) return std::move(served).error().with_context("model '" + model.name + "'");
      next->models.push_back(std::move(*served));
    }
    next->fleet = fleet;
    next->plan = plan;
    HEDDLE_ASSIGN_OR_RETURN(next->plane,
                            LivePlane::create(std::move(deployment), options_.plane, std::move(runners)));
    files_ = std::move(files);
    parts_ = std::move(parts);
    if (options_.progress) options_.progress->finish();
    options_.progress = nullptr;  // later generations are made while others are served
    options_.deadline = {};
    return next;
  }

 private:
  void report(const std::string& what) const {
    if (options_.progress) options_.progress->report({.what = what});
  }

  // The machine's device behind each virtual device that is used by a model with a file.
  Result<std::vector<Device>> devices_of(const Fleet& fleet, const Deployment& deployment) {
    if (!cluster_ && has_model_files(fleet)) {
      HEDDLE_ASSIGN_OR_RETURN(cluster_, discover_local(openvino_other_devices(), local_gpus()));
    }
    std::vector<Device> devices(deployment.devices.size());
    std::map<int, std::pair<std::string, std::string>> owner;  // of a core: device, class
    std::map<uint32_t, double> taken;                          // of a whole device
    for (const auto& p : deployment.pipelines) {
      if (fleet.models[p.model].file.path.empty()) continue;
      for (const auto& pool : p.partitions)
        for (uint32_t v = pool.first_device; v < pool.first_device + pool.num_devices; ++v) {
          const auto& virtual_device = deployment.devices[v];
          const auto& c = fleet.classes[virtual_device.device_class];
          const auto& laid_out = deployment.classes[virtual_device.device_class];
          if (c.devices.empty())
            return Error(
                Code::kInvalidInput,
                "model '" + fleet.models[p.model].name + "' has a file, but class '" + c.name +
                    "' of its plan names no devices of this machine; give it \"devices\", or take the "
                    "model's \"file\" away to serve it by timed devices");
          HEDDLE_ASSIGN_OR_RETURN(const auto whole,
                                  device_named(c.devices[virtual_device.device - laid_out.first_device], c));
          for (const int core : whole.cores) {
            const auto& [name, of] = owner.emplace(core, std::pair(whole.name, c.name)).first->second;
            if (name != whole.name || of != c.name)
              return Error(Code::kInvalidInput, "devices '" + name + "' of class '" + of + "' and '" +
                                                    whole.name + "' of class '" + c.name + "' share core " +
                                                    std::to_string(core) +
                                                    "; a core can be in one device of a plan");
          }
          const auto share = static_cast<int>(virtual_device.share);
          double& used = taken[virtual_device.device];
          const int part = static_cast<int>(std::ceil(used * share - 1e-9));
          used = static_cast<double>(part + 1) / share;
          if (share > 1 && (whole.cores.size() < virtual_device.share || part >= share))
            return Error(Code::kInvalidInput,
                         "device '" + whole.name + "' of class '" + c.name + "' has " +
                             std::to_string(whole.cores.size()) + " cores and cannot be split so, 1/" +
                             std::to_string(share) + " among others; profile with fewer --share-levels");
          devices[v] = share > 1 ? device_part(whole, part, share) : whole;
        }
    }
    return devices;
  }

  Result<Device> device_named(const std::string& name, const DeviceClass& c) const {
    std::vector<std::string> names;
    for (const auto& d : cluster_->devices()) {
      if (d.name == name) return d;
      names.push_back(d.name);
    }
    return Error(Code::kInvalidInput, "class '" + c.name + "' names the device '" + name + "'" +
                                          did_you_mean(name, names) + "; this machine has " +
                                          join_names(names, 40));
  }

  // Loads the model as it is, or keeps what the last generation had of it.
  Result<LoadedFile> load(const FleetModel& model, int max_batch, const Device& device) {
    const auto& file = model.file;
    if (const auto it = files_.find(model.name); it != files_.end()) {
      const auto& had = it->second;
      if (had.file.path == file.path && had.file.hash == file.hash && had.file.shapes == file.shapes &&
          had.max_batch >= max_batch)
        return had;
    }
    report("loading " + model.name);
    ModelSource source;
    source.name = model.name;
    source.version = "1";
    source.path = file.path;
    source.settings.shapes = file.shapes;
    source.settings.max_batch = max_batch;
    std::vector<int> sizes;
    for (int b = 1; b <= max_batch; ++b) sizes.push_back(b);
    LoadedFile loaded;
    loaded.file = file;
    loaded.max_batch = max_batch;
    HEDDLE_ASSIGN_OR_RETURN(loaded.local, load_local_model(source, sizes));
    if (loaded.local->sizes.at(1)->file_hash() != file.hash)
      return Error(Code::kInvalidInput, file.path +
                                            ": is another file than the one that was profiled; run `heddle "
                                            "fleet profile` again");
    const auto ops = loaded.local->sizes.at(1)->graph()->num_ops();
    if (ops != file.block_of.size())
      return Error(Code::kInvalidInput, file.path + ": has " + std::to_string(ops) +
                                            " ops, and the fleet file puts " +
                                            std::to_string(file.block_of.size()) +
                                            " into blocks; run `heddle fleet profile` again");
    if (static_cast<int>(loaded.local->sizes.size()) < max_batch)
      return Error(Code::kInvalidInput, "the plan runs batches of " + std::to_string(max_batch) +
                                            ", and the model has no dimension for a batch; plan for batch 1 "
                                            "(profile with --batches 1)");
    report("checking " + model.name);
    HEDDLE_ASSIGN_OR_RETURN(const auto whole, LocalRunner::create(loaded.local, device));
    if (max_batch > 1) {
      if (const auto rows = whole->check_rows(); !rows.ok())
        return Error(rows.error().code(), rows.error().message() +
                                              ": requests must not share a batch; plan for batch 1 "
                                              "(profile with --batches 1)");
    }
    HEDDLE_RETURN_IF_ERROR(run_whole(*whole, *loaded.local, loaded.inputs, loaded.outputs));
    return loaded;
  }

  Result<std::shared_ptr<const ServedModel>> serve_file(
      const Fleet& fleet, uint32_t m, const Deployment& deployment, const std::vector<Device>& devices,
      std::map<std::string, LoadedFile>& files, std::map<PartKey, std::shared_ptr<PartitionRunner>>& parts,
      std::vector<std::shared_ptr<DeviceRunner>>& runners) {
    const FleetModel& model = fleet.models[m];
    int max_batch = 1;
    const Device* first = nullptr;
    for (const auto& p : deployment.pipelines) {
      if (p.model != m) continue;
      max_batch = std::max(max_batch, static_cast<int>(p.batch));
      if (first == nullptr) first = &devices[p.partitions.front().first_device];
    }
    if (first == nullptr) return Error(Code::kInfeasible, "the plan has no pipeline for it");
    HEDDLE_ASSIGN_OR_RETURN(auto loaded, load(model, max_batch, *first));
    SplitDifference worst;
    bool split = false;
    for (const auto& p : deployment.pipelines) {
      if (p.model != m) continue;
      std::vector<PartitionRunner*> chain;
      for (const auto& pool : p.partitions) {
        const auto& c = fleet.classes[deployment.devices[pool.first_device].device_class];
        for (uint32_t v = pool.first_device; v < pool.first_device + pool.num_devices; ++v) {
          HEDDLE_ASSIGN_OR_RETURN(auto part,
                                  part_of(model, loaded, pool.role, devices[v], c.slowdown, parts));
          if (v == pool.first_device) chain.push_back(part.get());
          runners[v] = std::move(part);
        }
      }
      split = split || chain.size() > 1;
      HEDDLE_ASSIGN_OR_RETURN(const auto difference,
                              run_split(chain, *loaded.local, loaded.inputs, loaded.outputs));
      worst = std::max(worst, difference);
    }
    if (worst.relative > (model.file.fp16_cuts ? kMostHalfDifference : kMostSplitDifference))
      return Error(
          Code::kVerificationFailed,
          "cut into parts its outputs differ from the whole model's by " + number(worst.relative) +
              " of the largest output" +
              (model.file.fp16_cuts ? "; its feature maps do not bear fp16, take \"feature_maps\" away"
                                    : ""));
    auto served = std::make_shared<ServedModel>(loaded.local->served);
    served->slo_us = us_from_ns(deployment.models[m].slo_ns);
    if (split)
      served->note = std::string(model.file.fp16_cuts ? "feature maps in fp16: " : "in parts: ") +
                     "outputs differ from the whole model's by at most " + number(worst.relative) +
                     " of the largest, on a random request";
    files[model.name] = std::move(loaded);
    return std::shared_ptr<const ServedModel>(std::move(served));
  }

  Result<std::shared_ptr<PartitionRunner>> part_of(
      const FleetModel& model, const LoadedFile& loaded, const PoolRole& role, const Device& device,
      double slowdown, std::map<PartKey, std::shared_ptr<PartitionRunner>>& parts) {
    std::vector<OpId> ops;
    std::vector<int> blocks;
    for (size_t op = 0; op < model.file.block_of.size(); ++op) {
      const int block = model.file.block_of[op];
      if (block >= role.block_from && block < role.block_to) ops.emplace_back(op);
    }
    for (const auto op : ops) blocks.push_back(static_cast<int>(op.index()));
    PartKey key(loaded.local.get(), std::move(blocks), device.name, device.cores, model.file.fp16_cuts,
                slowdown);
    if (const auto it = parts_.find(key); it != parts_.end()) return parts.emplace(*it).first->second;
    if (options_.deadline.should_stop()) return Error(Code::kCancelled, "stopped while compiling");
    report("compiling " + model.name + " for " + device.name);
    HEDDLE_ASSIGN_OR_RETURN(auto part, PartitionRunner::create(loaded.local, std::move(ops), device,
                                                               {model.file.fp16_cuts, slowdown}));
    return parts.emplace(std::move(key), std::move(part)).first->second;
  }

  static std::string number(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2g", v);
    return text;
  }

  MachineFleetOptions options_;
  std::shared_ptr<const Cluster> cluster_;
  std::map<std::string, LoadedFile> files_;  // by model, of the last generation
  std::map<PartKey, std::shared_ptr<PartitionRunner>> parts_;
};

}  // namespace

bool has_model_files(const Fleet& fleet) {
  return std::any_of(fleet.models.begin(), fleet.models.end(),
                     [](const FleetModel& m) { return !m.file.path.empty(); });
}

std::unique_ptr<MachineFleet> MachineFleet::create(const MachineFleetOptions& options) {
  return std::make_unique<Machine>(options);
}

}  // namespace heddle
