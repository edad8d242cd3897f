// Where each segment runs (on the whole device or, as a member of a stage, on a part of its cores), the
// exclusive resources of a cluster (cores or whole devices, copy engines, link and bus directions), and the lanes
// of the slots.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

struct Seat {
  DeviceId device;
  std::vector<int> cores;     // of the device, ascending; empty: a device without cores
  int32_t index = 0, of = 1;  // member `index` of a stage of `of`
};

// Seats 0 .. devices - 1 are whole devices. Of c cores, member j of a stage of k gets those from j c / k up
// to (j + 1) c / k, at least one. With fewer cores than members, some members share a core and take turns.
struct Seats {
  std::vector<Seat> seats;
  std::vector<int32_t> of_segment;  // per segment of the plan
  std::vector<int32_t> widest;      // per device: members of its largest stage, at least 1
};
// Part `index` of `of` of ascending cores, by the rule above; empty if `cores` is.
std::vector<int> part_of_cores(const std::vector<int>& cores, int32_t index, int32_t of);
Seats seat_segments(const Problem& problem, const Plan& plan);

// Numbers the exclusive resources.
class ResourceNumbers {
 public:
  ResourceNumbers(const Problem& problem, const Seats& seats);
  int32_t size() const { return size_; }
  // The cores of a device with cores, so that devices that share a core exclude each other. A device without
  // cores has as many places as its largest stage has members.
  std::vector<int32_t> of_run(const Seat& seat) const;
  // `from` invalid: a load; both invalid: direct host access, which uses no copy engine.
  std::vector<int32_t> of_route(std::span<const Hop> hops, DeviceId from, DeviceId to) const;

 private:
  const Cluster& cluster_;
  ExecutionModel execution_;
  std::map<std::pair<int32_t, int>, int32_t> core_;  // (host, core)
  std::vector<std::pair<int32_t, int32_t>> places_;  // per device: first place and number of places
  int32_t engines_ = 0, links_ = 0, buses_ = 0, size_ = 0;
};

// [slot] its lane. Each lane gets at least one slot; shares determine the rest by largest remainder (ties:
// lower lane).
std::vector<int> slots_by_share(const std::vector<double>& shares, int in_flight);
// A segment has one instance per slot of its lane: per slot, which one.
std::vector<int> instances_by_lane(const std::vector<int>& slot_lane);

}  // namespace heddle
