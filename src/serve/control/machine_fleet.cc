#include "heddle/serve/machine_fleet.h"

#include <algorithm>

#include "heddle/base/log.h"
#include "heddle/cluster/variants.h"
#include "heddle/fleet/fleet_check.h"
#include "heddle/runtime/backend.h"
#include "machine/fleet_files.h"
#include "machine/machine_devices.h"
#include "machine/split_check.h"
#include "workers/remote_check.h"

namespace heddle {
namespace {

// What all models of a plan are made from and for.
struct Layout {
  const Fleet& fleet;
  const Deployment& deployment;
  std::vector<Device> devices;                         // [virtual device]; none with workers
  std::vector<std::shared_ptr<DeviceRunner>> runners;  // [virtual device]
  std::shared_ptr<RemoteDevices> remote;               // the workers' devices; null: all are here
};

class Machine final : public MachineFleet {
 public:
  explicit Machine(const MachineFleetOptions& options) : options_(options), cluster_(options.cluster) {}

  Result<std::unique_ptr<Generation>> generation(const Fleet& fleet, const FleetPlan& plan,
                                                 const WorkerWait* workers) override {
    HEDDLE_RETURN_IF_ERROR(check_fleet_plan(fleet, plan));
    HEDDLE_ASSIGN_OR_RETURN(auto deployment, deploy(fleet, plan));
    HEDDLE_RETURN_IF_ERROR(discover());
    Layout layout{fleet, deployment, {}, {}, nullptr};
    if (workers == nullptr) {
      HEDDLE_ASSIGN_OR_RETURN(layout.devices, devices_of(fleet, deployment));
      layout.runners.resize(deployment.devices.size());
    }
    // Known before workers are asked: a file that is wrong here needs no waiting for them.
    std::vector<std::shared_ptr<const UnsplitModel>> wholes(deployment.models.size());
    for (uint32_t m = 0; m < deployment.models.size(); ++m) {
      if (fleet.models[m].file.path.empty()) continue;
      auto whole = whole_of(layout, m);
      if (!whole.ok()) return in_model(fleet.models[m], std::move(whole).error());
      wholes[m] = *whole;
    }
    if (workers != nullptr) {
      report("waiting for workers to load their parts");
      HEDDLE_ASSIGN_OR_RETURN(layout.remote, open_workers(fleet, deployment, *workers));
    }
    auto next = std::make_unique<Generation>();
    next->fleet = fleet;
    next->plan = plan;
    for (uint32_t m = 0; m < deployment.models.size(); ++m) {
      const double slo_us = us_from_ns(deployment.models[m].slo_ns);
      if (!wholes[m]) {
        next->models.push_back(timed_model(deployment.models[m].name, slo_us, workers != nullptr));
        continue;
      }
      report("checking " + fleet.models[m].name);
      auto check = workers != nullptr
                       ? check_remote(*layout.remote, deployment, m, *wholes[m], workers->cancel)
                       : compile_and_check(layout, m, *wholes[m]);
      // Workers open the devices themselves, in the type that the name says.
      if (check.ok()) check->narrow = workers != nullptr && names_narrow_devices(fleet);
      if (!check.ok()) return in_model(fleet.models[m], check.error());
      auto served = served_in_parts(fleet.models[m], *wholes[m], slo_us, *check);
      if (!served.ok()) return in_model(fleet.models[m], std::move(served).error());
      (*served)->remote = workers != nullptr;
      next->models.push_back(std::move(*served));
    }
    if (workers != nullptr) {
      HEDDLE_ASSIGN_OR_RETURN(next->plane, LivePlane::create_remote(std::move(deployment), options_.plane,
                                                                    std::move(layout.remote)));
    } else {
      HEDDLE_ASSIGN_OR_RETURN(
          next->plane, LivePlane::create(std::move(deployment), options_.plane, std::move(layout.runners)));
    }
    files_.plan_made();
    if (options_.progress) options_.progress->finish();
    options_.progress = nullptr;  // later generations are made while others are served
    options_.deadline = {};
    return next;
  }

 private:
  void report(const std::string& what) const {
    log_line(LogLevel::kDebug, what);
    if (options_.progress) options_.progress->report({.what = what});
  }

  // By its name, or by the cluster's own word.
  bool is_narrow(const std::string& name) const {
    const auto device = device_or_variant(*cluster_, name);
    return device ? device->precision != Precision::kF32 : precision_in_name(name) != Precision::kF32;
  }
  bool names_narrow_devices(const Fleet& fleet) const {
    return std::any_of(fleet.classes.begin(), fleet.classes.end(), [this](const DeviceClass& c) {
      return std::any_of(c.devices.begin(), c.devices.end(),
                         [this](const std::string& name) { return is_narrow(name); });
    });
  }

