#include "heddle/deploy/workloads.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <set>

#include "heddle/base/fields.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/cluster/catalogue.h"
#include "heddle/cluster/yaml_json.h"
#include "heddle/fleet/fleet_check.h"
#include "heddle/fleet/fleet_planner.h"
#include "heddle/plan/plan_file.h"

namespace heddle {
namespace {

// Kubernetes allows 63 bytes for a label's value, of which its names of pods' revisions take 11.
constexpr size_t kMostLabelBytes = 30, kMostGroupBytes = 48;

// Lower-case letters, digits and hyphens, as DNS and all four engines take it.
std::string dns_label(const std::string& text) {
  std::string label;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool kept = byte < 128 && std::isalnum(byte) != 0;
    if (kept)
      label += static_cast<char>(std::tolower(byte));
    else if (!label.empty() && label.back() != '-')
      label += '-';
  }
  label.resize(std::min(label.size(), kMostLabelBytes));
  while (label.ends_with('-')) label.pop_back();
  return label.empty() || std::isdigit(static_cast<unsigned char>(label[0])) != 0 ? "h" + label : label;
}

std::string unique_label(const std::string& base, std::set<std::string>& taken) {
  std::string label = base;
  for (int number = 2; !taken.insert(label).second; ++number) label = base + "-" + std::to_string(number);
  return label;
}

// The served copy names the model's file where it will be.
std::string served_path(const DeploySettings& settings, const std::string& path) {
  const std::filesystem::path file(path);
  if (!settings.models.empty()) return (std::filesystem::path(settings.models) / file.filename()).string();
  std::error_code error;
  const auto absolute = std::filesystem::absolute(file, error);
  return error ? path : absolute.string();
}

Status check_classes(const DeploySettings& settings, const Fleet& fleet) {
  std::vector<std::string> known;
  for (const auto& c : fleet.classes) known.push_back(c.name);
  for (const auto& [name, c] : settings.classes)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return not_found("the settings name the class " + quote_text(name) + ", which the fleet does not have" +
                       did_you_mean(name, known));
  return {};
}

bool is_gpu_class(const std::string& name) {
  const auto* row = find_in_catalogue(name);
  return row != nullptr && row->kind == DeviceKind::kGpu;
}

// An accepted request is answered, or fails half a second after its deadline.
double drain_seconds(const Fleet& fleet) {
  constexpr double kGrace_us = 5e5;
  double longest = 0;
  for (const auto& m : fleet.models) longest = std::max(longest, m.slo_us);
  return std::ceil((longest + kGrace_us) / 1e6);
}

WorkerGroup group_of(const Workloads& w, const DeviceClass& c, int64_t used, bool computes,
                     std::set<std::string>& taken) {
  WorkerGroup g;
  g.device_class = c.name;
  g.used = used;
  g.is_gpu = is_gpu_class(c.name);
  if (const auto it = w.settings.classes.find(c.name); it != w.settings.classes.end())
    g.settings = it->second;
  g.workers = (used + g.settings.spare + g.settings.per_worker - 1) / g.settings.per_worker;
  auto label = (w.name + "-" + dns_label(c.name)).substr(0, kMostGroupBytes);
  while (label.ends_with('-')) label.pop_back();
  g.name = unique_label(label, taken);
  // A worker sees only the GPUs that it was given, and CUDA counts them from 0.
  if (computes && g.is_gpu && g.settings.names.empty())
    for (int64_t i = 0; i < g.settings.per_worker; ++i) g.settings.names.push_back("gpu" + std::to_string(i));
  return g;
}

Result<Workloads> fleet_workloads(const std::string& path, const std::string& plan_path,
                                  const DeploySettings& settings) {
  HEDDLE_ASSIGN_OR_RETURN(Fleet fleet, read_fleet(path));
  HEDDLE_RETURN_IF_ERROR(check_classes(settings, fleet));
  FleetPlan plan;
  if (plan_path.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(plan, plan_fleet(fleet, "auto"));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(plan, read_fleet_plan(plan_path, fleet));
    HEDDLE_RETURN_IF_ERROR(check_fleet_plan(fleet, plan));
  }
  Workloads w;
  w.settings = settings;
  w.name = dns_label(settings.name.empty() ? fleet.name : settings.name);
  w.drain_s = settings.drain_s > 0 ? settings.drain_s : drain_seconds(fleet);
  const auto computes = [](const FleetModel& m) { return !m.file.path.empty(); };
  const bool any_file = std::any_of(fleet.models.begin(), fleet.models.end(), computes);
  const auto used = devices_used(fleet, plan);
  std::set<std::string> taken = {w.name};
  for (const char* own : {"server", "workers", "registry", "bus", "files", "secrets"})
    taken.insert(w.name + "-" + own);
  for (size_t c = 0; c < used.size(); ++c) {
    auto& device_class = fleet.classes[c];
    int64_t there = 0;
    if (used[c] > 0) {
      w.groups.push_back(group_of(w, device_class, used[c], any_file, taken));
      there = w.groups.back().devices();
    }
    if (there != device_class.count)
      w.notes.push_back("the deployed fleet has " + std::to_string(there) + " " + device_class.name +
                        " instead of " + std::to_string(device_class.count) + ": the plan uses " +
                        std::to_string(used[c]));
    device_class.count = there;
    // The check of fleets wants a name for each device; workers name their own.
    if (device_class.devices.size() < static_cast<size_t>(std::max<int64_t>(there, 0)))
      device_class.devices.clear();
  }
  for (auto& m : fleet.models) {
    if (computes(m))
      m.file.path = served_path(settings, m.file.path);
    else
      w.notes.push_back(m.name + " has no file: its devices take the planned time and compute nothing");
  }
  w.files["fleet.yaml"] = json_to_yaml(to_json(fleet));
  plan.planning_s = 0;  // the same plan is the same file
  w.files["plan.yaml"] = json_to_yaml(to_json(plan, fleet));
  return w;
}

Result<Workloads> plan_workloads(const std::string& path, const Json& json, const DeploySettings& settings) {
  auto read = plan_from_json(JsonCursor(json));
  if (!read.ok()) return std::move(read).error().with_context(path);
  PlanFile file = std::move(*read);
  if (!settings.classes.empty())
    return invalid_input("the settings have classes, which are for fleets; the plan names its own devices");
  Workloads w;
  w.is_fleet = false;
  w.settings = settings;
  w.name =
      dns_label(settings.name.empty() ? std::filesystem::path(path).stem().stem().string() : settings.name);
  if (settings.drain_s > 0) w.drain_s = settings.drain_s;
  const Cluster& cluster = *file.problem.cluster;
  std::set<DeviceId> used;
  for (const auto& segment : file.plan.segments) used.insert(segment.device);
  for (size_t h = 0; h < cluster.hosts().size(); ++h) {
    PlanHost host{.name = cluster.hosts()[h].name, .host_class = {}, .devices = {}, .gpus = 0};
    for (const DeviceId d : used) {
      const Device& device = cluster.device(d);
      if (device.host != HostId(static_cast<int32_t>(h))) continue;
      host.devices.push_back(device.name);
      host.host_class += (host.host_class.empty() ? "" : "+") + device.device_class;
      host.gpus += device.kind == DeviceKind::kGpu;
    }
    if (!host.devices.empty()) w.hosts.push_back(std::move(host));
  }
  if (w.hosts.empty()) return invalid_input("the plan runs nothing on any device").with_context(path);
  if (file.problem.model) {
    file.problem.model->path = served_path(settings, file.problem.model->path);
  } else {
    w.notes.emplace_back("the plan has no model file: its devices take the planned time and compute nothing");
  }
  w.files["plan.json"] = json_text(plan_to_json(file), 1) + "\n";
  return w;
}

}  // namespace

Result<Workloads> read_workloads(const std::string& what, const std::string& plan,
                                 const DeploySettings& settings) {
  if (!what.ends_with(".yaml") && !what.ends_with(".yml")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto json, read_json_file(what));
    if (is_plan_json(json)) {
      if (!plan.empty())
        return invalid_input("--plan " + plan + " belongs to a fleet file, and " + what +
                             " is a plan of one model");
      return plan_workloads(what, json, settings);
    }
  }
  return fleet_workloads(what, plan, settings);
}

}  // namespace heddle
