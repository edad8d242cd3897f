#include "machine_devices.h"

#include <cmath>

#include "heddle/base/spelling.h"
#include "heddle/cluster/variants.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/device_shares.h"

namespace heddle {

std::vector<int> share_parts(const Deployment& deployment) {
  std::vector<int> parts;
  std::map<uint32_t, double> taken;  // of a whole device
  for (const auto& v : deployment.devices) {
    double& used = taken[v.device];
    const int part = static_cast<int>(std::ceil(used * v.share - 1e-9));
    used = static_cast<double>(part + 1) / v.share;
    parts.push_back(part);
  }
  return parts;
}

namespace {

std::string parts_text(const Device& device) {
  if (!device.cores.empty()) return std::to_string(device.cores.size()) + " cores";
  return std::to_string(most_shares(device)) + " parts";
}

}  // namespace

Result<Device> MachineDevices::take(const DeviceWish& wish) {
  const auto whole = device_or_variant(*cluster_, wish.name);
  std::vector<std::string> names;
  for (const auto& d : cluster_->devices()) names.push_back(d.name);
  if (!whole)
    return invalid_input("class '" + wish.device_class + "' names the device '" + wish.name + "'" +
                         did_you_mean(wish.name, names) + "; cluster '" + cluster_->name() + "' has " +
                         join_names(names, 40) + "; --cluster names another file");
  const Backend* backend = find_backend(whole->backend);
  if (backend != nullptr && !backend->computes())
    return invalid_input("class '" + wish.device_class + "' names the device '" + whole->name +
                         "', which computes nothing (backend " + whole->backend +
                         "): name others, or remove the models' \"file\"");
  for (const int core : whole->cores) {
    const auto& [name, of] = owner_.emplace(core, std::pair(whole->name, wish.device_class)).first->second;
    if (name != whole->name || of != wish.device_class)
      return invalid_input("devices '" + name + "' of class '" + of + "' and '" + whole->name +
                           "' of class '" + wish.device_class + "' share core " + std::to_string(core) +
                           "; a core can be in one device of a plan");
  }
  if (wish.share <= 1) return *whole;
  if (most_shares(*whole) < wish.share || wish.part >= wish.share)
    return invalid_input("device '" + whole->name + "' of class '" + wish.device_class + "' has " +
                         parts_text(*whole) + " and cannot be split so, 1/" + std::to_string(wish.share) +
                         " among others; profile with fewer --share-levels");
  return device_part(*whole, wish.part, wish.share);
}

}  // namespace heddle
