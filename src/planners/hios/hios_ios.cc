// IOS's dynamic program inside each device, once ops have devices: IOS, section 4, on parts of consecutive
// ops of one device in place of HIOS's Algorithm 2. HIOS's section IV-B leaves IOS out for two reasons: its
// time, which parts of ten ops bound, and its blindness to other devices. So a part's stages are taken only
// when they lower the latency of the whole; stages that wait for each other around another device are refused
// by the timer.
//
// Minimises the makespan of one request. A bounded program and one timing for each part.
#include "hios.h"
#include "ios.h"
#include "stage_planner.h"

namespace heddle {
namespace {

constexpr size_t kLpPartOps = 10;

// Replaces the stages [begin, end) of a device by IOS's for their ops; true when that lowers the latency.
bool improve_part(const StageInstance& instance, StageSchedule& schedule, size_t d, size_t begin, size_t end,
                  double& latency, const Deadline& deadline) {
  std::vector<uint32_t> ops;
  for (size_t i = begin; i < end; ++i) ops.push_back(schedule.devices[d][i][0]);
  // Groups of one op each, for what waits for a group waits for all of it.
  const auto program = ios_schedule(instance, d, ops, {.groups = instance.width(), .group_ops = 1}, deadline);
  if (program.stages.size() == ops.size()) return false;
  StageSchedule tried = schedule;
  auto& list = tried.devices[d];
  const auto first = list.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto rest = list.erase(first, list.begin() + static_cast<std::ptrdiff_t>(end));
  std::vector<Stage> stages;
  for (const IosGroups& groups : program.stages) {
    Stage& stage = stages.emplace_back();
    for (const auto& group : groups) stage.push_back(group[0]);
  }
  list.insert(rest, stages.begin(), stages.end());
  const auto timed = time_stages(instance, tried);
  if (!timed.ok() || timed->makespan_us >= latency) return false;
  latency = timed->makespan_us;
  schedule = std::move(tried);
  return true;
}

}  // namespace

Result<StageSchedule> hios_ios(const StageInstance& instance, StageSchedule schedule,
                               const Deadline& deadline) {
  const auto timed = time_stages(instance, schedule);
  if (!timed.ok()) return no_stage_plan();
  double latency = timed->makespan_us;
  for (size_t d = 0; d < schedule.devices.size(); ++d) {
    // From the end, so that what is replaced leaves the places before it alone. Parts that IOS does not
    // improve are halved once: fewer ops change places.
    for (size_t end = schedule.devices[d].size(); end > 0 && !deadline.should_stop();) {
      const size_t begin = end > kLpPartOps ? end - kLpPartOps : 0, middle = (begin + end) / 2;
      if (!improve_part(instance, schedule, d, begin, end, latency, deadline)) {
        improve_part(instance, schedule, d, middle, end, latency, deadline);
        improve_part(instance, schedule, d, begin, middle, latency, deadline);
      }
      end = begin;
    }
  }
  return schedule;
}

}  // namespace heddle
