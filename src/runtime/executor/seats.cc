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

}  // namespace heddle
