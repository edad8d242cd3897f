// HIOS-LP: iterative longest-path mapping. HIOS, section IV-A, Algorithm 1; with Algorithm 2 (section IV-B)
// for "hios-lp", without it for "hios-lp-inter".
//
// Minimises the makespan of one request. Repeatedly takes the longest path of the ops without a device, under
// the condition that its intermediate ops touch no mapped op (line 5), tries it whole on each device with all
// mapped ops in the order of their priority indicators (lines 8 to 15), and keeps the device with the least
// latency (ties: the first). O(paths * devices * (ops + edges)).
//
// Beyond the paper: a path that runs whole on no device (unequal devices) is mapped up to the last op that
// leaves a device for it; the rest stays for later paths.
#include <algorithm>

#include "hios.h"
#include "stage_planner.h"

namespace heddle {

std::vector<uint32_t> longest_valid_path(const StageInstance& instance, const HiosPriorities& priorities,
                                         const std::vector<uint32_t>& device) {
  const size_t n = instance.num_ops();
  constexpr double kNone = -1;
  // Of a path from v on: its length, its second op (kUnmapped: none). `rest` as a later op of a path, `whole`
  // as its first, with the boundary edges into v.
  std::vector<double> rest(n, kNone);
  std::vector<uint32_t> second(n, kUnmapped);
  std::vector<uint8_t> ends(n, 0);  // touches a mapped op: may be only first or last
  double longest = kNone;
  uint32_t first = kUnmapped;
  const auto topological = instance.topological();
  for (size_t i = n; i-- > 0;) {
    const uint32_t v = topological[i];
    if (device[v] != kUnmapped) continue;
    double before = 0, after = 0, on = kNone;
    for (const auto& in : instance.inputs(v)) {
      if (device[in.op] == kUnmapped) continue;
      ends[v] = 1;
      before = std::max(before, priorities.transfer_us(in.bytes));
    }
    for (const auto& next : instance.outputs(v)) {
      const double transfer = priorities.transfer_us(next.bytes);
      if (device[next.op] != kUnmapped) {
        ends[v] = 1;
        after = std::max(after, transfer);
        continue;
      }
      const double length = transfer + rest[next.op];
      if (length > on || (length == on && next.op < second[v])) {
        on = length;
        second[v] = next.op;
      }
    }
    if (on <= after) second[v] = kUnmapped;
    rest[v] = priorities.us[v] + (ends[v] ? after : std::max(after, on));
    const double whole = before + priorities.us[v] + std::max(after, on);
    if (whole > longest || (whole == longest && v < first)) {
      longest = whole;
      first = v;
    }
  }
  std::vector<uint32_t> path;
  for (uint32_t v = first; v != kUnmapped; v = second[v]) {
    path.push_back(v);
    if (path.size() > 1 && ends[v]) break;
  }
  return path;
}

Result<StageSchedule> hios_lp_inter(const StageInstance& instance, const Deadline& deadline) {
  const HiosPriorities priorities = hios_priorities(instance);
  std::vector<uint32_t> device(instance.num_ops(), kUnmapped);
  std::vector<double> finish;
  size_t mapped = 0;
  while (mapped < instance.num_ops() && !deadline.should_stop()) {
    std::vector<uint32_t> path = longest_valid_path(instance, priorities, device);
    double least = kNoTime;
    uint32_t best = kUnmapped;
    for (; !path.empty(); path.pop_back()) {
      for (uint32_t d = 0; d < instance.num_devices(); ++d) {
        for (const uint32_t v : path) device[v] = d;
        const double latency = append_in_order(instance, priorities.order, device, finish);
        if (latency < least) {
          least = latency;
          best = d;
        }
      }
      if (best != kUnmapped) break;
      device[path.back()] = kUnmapped;
    }
    if (path.empty()) break;
    for (const uint32_t v : path) device[v] = best;
    mapped += path.size();
  }
  if (deadline.cancelled()) return stage_plan_cancelled();
  if (!append_where_first_done(instance, priorities.order, device)) return no_stage_plan();
  return stages_in_order(instance, priorities.order, device);
}

PlannerEntry hios_lp_planner() {
  return {
      {.name = "hios-lp",
       .description = "longest paths mapped one by one, then stages by a sliding window",
       .source = "HIOS, section IV, Algorithms 1 and 2",
       .objectives = {Objective::kLatency},
       .exploits = "stages, transfer times, unequal devices",
       .ignores = "contention, memory limits",
       .settings = {stages_setting()},
       .aliases = {{.name = "hios-lp-inter",
                    .settings = {{"stages", "none"}},
                    .description = "longest paths mapped one by one, no stages",
                    .source = "HIOS, section IV-A, Algorithm 1",
                    .exploits = "transfer times, unequal devices",
                    .ignores = "stages, contention, memory limits"},
                   {.name = "hios-lp-ios",
                    .settings = {{"stages", "ios"}},
                    .description =
                        "longest paths mapped one by one, then IOS's dynamic program inside each device",
                    .source = "HIOS, section IV-A, Algorithm 1; IOS (Ding et al., MLSys 2021), section 4"}}},
      [](const Problem& problem, const PlannerOptions& options) {
        return plan_mapping(problem, options, "hios-lp", hios_lp_inter);
      }};
}

}  // namespace heddle
