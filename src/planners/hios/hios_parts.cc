// What HIOS's algorithms share: priority indicators, schedules in their order, Algorithm 2.
#include <algorithm>
#include <numeric>

#include "hios.h"

namespace heddle {

HiosPriorities hios_priorities(const StageInstance& instance) {
  const size_t n = instance.num_ops(), k = instance.num_devices();
  HiosPriorities p;
  size_t ways = 0;
  for (size_t a = 0; a < k; ++a) {
    for (size_t b = 0; b < k; ++b) {
      const double fixed = instance.transfer_us(0, a, b);
      if (a == b || fixed == kNoTime) continue;
      p.latency_us += fixed;
      p.us_per_byte += instance.transfer_us(1, a, b) - fixed;
      ++ways;
    }
  }
  if (ways > 0) {
    p.latency_us /= static_cast<double>(ways);
    p.us_per_byte /= static_cast<double>(ways);
  }
  p.us.assign(n, 0);
  p.indicator.assign(n, 0);
  const auto topological = instance.topological();
  std::vector<uint32_t> position(n);
  for (size_t i = n; i-- > 0;) {
    const uint32_t v = topological[i];
    position[v] = static_cast<uint32_t>(i);
    size_t runs = 0;
    for (size_t d = 0; d < k; ++d) {
      if (instance.us(v, d) == kNoTime) continue;
      p.us[v] += instance.us(v, d);
      ++runs;
    }
    p.us[v] /= static_cast<double>(std::max<size_t>(runs, 1));
    double after = 0;
    for (const auto& next : instance.outputs(v))
      after = std::max(after, p.transfer_us(next.bytes) + p.indicator[next.op]);
    p.indicator[v] = p.us[v] + after;
  }
  p.order.resize(n);
  std::iota(p.order.begin(), p.order.end(), 0u);
  // Ops without time have their readers' indicator: then the topological order decides.
  std::sort(p.order.begin(), p.order.end(), [&](uint32_t a, uint32_t b) {
    if (p.indicator[a] != p.indicator[b]) return p.indicator[a] > p.indicator[b];
    return position[a] < position[b];
  });
  return p;
}

double append_in_order(const StageInstance& instance, std::span<const uint32_t> order,
                       const std::vector<uint32_t>& device, std::vector<double>& finish) {
  std::vector<double> free(instance.num_devices(), 0);
  finish.resize(instance.num_ops());
  double latency = 0;
  for (const uint32_t v : order) {
    const uint32_t d = device[v];
    if (d == kUnmapped) continue;
    double start = free[d];
    for (const auto& in : instance.inputs(v)) {
      if (device[in.op] == kUnmapped) continue;
      start = std::max(start, finish[in.op] + instance.transfer_us(in.bytes, device[in.op], d));
    }
    free[d] = finish[v] = start + instance.us(v, d);
    latency = std::max(latency, finish[v]);
  }
  return latency;
}

bool append_where_first_done(const StageInstance& instance, std::span<const uint32_t> order,
                             std::vector<uint32_t>& device) {
  std::vector<double> free(instance.num_devices(), 0), finish(instance.num_ops(), 0);
  for (const uint32_t v : order) {
    double best = kNoTime;
    uint32_t where = kUnmapped;
    for (uint32_t d = 0; d < instance.num_devices(); ++d) {
      if (device[v] != kUnmapped && device[v] != d) continue;
      double start = free[d];
      for (const auto& in : instance.inputs(v))
        start = std::max(start, finish[in.op] + instance.transfer_us(in.bytes, device[in.op], d));
      const double end = start + instance.us(v, d);
      if (end < best) {
        best = end;
        where = d;
      }
    }
    if (where == kUnmapped) return false;
    device[v] = where;
    free[where] = finish[v] = best;
  }
  return true;
}

StageSchedule stages_in_order(const StageInstance& instance, std::span<const uint32_t> order,
                              const std::vector<uint32_t>& device) {
  StageSchedule schedule;
  schedule.devices.resize(instance.num_devices());
  for (const uint32_t v : order) schedule.devices[device[v]].push_back({v});
  return schedule;
}

StageSchedule hios_parallelize(const StageInstance& instance, StageSchedule schedule,
                               const Deadline& deadline) {
  const size_t window = instance.width();
  auto timing = time_stages(instance, schedule);
  if (!timing.ok() || window < 2) return schedule;
  double latency = timing->makespan_us;
  const HiosPriorities priorities = hios_priorities(instance);
  std::vector<uint32_t> device(instance.num_ops(), 0);
  for (uint32_t d = 0; d < schedule.devices.size(); ++d) {
    for (const Stage& stage : schedule.devices[d])
      for (const uint32_t v : stage) device[v] = d;
  }
  std::vector<uint8_t> grouped(instance.num_ops(), 0);
  for (const uint32_t v : priorities.order) {
    if (grouped[v] || deadline.should_stop()) continue;
    const uint32_t d = device[v];
    const auto& before = schedule.devices[d];
    const auto at = std::find_if(before.begin(), before.end(), [v](const Stage& s) { return s[0] == v; });
    if (at == before.end() || at->size() > 1) continue;
    const auto place = static_cast<size_t>(at - before.begin());
    // The window holds v and the stages behind it. A rejected window leaves the schedule as it was: lines 11
    // to 15 as printed would keep each of them.
    Stage wide = {v};
    for (size_t behind = 1; place + behind < schedule.devices[d].size();) {
      const Stage& next = schedule.devices[d][place + behind];
      if (wide.size() + next.size() > window) break;
      wide.insert(wide.end(), next.begin(), next.end());
      ++behind;
      // Joined ops that depend on each other, directly or around other stages, are stages that wait for
      // themselves: the timer finds them, device orders included.
      auto& list = schedule.devices[d];
      const auto begin = list.begin() + static_cast<std::ptrdiff_t>(place);
      std::vector<Stage> apart(begin, begin + static_cast<std::ptrdiff_t>(behind));
      *begin = wide;
      list.erase(begin + 1, begin + static_cast<std::ptrdiff_t>(behind));
      const auto timed = time_stages(instance, schedule);
      if (!timed.ok() || timed->makespan_us >= latency) {
        list[place] = apart[0];
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(place) + 1, apart.begin() + 1, apart.end());
        continue;
      }
      latency = timed->makespan_us;
      behind = 1;
      for (const uint32_t w : wide) grouped[w] = 1;
    }
  }
  return schedule;
}

}  // namespace heddle
