#include "heddle/serve/machine_fleet.h"

#include <algorithm>

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
  std::vector<Device> devices;                         // [virtual device]
  std::vector<std::shared_ptr<DeviceRunner>> runners;  // [virtual device]
};

class Machine final : public MachineFleet {
 public:
  explicit Machine(const MachineFleetOptions& options) : options_(options) {}

  Result<std::unique_ptr<Generation>> generation(const Fleet& fleet, const FleetPlan& plan) override {
    HEDDLE_RETURN_IF_ERROR(check_fleet_plan(fleet, plan));
    HEDDLE_ASSIGN_OR_RETURN(auto deployment, deploy(fleet, plan));
    Layout layout{fleet, deployment, {}, {}};
    HEDDLE_ASSIGN_OR_RETURN(layout.devices, devices_of(fleet, deployment));
    layout.runners.resize(deployment.devices.size());
    auto next = begin(fleet, plan);
    for (uint32_t m = 0; m < deployment.models.size(); ++m) {
      const FleetModel& model = fleet.models[m];
      if (model.file.path.empty()) {
        next->models.push_back(timed_model(deployment.models[m], false));
        continue;
      }
      auto served = serve_here(layout, m);
      if (!served.ok()) return std::move(served).error().with_context("model '" + model.name + "'");
      next->models.push_back(std::move(*served));
    }
    HEDDLE_ASSIGN_OR_RETURN(
        next->plane, LivePlane::create(std::move(deployment), options_.plane, std::move(layout.runners)));
    made();
    return next;
  }

  Result<std::unique_ptr<Generation>> generation(const Fleet& fleet, const FleetPlan& plan,
                                                 const WorkerWait& wait) override {
    HEDDLE_RETURN_IF_ERROR(check_fleet_plan(fleet, plan));
    HEDDLE_ASSIGN_OR_RETURN(auto deployment, deploy(fleet, plan));
    HEDDLE_RETURN_IF_ERROR(discover());
    // Known before workers are asked: a file that is wrong here needs no waiting for them.
    std::vector<std::shared_ptr<const UnsplitModel>> wholes(deployment.models.size());
    for (uint32_t m = 0; m < deployment.models.size(); ++m) {
      if (fleet.models[m].file.path.empty()) continue;
      auto whole = whole_of(fleet.models[m], largest_batch(deployment, m), cluster_->devices().front());
      if (!whole.ok()) return std::move(whole).error().with_context("model '" + fleet.models[m].name + "'");
      wholes[m] = *whole;
    }
    report("waiting for workers to load their parts");
    HEDDLE_ASSIGN_OR_RETURN(auto devices, open_workers(fleet, deployment, wait));
    auto next = begin(fleet, plan);
    for (uint32_t m = 0; m < deployment.models.size(); ++m) {
      if (!wholes[m]) {
        next->models.push_back(timed_model(deployment.models[m], true));
        continue;
      }
      report("checking " + fleet.models[m].name);
      auto check = check_remote(*devices, deployment, m, *wholes[m], wait.cancel);
      auto served = check.ok() ? served_in_parts(fleet.models[m], *wholes[m],
                                                 us_from_ns(deployment.models[m].slo_ns), *check)
                               : Result<std::shared_ptr<ServedModel>>(check.error());
      if (!served.ok()) return std::move(served).error().with_context("model '" + fleet.models[m].name + "'");
      (*served)->remote = true;
      next->models.push_back(std::move(*served));
    }
    HEDDLE_ASSIGN_OR_RETURN(
        next->plane, LivePlane::create_remote(std::move(deployment), options_.plane, std::move(devices)));
    made();
    return next;
  }

 private:
  void report(const std::string& what) const {
    if (options_.progress) options_.progress->report({.what = what});
  }

  static std::unique_ptr<Generation> begin(const Fleet& fleet, const FleetPlan& plan) {
    auto next = std::make_unique<Generation>();
    next->fleet = fleet;
    next->plan = plan;
    return next;
  }
  void made() {
    files_.plan_made();
    if (options_.progress) options_.progress->finish();
    options_.progress = nullptr;  // later generations are made while others are served
    options_.deadline = {};
  }

  Status discover() {
    if (cluster_) return {};
    HEDDLE_ASSIGN_OR_RETURN(cluster_, discover_machine());
    return {};
  }

  // The machine's device behind each virtual device that is used by a model with a file.
  Result<std::vector<Device>> devices_of(const Fleet& fleet, const Deployment& deployment) {
    std::vector<Device> devices(deployment.devices.size());
    if (!has_model_files(fleet)) return devices;
    HEDDLE_RETURN_IF_ERROR(discover());
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
            return Error(
                Code::kInvalidInput,
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

  Result<std::shared_ptr<const UnsplitModel>> whole_of(const FleetModel& model, int max_batch,
                                                       const Device& device) {
    report("loading and checking " + model.name);
    return files_.whole(model, max_batch, device);
  }

  Result<std::shared_ptr<const ServedModel>> serve_here(Layout& layout, uint32_t m) {
    const FleetModel& model = layout.fleet.models[m];
    const Device* first = nullptr;
    for (const auto& p : layout.deployment.pipelines)
      if (p.model == m && first == nullptr) first = &layout.devices[p.partitions.front().first_device];
    if (first == nullptr) return Error(Code::kInfeasible, "the plan has no pipeline for it");
    HEDDLE_ASSIGN_OR_RETURN(const auto whole, whole_of(model, largest_batch(layout.deployment, m), *first));
    SplitCheck check;
    for (const auto& p : layout.deployment.pipelines) {
      if (p.model != m) continue;
      std::vector<PlanRunner*> chain;
      for (const auto& pool : p.partitions)
        for (uint32_t v = pool.first_device; v < pool.first_device + pool.num_devices; ++v) {
          const auto& c = layout.fleet.classes[layout.deployment.devices[v].device_class];
          if (options_.deadline.should_stop()) return Error(Code::kCancelled, "stopped while compiling");
          report("compiling " + model.name + " for " + layout.devices[v].name);
          HEDDLE_ASSIGN_OR_RETURN(auto part,
                                  files_.parts().part(whole->local, model.file, pool.role.block_from,
                                                      pool.role.block_to, layout.devices[v], c.slowdown));
          if (v == pool.first_device) chain.push_back(part.get());
          layout.runners[v] = std::move(part);
        }
      check.split = check.split || chain.size() > 1;
      HEDDLE_ASSIGN_OR_RETURN(const auto difference,
                              run_split(chain, *whole->local, whole->inputs, whole->outputs));
      check.worst = std::max(check.worst, difference);
    }
    HEDDLE_ASSIGN_OR_RETURN(
        auto served, served_in_parts(model, *whole, us_from_ns(layout.deployment.models[m].slo_ns), check));
    return std::shared_ptr<const ServedModel>(std::move(served));
  }

  MachineFleetOptions options_;
  std::shared_ptr<const Cluster> cluster_;
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
