// Which worker has which whole devices of a plan.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "heddle/fleet/deployment.h"

namespace heddle {

class DevicePlaces {
 public:
  explicit DevicePlaces(const Deployment& deployment);

  // Gives devices without a worker, and those of workers that are not there, to workers that are there and
  // have devices of the class free: each to the one with the most, the first by name on ties. What a worker
  // has stays with it. `there`: by worker's name its devices by class. O(devices * workers).
  void assign(const std::map<std::string, std::map<std::string, int64_t>>& there);
  // The worker of a virtual device, there or not; empty: none.
  const std::string& worker_of(uint32_t virtual_device) const { return owner_[device_of_[virtual_device]]; }
  // Whole devices by class whose worker is none of `there`.
  std::map<std::string, int64_t> missing(
      const std::map<std::string, std::map<std::string, int64_t>>& there) const;

 private:
  std::vector<std::string> class_of_;  // [whole device]
  std::vector<std::string> owner_;     // [whole device]
  std::vector<uint32_t> device_of_;    // [virtual device]
};

}  // namespace heddle
