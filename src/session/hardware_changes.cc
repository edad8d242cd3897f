#include "heddle/session/hardware_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "heddle/base/spelling.h"

namespace heddle {
namespace {

constexpr const char* kMemory = "memory";        // every device's memory
constexpr const char* kTransfers = "transfers";  // transfers with given times
constexpr int kMostDevices = 1000;

// Names that can be changed: devices and their classes; scaled also links, memory and transfers.
Status check_name(const std::string& name, const Problem& problem, bool scale) {
  std::vector<std::string> names;
  const auto add = [&](std::vector<std::string>& kind, const std::string& known) {
    if (std::find(names.begin(), names.end(), known) != names.end()) return;
    names.push_back(known);
    kind.push_back(known);
  };
  std::vector<std::string> devices, classes, others;
  for (const auto& d : problem.cluster->devices()) add(devices, d.name);
  for (const auto& d : problem.cluster->devices()) add(classes, d.device_class);
  if (scale) {
    for (const auto& l : problem.cluster->links()) add(others, l.name);
    add(others, kMemory);
    if (problem.transfers) add(others, kTransfers);
  }
  if (std::find(names.begin(), names.end(), name) != names.end()) return {};
  std::string text = std::string("no such device") + (scale ? " or link" : "") + did_you_mean(name, names) +
                     "; devices: " + join_names(devices);
  if (!classes.empty()) text += "; classes: " + join_names(classes);
  if (!others.empty()) text += "; others: " + join_names(others);
  return invalid_input(text);
}

Status check_count(int count) {
  if (count >= 1 && count <= kMostDevices) return {};
  return invalid_input(std::to_string(count) + " devices: expected 1 to " + std::to_string(kMostDevices));
}

// The device of that name, or all devices of that class; of variants of one device one, for an edit is of all of them.
std::vector<std::string> devices_of(const std::string& name, const Cluster& cluster) {
  if (cluster.find_device(name).valid()) return {name};
  std::vector<std::string> names;
  std::set<DeviceId> hardware;
  for (size_t d = 0; d < cluster.num_devices(); ++d) {
    const Device& device = cluster.device(DeviceId(d));
    if (device.device_class == name && hardware.insert(cluster.physical(DeviceId(d))).second)
      names.push_back(device.name);
  }
  return names;
}

size_t without_variants(const Cluster& cluster) {
  size_t count = 0;
  for (size_t d = 0; d < cluster.num_devices(); ++d) count += !cluster.is_variant(DeviceId(d));
  return count;
}

std::string number_of(int count) { return count == 1 ? "one" : std::to_string(count); }

}  // namespace

Result<HardwareChange> more_devices(const Problem& problem, const std::string& name, int count) {
  HEDDLE_RETURN_IF_ERROR(check_name(name, problem, false));
  HEDDLE_RETURN_IF_ERROR(check_count(count));
  HardwareChange change{number_of(count) + " more " + name, {}, nullptr};
  for (int i = 0; i < count; ++i)
    change.edits.push_back({.cluster = {.add = devices_of(name, *problem.cluster).front()}});
  return change;
}

Result<HardwareChange> fewer_devices(const Problem& problem, const std::string& name, int count) {
  HEDDLE_RETURN_IF_ERROR(check_name(name, problem, false));
  HEDDLE_RETURN_IF_ERROR(check_count(count));
  const auto devices = devices_of(name, *problem.cluster);
  const size_t all = without_variants(*problem.cluster);
  if (all == 1) return invalid_input("it is the only device");
  const auto n = static_cast<size_t>(count);
  if (n > devices.size() || n == all)
    return invalid_input("there are only " + counted(devices.size(), "device") + " of it, and one must stay");
  const bool by_name = problem.cluster->find_device(name).valid();
  HardwareChange change{(by_name ? "without " : number_of(count) + " less ") + name, {}, nullptr};
  for (size_t i = 0; i < n; ++i)
    change.edits.push_back({.cluster = {.remove = devices[devices.size() - 1 - i]}});
  return change;
}

Result<HardwareChange> scaled_hardware(const Problem& problem, const std::string& name, double factor) {
  HEDDLE_RETURN_IF_ERROR(check_name(name, problem, true));
  if (!(factor > 0 && factor <= 1e6))
    return invalid_input(fmt::format("factor {}: expected one above 0 and at most 1e6", factor));
  const Cluster& cluster = *problem.cluster;
  HardwareChange change{fmt::format("{} x {}", name, factor), {}, nullptr};
  for (const auto& device : devices_of(name, cluster))
    change.edits.push_back({.cluster = {.scale = device, .factor = factor}});
  if (!change.edits.empty()) return change;
  const auto links = cluster.links();
  if (std::any_of(links.begin(), links.end(), [&](const Link& link) { return link.name == name; }))
    change.edits = {{.cluster = {.scale = name, .factor = factor}}};
  else if (name == kMemory)
    change.edits = {{.cluster = {.memory = factor}}};
  else
    change.edits = {{.transfers = factor}};
  return change;
}

}  // namespace heddle
