#include "stage_schedule.h"

#include <algorithm>
#include <string>

namespace heddle {
namespace {

struct Place {
  uint32_t device = 0, index = 0;
};

}  // namespace

Result<StageTiming> time_stages(const StageInstance& instance, const StageSchedule& schedule) {
  const size_t n = instance.num_ops();
  std::vector<Place> places(n);
  for (uint32_t d = 0; d < schedule.devices.size(); ++d) {
    for (uint32_t i = 0; i < schedule.devices[d].size(); ++i) {
      for (const uint32_t v : schedule.devices[d][i]) places[v] = {d, i};
    }
  }

  // A stage is known by its first op. It waits for its ops' inputs and for the stage before.
  const auto stage_of = [&](uint32_t v) -> const Stage& {
    return schedule.devices[places[v].device][places[v].index];
  };
  std::vector<uint32_t> waiting(n, 0), ready;
  std::vector<double> start(n, 0), end(n, 0);
  for (uint32_t v = 0; v < n; ++v)
    waiting[stage_of(v)[0]] +=
        static_cast<uint32_t>(instance.inputs(v).size()) + (stage_of(v)[0] == v && places[v].index > 0);
  for (uint32_t v = 0; v < n; ++v) {
    if (stage_of(v)[0] == v && waiting[v] == 0) ready.push_back(v);
  }
  size_t done = 0;
  StageTiming timing;
  const auto arrive = [&](uint32_t leader, double at) {
    start[leader] = std::max(start[leader], at);
    if (--waiting[leader] == 0) ready.push_back(leader);
  };
  for (size_t i = 0; i < ready.size(); ++i) {
    const uint32_t leader = ready[i];
    const uint32_t d = places[leader].device;
    const Stage& stage = stage_of(leader);
    const double finish = start[leader] + instance.stage_us(stage, d);
    done += stage.size();
    timing.makespan_us = std::max(timing.makespan_us, finish);
    const double begin = start[leader];
    for (const uint32_t v : stage) {
      start[v] = begin;
      end[v] = finish;
    }
    for (const uint32_t v : stage) {
      for (const auto& next : instance.outputs(v)) {
        const uint32_t other = stage_of(next.op)[0];
        arrive(other, finish + instance.transfer_us(next.bytes, d, places[next.op].device));
      }
    }
    const size_t following = places[leader].index + 1;
    if (following < schedule.devices[d].size()) arrive(schedule.devices[d][following][0], finish);
  }
  if (done != n)
    return infeasible("stage schedule: stages wait for each other; no op of " + std::to_string(n - done) +
                      " can start");
  if (timing.makespan_us == kNoTime)
    return invalid_input(
        "stage schedule: an op cannot run on its device, or reads a tensor that cannot get there");
  timing.start_us = std::move(start);
  timing.end_us = std::move(end);
  return timing;
}

}  // namespace heddle
