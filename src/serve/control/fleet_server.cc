#include "heddle/serve/fleet_server.h"

#include <algorithm>

#include "heddle/fleet/fleet_check.h"

namespace heddle {
namespace {

void stretch_times(Deployment& deployment, double clock) {
  const auto stretch = [clock](TimeNs& ns) { ns = std::max<TimeNs>(1, ns_from_us(us_from_ns(ns) * clock)); };
  for (auto& m : deployment.models) {
    stretch(m.slo_ns);
    m.rate_per_s /= clock;
  }
  for (auto& p : deployment.pipelines) {
    p.rate_per_s /= clock;
    for (auto& pool : p.partitions) {
      for (auto& ns : pool.run_ns) stretch(ns);
      for (auto& ns : pool.timed_ns) stretch(ns);
      for (auto& ns : pool.transfer_ns) stretch(ns);
    }
  }
}

std::string devices_text(const std::map<std::string, int64_t>& devices) {
  std::string text;
  for (const auto& [name, count] : devices)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " of class '" + name + "'";
  return text;
}

}  // namespace

Result<std::shared_ptr<RemoteDevices>> open_workers(const Fleet& fleet, const Deployment& deployment,
                                                    const WorkerWait& wait) {
  auto devices = wait.pool.open(fleet, deployment, wait.seconds, wait.what, wait.cancel);
  if (wait.what == WaitFor::kEnough && wait.cancel.cancelled())
    return cancelled_error("cancelled while waiting for workers");
  if (wait.what != WaitFor::kAll) return devices;
  if (const auto refusal = devices->refusal(); !refusal.empty()) return invalid_input(refusal);
  const auto missing = wait.pool.missing(deployment);
  if (!missing.empty())
    return Error(wait.cancel.cancelled() ? Code::kCancelled : Code::kInfeasible,
                 "no worker has " + devices_text(missing) + " of the plan after " +
                     std::to_string(static_cast<int64_t>(wait.seconds)) +
                     " s; start `heddle worker` with such --devices");
  return devices;
}

Result<std::unique_ptr<Generation>> timed_generation(const Fleet& fleet, const FleetPlan& plan,
                                                     const LivePlaneOptions& options, double clock,
                                                     const Fleet* timed_by, const WorkerWait* workers) {
  if (!(clock >= .01 && clock <= 100))
    return invalid_input("a clock of " + std::to_string(clock) + ": expected 0.01 to 100");
  HEDDLE_RETURN_IF_ERROR(check_fleet_plan(fleet, plan));
  HEDDLE_ASSIGN_OR_RETURN(auto deployment, deploy(fleet, plan));
  if (timed_by != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(const auto there, deploy(*timed_by, plan));
    for (size_t p = 0; p < there.pipelines.size(); ++p)
      for (size_t k = 0; k < there.pipelines[p].partitions.size(); ++k)
        deployment.pipelines[p].partitions[k].timed_ns = there.pipelines[p].partitions[k].run_ns;
  }
  stretch_times(deployment, clock);
  auto out = std::make_unique<Generation>();
  out->fleet = fleet;
  out->plan = plan;
  for (const auto& m : deployment.models)
    out->models.push_back(timed_model(m.name, us_from_ns(m.slo_ns), workers != nullptr));
  if (workers != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(auto devices, open_workers(fleet, deployment, *workers));
    HEDDLE_ASSIGN_OR_RETURN(out->plane,
                            LivePlane::create_remote(std::move(deployment), options, std::move(devices)));
  } else {
    std::vector<std::shared_ptr<DeviceRunner>> timed(deployment.devices.size());
    HEDDLE_ASSIGN_OR_RETURN(out->plane, LivePlane::create(std::move(deployment), options, std::move(timed)));
  }
  return out;
}

}  // namespace heddle
