#include "seats.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace heddle {

std::vector<int> part_of_cores(const std::vector<int>& cores, int32_t index, int32_t of) {
  if (cores.empty()) return {};
  const auto c = static_cast<int64_t>(cores.size());
  const int64_t first = index * c / of;
  const int64_t last = std::max((index + 1) * c / of, first + 1);
  return {cores.begin() + first, cores.begin() + last};
}

Seats seat_segments(const Problem& problem, const Plan& plan) {
  Seats result;
  for (size_t d = 0; d < problem.cluster->num_devices(); ++d) {
    std::vector<int> cores = problem.cluster->devices()[d].cores;
    std::sort(cores.begin(), cores.end());
    result.seats.push_back({DeviceId(d), std::move(cores)});
  }
  result.widest.assign(result.seats.size(), 1);
  result.of_segment.assign(plan.segments.size(), 0);
  std::map<int32_t, std::vector<int32_t>> members;  // stage -> segments in the order of their runs
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    result.of_segment[s] = plan.segments[s].device.value;
  }
  for (const Step& step : plan.steps) {
    const int32_t stage = plan.segments[step.segment.index()].stage;
    if (step.kind == StepKind::kRun && stage >= 0) members[stage].push_back(step.segment.value);
  }
  std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> number;  // device, index, of
  for (const auto& [stage, segments] : members) {
    const auto of = static_cast<int32_t>(segments.size());
    if (of < 2) continue;
    const DeviceId device = plan.segments[static_cast<size_t>(segments[0])].device;
    result.widest[device.index()] = std::max(result.widest[device.index()], of);
    for (int32_t j = 0; j < of; ++j) {
      const auto [it, fresh] =
          number.try_emplace({device.value, j, of}, static_cast<int32_t>(result.seats.size()));
      if (fresh)
        result.seats.push_back({device, part_of_cores(result.seats[device.index()].cores, j, of), j, of});
      result.of_segment[static_cast<size_t>(segments[static_cast<size_t>(j)])] = it->second;
    }
  }
  return result;
}

ResourceNumbers::ResourceNumbers(const Problem& problem, const Seats& seats)
    : cluster_(*problem.cluster), execution_(problem.execution) {
  const auto devices = static_cast<int32_t>(cluster_.num_devices());
  for (const int32_t places : seats.widest) {
    places_.emplace_back(engines_, places);
    engines_ += places;
  }
  links_ = engines_ + 2 * devices;
  buses_ = links_ + 2 * static_cast<int32_t>(cluster_.links().size());
  size_ = buses_ + 2 * static_cast<int32_t>(cluster_.buses().size());
  for (const Device& device : cluster_.devices()) {
    for (int core : device.cores) {
      if (core_.emplace(std::pair(device.host.value, core), size_).second) ++size_;
    }
  }
}

std::vector<int32_t> ResourceNumbers::of_run(const Seat& seat) const {
  std::vector<int32_t> used;
  if (seat.cores.empty()) {
    if (execution_.unlimited_cpus && cluster_.device(seat.device).kind == DeviceKind::kCpu) return used;
    const auto [first, count] = places_[seat.device.index()];
    const int32_t begin = seat.of == 1 ? 0 : seat.index;
    const int32_t end = seat.index + 1 == seat.of ? count : seat.index + 1;
    for (int32_t i = begin; i < end; ++i) used.push_back(first + i);
    return used;
  }
  const int32_t host = cluster_.device(seat.device).host.value;
  for (int core : seat.cores) used.push_back(core_.at({host, core}));
  std::sort(used.begin(), used.end());
  return used;
}

std::vector<int32_t> ResourceNumbers::of_route(std::span<const Hop> hops, DeviceId from, DeviceId to) const {
  std::vector<int32_t> used;
  // Given times have no route, but hold copy engines.
  if (hops.empty() && execution_.transfers != Transfers::kGiven) return used;
  const auto engine = [&](DeviceId id, bool in) {
    if (!id.valid()) return;
    const int engines = cluster_.device(id).copy_engines;
    if (engines > 0) used.push_back(engines_ + 2 * id.value + (engines > 1 && in ? 1 : 0));
  };
  if (execution_.engine_contention) {
    engine(from, false);
    engine(to, true);
  }
  // Under fixed sharing, transfers take longer instead of occupying links.
  if (execution_.link_contention && !(execution_.fixed_sharing && from.valid())) {
    for (const Hop& hop : hops) {
      const Link& link = cluster_.link(hop.link);
      used.push_back(links_ + 2 * hop.link.value + (link.duplex == Duplex::kFull && !hop.forward ? 1 : 0));
      if (!link.bus.valid()) continue;
      const bool both = cluster_.bus(link.bus).duplex == Duplex::kFull;
      used.push_back(buses_ + 2 * link.bus.value + (both && !hop.forward ? 1 : 0));
    }
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return used;
}

std::vector<int> slots_by_share(const std::vector<double>& shares, int in_flight) {
  const int lanes = static_cast<int>(shares.size());
  std::vector<int> count(shares.size(), 1);
  for (int left = std::max(in_flight, lanes) - lanes; left > 0; --left) {
    size_t most = 0;
    for (size_t l = 1; l < shares.size(); ++l) {
      if (shares[l] / (count[l] + 1) > shares[most] / (count[most] + 1) + 1e-12) most = l;
    }
    ++count[most];
  }
  std::vector<int> slot_lane;
  for (int round = 0; static_cast<int>(slot_lane.size()) < std::max(in_flight, lanes); ++round) {
    for (int l = 0; l < lanes; ++l) {
      if (count[static_cast<size_t>(l)] > round) slot_lane.push_back(l);
    }
  }
  return slot_lane;
}

std::vector<int> instances_by_lane(const std::vector<int>& slot_lane) {
  std::map<int, int> next;
  std::vector<int> instances;
  for (const int lane : slot_lane) instances.push_back(next[lane]++);
  return instances;
}

}  // namespace heddle
