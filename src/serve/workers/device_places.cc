#include "device_places.h"

#include <algorithm>

namespace heddle {

DevicePlaces::DevicePlaces(const Deployment& deployment) {
  for (const auto& v : deployment.devices) {
    device_of_.push_back(v.device);
    if (v.device >= class_of_.size()) class_of_.resize(v.device + 1);
    class_of_[v.device] = deployment.classes[v.device_class].name;
  }
  owner_.resize(class_of_.size());
}

void DevicePlaces::assign(const std::map<std::string, std::map<std::string, int64_t>>& there) {
  auto free = there;
  for (size_t d = 0; d < owner_.size(); ++d)
    if (const auto it = free.find(owner_[d]); it != free.end()) --it->second[class_of_[d]];
  for (size_t d = 0; d < owner_.size(); ++d) {
    if (class_of_[d].empty() || there.contains(owner_[d])) continue;
    std::string best;
    int64_t most = 0;
    for (auto& [name, devices] : free) {
      const auto it = devices.find(class_of_[d]);
      if (it == devices.end() || it->second <= most) continue;
      most = it->second;
      best = name;
    }
    if (best.empty()) continue;
    owner_[d] = best;
    --free[best][class_of_[d]];
  }
}

std::map<std::string, int64_t> DevicePlaces::missing(
    const std::map<std::string, std::map<std::string, int64_t>>& there) const {
  std::map<std::string, int64_t> out;
  for (size_t d = 0; d < owner_.size(); ++d)
    if (!class_of_[d].empty() && !there.contains(owner_[d])) ++out[class_of_[d]];
  return out;
}

}  // namespace heddle
