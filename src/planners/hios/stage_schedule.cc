#include "stage_schedule.h"

#include <algorithm>
#include <string>

namespace heddle {
namespace {

struct Place {
  uint32_t device = 0, index = 0;
};

Error bad_schedule(const std::string& text) { return Error(Code::kInvalidInput, "stage schedule: " + text); }

Result<std::vector<Place>> places_of(const StageInstance& instance, const StageSchedule& schedule) {
  if (schedule.devices.size() != instance.num_devices())
    return bad_schedule(std::to_string(schedule.devices.size()) + " devices, the instance has " +
                        std::to_string(instance.num_devices()));
  std::vector<Place> places(instance.num_ops());
  std::vector<uint8_t> seen(instance.num_ops(), 0);
  size_t count = 0;
  for (uint32_t d = 0; d < schedule.devices.size(); ++d) {
    for (uint32_t i = 0; i < schedule.devices[d].size(); ++i) {
      const Stage& stage = schedule.devices[d][i];
      const std::string where = "stage " + std::to_string(i) + " of device " + std::to_string(d);
      if (stage.empty() || stage.size() > instance.width())
        return bad_schedule(where + " has " + std::to_string(stage.size()) + " ops, expected 1.." +
                            std::to_string(instance.width()));
      for (const uint32_t v : stage) {
        if (v >= instance.num_ops() || seen[v])
          return bad_schedule(where + " names op " + std::to_string(v) +
                              ", which is not there or placed already");
        if (instance.us(v, d) == kNoTime)
          return bad_schedule(where + " holds op " + std::to_string(v) + ", which cannot run on the device");
        seen[v] = 1;
        places[v] = {d, i};
        ++count;
      }
    }
  }
  if (count != instance.num_ops())
    return bad_schedule(std::to_string(count) + " of " + std::to_string(instance.num_ops()) +
                        " ops are placed");
  return places;
}

}  // namespace

Result<StageTiming> time_stages(const StageInstance& instance, const StageSchedule& schedule) {
  auto found = places_of(instance, schedule);
  if (!found.ok()) return found.error();
  const std::vector<Place>& places = *found;
  const size_t n = instance.num_ops();

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
    return Error(Code::kInfeasible, "stage schedule: stages wait for each other; no op of " +
                                        std::to_string(n - done) + " can start");
  if (timing.makespan_us == kNoTime)
    return bad_schedule("an op reads a tensor from a device without a way to its own");
  timing.start_us = std::move(start);
  timing.end_us = std::move(end);
  return timing;
}

}  // namespace heddle
