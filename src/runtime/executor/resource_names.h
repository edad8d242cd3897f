// Numbers the exclusive resources of a cluster: cores (or whole devices), copy engines, link and bus
// directions.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "seats.h"

namespace heddle {

class ResourceNumbers {
 public:
  ResourceNumbers(const Problem& problem, const Seats& seats);
  int32_t size() const { return size_; }
  // The cores of a device with cores, so that devices that share a core exclude each other. A device without
  // cores has as many places as its largest stage has members.
  std::vector<int32_t> of_run(const Seat& seat) const;
  // `from` invalid: a load; both invalid: direct host access, which uses no copy engine.
  std::vector<int32_t> of_way(std::span<const Hop> hops, DeviceId from, DeviceId to) const;

 private:
  const Cluster& cluster_;
  ExecutionModel execution_;
  std::map<std::pair<int32_t, int>, int32_t> core_;  // (host, core)
  std::vector<std::pair<int32_t, int32_t>> places_;  // per device: first place and number of places
  int32_t engines_ = 0, links_ = 0, buses_ = 0, size_ = 0;
};

}  // namespace heddle
