// Plans to begin with where units may have different types.
//
// A segment of several units of one type runs faster than they do alone, and planners learn that only of segments that
// were measured. So the plans that follow from the allowed types at once, on one device or on equal ones side by
// side, are made here, measured, and compared with what planners find.
#include <algorithm>

#include "heddle/plan/builder.h"
#include "session_parts.h"

namespace heddle {
namespace {

// Runs of narrower units that gain less than this part of all of them are left in float32, in steps.
constexpr double kLeastRuns[] = {0, 0.05, 0.25};

// One piece of hardware: the device in float32, and [unit] the fastest narrower variant that it may run on.
struct Hardware {
  DeviceId wide;
  std::vector<DeviceId> narrow;
};

std::vector<Hardware> hardware_of(const Problem& problem) {
  std::vector<Hardware> list;
  for (const DeviceId id : problem.usable_devices()) {
    if (problem.cluster->device(id).precision != Precision::kF32) continue;
    Hardware h{id, std::vector<DeviceId>(problem.graph->num_ops())};
    bool any = false;
    for (size_t u = 0; u < h.narrow.size(); ++u) {
      for (const DeviceId v : problem.cluster->variants(id)) {
        if (problem.cluster->device(v).precision == Precision::kF32 || !problem.may_use(v)) continue;
        const double us = problem.costs->us(OpId(u), v);
        if (!(us < kImpossible) || (h.narrow[u].valid() && us >= problem.costs->us(OpId(u), h.narrow[u])))
          continue;
        h.narrow[u] = v;
        any = true;
      }
    }
    if (any) list.push_back(std::move(h));
  }
  return list;
}

// Narrower types wherever they are allowed, except in runs of units (in topological order) that gain less than
// `least_run` of all.
Assignment assignment_on(const Problem& problem, const Hardware& h, double least_run) {
  Assignment a;
  const auto order = problem.graph->topological_order();
  a.order.assign(order.begin(), order.end());
  a.device.assign(order.size(), h.wide);
  const auto gain = [&](OpId u) {
    const DeviceId narrow = h.narrow[u.index()];
    return narrow.valid() ? std::max(0.0, problem.costs->us(u, h.wide) - problem.costs->us(u, narrow)) : 0;
  };
  double all = 0;
  for (const OpId u : order) all += gain(u);
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    double run = 0;
    for (; end < order.size() && h.narrow[order[end].index()].valid(); ++end) run += gain(order[end]);
    for (size_t k = i; k < end && run >= least_run * all; ++k)
      a.device[order[k].index()] = h.narrow[order[k].index()];
    i = std::max(end, i + 1);
  }
  a.segment = merge_segments(problem, a);
  return a;
}

// Disjoint hardware of the fewest cores.
std::vector<size_t> side_by_side(const Problem& problem, const std::vector<Hardware>& hardware) {
  std::vector<size_t> order, chosen;
  for (size_t i = 0; i < hardware.size(); ++i) order.push_back(i);
  const auto& cluster = *problem.cluster;
  std::ranges::stable_sort(order, {},
                           [&](size_t i) { return cluster.device(hardware[i].wide).cores.size(); });
  for (const size_t i : order) {
    const auto others = cluster.overlaps(hardware[i].wide);
    const bool free = std::ranges::none_of(
        chosen, [&](size_t c) { return std::ranges::find(others, hardware[c].wide) != others.end(); });
    if (free) chosen.push_back(i);
  }
  return chosen;
}

}  // namespace

std::vector<Plan> typed_plans(const Problem& problem) {
  std::vector<Plan> plans;
  const auto add = [&](const std::vector<Lane>& lanes) {
    if (auto plan = build_plan(problem, lanes); plan.ok()) plans.push_back(std::move(*plan));
  };
  const auto hardware = hardware_of(problem);
  const auto lanes =
      problem.objective == Objective::kThroughput ? side_by_side(problem, hardware) : std::vector<size_t>();
  for (const double least : kLeastRuns) {
    for (const Hardware& h : hardware) add({{assignment_on(problem, h, least), 1.0}});
    if (lanes.size() < 2) continue;
    std::vector<Lane> all;
    for (const size_t i : lanes)
      all.push_back({assignment_on(problem, hardware[i], least), 1 / static_cast<double>(lanes.size())});
    add(all);
  }
  return plans;
}

}  // namespace heddle
