#include "local_plan.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "heddle/fleet/fleet_check.h"
#include "heddle/fleet/fleet_planner.h"

namespace heddle {
namespace {

constexpr double kNoLink_bytes_per_s = 1e12;  // whole models send nothing

const std::vector<double>* times_on(const std::vector<LocalTimes>& times, const std::string& target) {
  for (const auto& t : times)
    if (t.target == target) return &t.us;
  return nullptr;
}

// Devices of one target are one class.
Result<LocalPlan> plan_on(std::span<const std::shared_ptr<const LocalModel>> models,
                          const std::vector<std::vector<LocalTimes>>& times, const DeviceSet& set,
                          bool shared, const Deadline& deadline) {
  LocalPlan out;
  out.shared = shared;
  out.fleet.name = "this machine";
  out.fleet.max_partitions = 1;
  std::map<std::string, size_t> index;
  std::vector<std::vector<Device>> members;
  std::vector<std::string> targets;
  const double slower = shared ? static_cast<double>(models.size()) : 1;
  for (const auto& d : set) {
    const auto [entry, fresh] = index.emplace(d.target, members.size());
    if (fresh) {
      DeviceClass c;
      c.name = d.device_class + (shared ? " shared" : "");
      c.nic_bytes_per_s = kNoLink_bytes_per_s;
      out.fleet.classes.push_back(c);
      members.emplace_back();
      targets.push_back(d.target);
    }
    const auto copies = shared ? models.size() : 1;
    members[entry->second].insert(members[entry->second].end(), copies, d);
    out.fleet.classes[entry->second].count += static_cast<int64_t>(copies);
  }
  for (size_t m = 0; m < models.size(); ++m) {
    const auto& served = models[m]->served;
    FleetModel model;
    model.name = served.name;
    model.blocks = 1;
    model.slo_us = served.slo_us;
    model.weight = models[m]->source.settings.weight;
    model.cut_bytes = {0, 0};
    model.latency_us.assign(targets.size(), {});
    for (size_t c = 0; c < targets.size(); ++c) {
      const auto* us = times_on(times[m], targets[c]);
      if (us == nullptr) continue;
      model.latency_us[c].emplace_back();
      for (const double t : *us) model.latency_us[c][0].push_back({t * slower});
    }
    out.fleet.models.push_back(std::move(model));
  }
  FleetPlanOptions options;
  options.deadline = deadline;
  HEDDLE_ASSIGN_OR_RETURN(out.plan, plan_fleet(out.fleet, "auto", options));
  HEDDLE_RETURN_IF_ERROR(check_fleet_plan(out.fleet, out.plan));
  HEDDLE_ASSIGN_OR_RETURN(out.deployment, deploy(out.fleet, out.plan));
  for (const auto& v : out.deployment.devices)
    out.device_of.push_back(
        members[v.device_class][v.device - out.deployment.classes[v.device_class].first_device]);
  return out;
}

}  // namespace

std::vector<DeviceSet> ways_to_divide(std::span<const Device> devices, size_t most) {
  DeviceSet others;
  std::vector<const Device*> sets;
  std::set<int> cores;
  for (const auto& d : devices) {
    if (d.cores.empty()) {
      others.push_back(d);
    } else {
      sets.push_back(&d);
      cores.insert(d.cores.begin(), d.cores.end());
    }
  }
  std::stable_sort(sets.begin(), sets.end(),
                   [](const Device* a, const Device* b) { return a->cores.size() > b->cores.size(); });
  std::vector<DeviceSet> ways;
  std::set<std::vector<std::string>> seen;
  DeviceSet chosen;
  size_t steps = 0;
  // The least core that is not yet in a set goes into each of the sets that have it.
  const std::function<void(std::set<int>)> divide = [&](std::set<int> left) {
    if (ways.size() >= most || ++steps > 100000) return;
    if (left.empty()) {
      std::vector<std::string> kind;
      for (const auto& d : chosen) kind.push_back(d.target);
      std::sort(kind.begin(), kind.end());
      if (!seen.insert(kind).second) return;
      ways.push_back(chosen);
      ways.back().insert(ways.back().end(), others.begin(), others.end());
      return;
    }
    for (const auto* d : sets) {
      if (std::find(d->cores.begin(), d->cores.end(), *left.begin()) == d->cores.end()) continue;
      if (!std::all_of(d->cores.begin(), d->cores.end(), [&left](int c) { return left.contains(c); }))
        continue;
      auto rest = left;
      for (const int c : d->cores) rest.erase(c);
      chosen.push_back(*d);
      divide(std::move(rest));
      chosen.pop_back();
    }
  };
  divide(cores);
  if (ways.empty() && !others.empty()) ways.push_back(others);
  return ways;
}

Result<LocalPlan> plan_locally(std::span<const std::shared_ptr<const LocalModel>> models,
                               const std::vector<std::vector<LocalTimes>>& times,
                               std::span<const DeviceSet> ways, const Deadline& deadline) {
  if (ways.empty())
    return Error(Code::kUnsupported, "this machine has no device that models can be served on");
  std::optional<LocalPlan> best;
  std::optional<Error> refused;
  for (const auto& set : ways) {
    if (set.size() < models.size()) continue;  // no device is shared between models
    auto plan = plan_on(models, times, set, false, deadline);
    if (!plan.ok()) {
      if (plan.error().code() != Code::kInfeasible) return std::move(plan).error();
      if (!refused) refused = std::move(plan).error();
    } else if (!best || plan->plan.value > best->plan.value * (1 + 1e-9)) {
      best = std::move(*plan);
    }
  }
  if (best) return *std::move(best);
  // The largest sets come first.
  auto plan = plan_on(models, times, ways.front(), models.size() > 1, deadline);
  if (!plan.ok() && refused) return *std::move(refused);
  return plan;
}

}  // namespace heddle
