// Critical path. SortingHat (ICS'25), section 6, takes the longest path of the model as the least time that
// model parallelism alone can reach on enough devices; here it is also a planner: the critical path stays
// together on the device that runs it fastest, and all else goes around it (as CPOP does: Topcuoglu 2002,
// section 4.2).
//
// Minimises the makespan of one request. Ops by falling longest path from entry through the op to exit; the
// path's ops on its device, others where they end first. O(E k + V k log V). SortingHat's value (every op on
// its fastest device, transfers free) is given as the counter critical_path_us; from a cold start, with each
// op's loads on the path, as cold_path_us. Exploits unequal devices and transfers; ignores contention.
#include <algorithm>

#include "construction.h"

namespace heddle {
namespace {

struct CriticalPath {
  std::vector<uint8_t> on_it;  // per op
  std::vector<double> rank;    // longest path from the op to an exit, mean times
};

CriticalPath critical_path_of(const FlatProblem& flat) {
  CriticalPath path{std::vector<uint8_t>(flat.num_ops(), 0), upward_ranks(flat)};
  const auto& rank = path.rank;
  int64_t v = -1;
  for (const uint32_t u : flat.topological()) {
    if (flat.inputs(u).empty() && (v < 0 || rank[u] > rank[static_cast<size_t>(v)])) v = u;
  }
  while (v >= 0) {
    path.on_it[static_cast<size_t>(v)] = 1;
    int64_t next = -1;
    for (const uint32_t t : flat.outputs(static_cast<size_t>(v))) {
      for (const uint32_t w : flat.readers(t)) {
        if (next < 0 || rank[w] > rank[static_cast<size_t>(next)]) next = w;
      }
    }
    v = next;
  }
  return path;
}

// The device that runs the most of the path's ops, and those in the least time.
int32_t device_of_path(const FlatProblem& flat, const CriticalPath& path) {
  int32_t best = -1;
  size_t least_missing = SIZE_MAX;
  double least_us = kImpossible;
  for (size_t i = 0; i < flat.num_devices(); ++i) {
    size_t missing = 0;
    double us = 0;
    for (size_t v = 0; v < flat.num_ops(); ++v) {
      if (!path.on_it[v]) continue;
      if (flat.us(v, i) < kImpossible)
        us += flat.us(v, i);
      else
        ++missing;
    }
    if (best < 0 || missing < least_missing || (missing == least_missing && us < least_us)) {
      best = static_cast<int32_t>(i);
      least_missing = missing;
      least_us = us;
    }
  }
  return best;
}

// The longest path when every op first loads its parameters and then runs, each alone on the device where
// that takes the least time: SortingHat's baseline from a cold start. No bound, since loads may come early.
double cold_path_us(const FlatProblem& flat) {
  std::vector<double> finish(flat.num_ops(), 0);
  double longest = 0;
  for (const uint32_t v : flat.topological()) {
    double least = kImpossible;
    for (size_t i = 0; i < flat.num_devices(); ++i) {
      int64_t bytes = 0;
      for (const uint32_t p : flat.params(v)) {
        if (flat.needs_load(i) && !flat.is_resident(flat.pool(i), p))
          bytes = plus_bytes(bytes, flat.param_bytes(p));
      }
      const RoutedTransfer& way = flat.load_way(i);
      if (bytes > 0 && way.passage == Passage::kNone) continue;
      least = std::min(least, flat.us(v, i) + (bytes > 0 ? way.time_us(bytes) : 0));
    }
    for (const uint32_t t : flat.inputs(v)) finish[v] = std::max(finish[v], finish[flat.producer(t)]);
    finish[v] += least;
    longest = std::max(longest, finish[v]);
  }
  return longest;
}

ListDecisions around_critical_path(const FlatProblem& flat) {
  CriticalPath path = critical_path_of(flat);
  const int32_t home = device_of_path(flat, path);
  auto order = order_by_priority(flat, path.rank);
  return {std::move(order), [home, on_it = std::move(path.on_it)](uint32_t v, const auto& slots) {
            return on_it[v] && slots[static_cast<size_t>(home)].possible() ? home : earliest_finish(v, slots);
          }};
}

Result<PlannerOutput> plan_critical_path(const Problem& problem, const PlannerOptions& options) {
  auto out = plan_by_list(problem, options, "critical-path",
                          {.list = {.insertion = true}, .decide = around_critical_path});
  if (!out.ok()) return out;
  const FlatProblem all(problem, problem.usable_devices());
  const auto remaining = all.least_remaining_us();
  out->counters["critical_path_us"] = *std::max_element(remaining.begin(), remaining.end());
  if (all.is_cold()) out->counters["cold_path_us"] = cold_path_us(all);
  return out;
}

}  // namespace

PlannerEntry critical_path_planner() {
  return {{.name = "critical-path",
           .description = "the critical path on one device, the rest around it",
           .source = "SortingHat, section 6; CPOP in Topcuoglu et al., TPDS 2002, section 4.2",
           .objectives = {Objective::kLatency, Objective::kColdLatency},
           .exploits = "unequal devices, transfers, parameter loads, memory limits",
           .ignores = "contention"},
          plan_critical_path};
}

}  // namespace heddle