  static Error in_model(const FleetModel& model, Error error) {
    return std::move(error).with_context("model '" + model.name + "'");
  }

  Status discover() {
    if (machine_) return {};
    HEDDLE_ASSIGN_OR_RETURN(machine_, discover_machine());
    if (!cluster_) cluster_ = machine_;
    return {};
  }

  // The machine's device behind each virtual device that is used by a model with a file.
  Result<std::vector<Device>> devices_of(const Fleet& fleet, const Deployment& deployment) {
    std::vector<Device> devices(deployment.devices.size());
    MachineDevices here(cluster_);
    const auto parts = share_parts(deployment);
    for (const auto& p : deployment.pipelines) {
      if (fleet.models[p.model].file.path.empty()) continue;
      for (const auto& pool : p.partitions)
        for (uint32_t v = pool.first_device; v < pool.first_device + pool.num_devices; ++v) {
          const auto& virtual_device = deployment.devices[v];
          const auto& c = fleet.classes[virtual_device.device_class];
          const auto& laid_out = deployment.classes[virtual_device.device_class];
          if (c.devices.empty())
            return invalid_input(
                "model '" + fleet.models[p.model].name + "' has a file, but class '" + c.name +
                "' of its plan names no devices of this machine; give it \"devices\", or take the "
                "model's \"file\" away to serve it by timed devices");
          HEDDLE_ASSIGN_OR_RETURN(devices[v],
                                  here.take({c.devices[virtual_device.device - laid_out.first_device], c.name,
                                             static_cast<int>(virtual_device.share), parts[v]}));
        }
    }
    return devices;
  }

  Result<std::shared_ptr<const UnsplitModel>> whole_of(const Layout& layout, uint32_t m) {
    const FleetModel& model = layout.fleet.models[m];
    // With workers the fleet's devices may be elsewhere, and so may be those of a cluster file.
    const Device* device = layout.devices.empty() ? &machine_->devices().front() : nullptr;
    for (const auto& p : layout.deployment.pipelines)
      if (p.model == m && device == nullptr) device = &layout.devices[p.partitions.front().first_device];
    if (device == nullptr) return infeasible("the plan has no pipeline for it");
    report("loading and checking " + model.name);
    return files_.whole(model, largest_batch(layout.deployment, m), *device);
  }

  // Gives the model's virtual devices their runners, and runs each of its pipelines once.
  Result<SplitCheck> compile_and_check(Layout& layout, uint32_t m, const UnsplitModel& whole) {
    const FleetModel& model = layout.fleet.models[m];
    SplitCheck check;
    for (const auto& p : layout.deployment.pipelines) {
      if (p.model != m) continue;
      std::vector<PlanRunner*> chain;
      // In float32, so that the cuts alone are compared; the same parts if the devices compute in it.
      std::vector<std::shared_ptr<PlanRunner>> wide;
      for (const auto& pool : p.partitions)
        for (uint32_t v = pool.first_device; v < pool.first_device + pool.num_devices; ++v) {
          const auto& c = layout.fleet.classes[layout.deployment.devices[v].device_class];
          if (options_.deadline.should_stop()) return cancelled_error("stopped while compiling");
          report("compiling " + model.name + " for " + layout.devices[v].name);
          HEDDLE_ASSIGN_OR_RETURN(auto part,
                                  files_.parts().part(whole.local, model.file, pool.role.block_from,
                                                      pool.role.block_to, layout.devices[v], c.slowdown));
          if (v == pool.first_device) {
            const Device& device = layout.devices[v];
            auto in_wide = part;
            if (device.precision != Precision::kF32) {
              HEDDLE_ASSIGN_OR_RETURN(
                  in_wide,
                  files_.parts().part(whole.local, model.file, pool.role.block_from, pool.role.block_to,
                                      as_variant(device, {device.backend, Precision::kF32}), 1));
            }
            chain.push_back(in_wide.get());
            wide.push_back(std::move(in_wide));
          }
          layout.runners[v] = std::move(part);
        }
      check.split = check.split || chain.size() > 1;
      HEDDLE_ASSIGN_OR_RETURN(const TensorGap gap,
                              run_split(chain, *whole.local, whole.inputs, whole.outputs));
      keep_worst(check.worst, gap);
    }
    return check;
  }

  MachineFleetOptions options_;
  std::shared_ptr<const Cluster> cluster_;  // whose devices classes name
  std::shared_ptr<const Cluster> machine_;  // as it is found
  FleetFiles files_;
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
