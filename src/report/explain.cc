#include "heddle/report/explain.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "heddle/base/gap.h"
#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/cluster/edit.h"
#include "heddle/cluster/variants.h"
#include "heddle/plan/resource_map.h"
#include "precision_choice.h"

namespace heddle {
namespace {

constexpr double kLeastGain = 1e-3;
constexpr size_t kMostSuggestions = 8;

void try_change(const Problem& changed, const Plan& plan, double value_us, const std::string& text,
                std::vector<Suggestion>& out) {
  const auto value = evaluate_objective(changed, plan);
  if (!value.ok()) return;
  const double gain = value_us > 0 ? (value_us - *value) / value_us : 0;
  if (gain >= kLeastGain) out.push_back({text, *value, gain});
}

// Links that the plan's transfers and loads use.
std::set<LinkId> used_links(const Problem& problem, const Plan& plan) {
  std::set<LinkId> links;
  for (const auto& step : plan.steps) {
    const std::vector<Hop>* hops = nullptr;
    if (step.route >= 0) {
      hops = &plan.routes[static_cast<size_t>(step.route)];
    } else if (step.kind != StepKind::kRun) {
      const auto* route = step.kind == StepKind::kLoad ? problem.cluster->load_route(step.to)
                                                       : problem.cluster->route(step.from, step.to);
      if (route != nullptr) hops = &route->hops;
    }
    if (hops == nullptr) continue;
    for (const auto& hop : *hops) links.insert(hop.link);
  }
  return links;
}

Problem with_devices_scaled(const Problem& problem, std::span<const DeviceId> devices, double times) {
  Problem changed = problem;
  auto costs = std::make_shared<CostTable>(*problem.costs);
  for (const auto device : devices) costs->scale(device, times);
  changed.costs = std::move(costs);
  return changed;
}

// Nothing where the changed cluster is invalid.
std::optional<Problem> with_link_scaled(const Problem& problem, const std::string& link, double factor) {
  auto cluster = edit_cluster(*problem.cluster, {.scale = link, .factor = factor});
  if (!cluster.ok()) return std::nullopt;
  Problem changed = problem;
  changed.cluster = *cluster;
  return changed;
}

// Helpful changes of the hardware: times the same plan under one change at a time. Best first; changes that gain less
// than 0.1 % are left out.
std::vector<Suggestion> suggest(const Problem& problem, const Plan& plan, double value_us) {
  std::vector<Suggestion> list;
  std::set<DeviceId> used;
  for (const auto& s : plan.segments) used.insert(problem.cluster->physical(s.device));
  for (const auto device : used) {
    const auto changed = with_devices_scaled(problem, problem.cluster->variants(device), 0.5);
    try_change(changed, plan, value_us, problem.cluster->device(device).name + " twice as fast", list);
  }
  for (const auto link : used_links(problem, plan)) {
    const auto& name = problem.cluster->link(link).name;
    const auto changed = with_link_scaled(problem, name, 2);
    if (changed) try_change(*changed, plan, value_us, "link " + name + " twice as fast", list);
  }
  Problem uncontended = problem;
  uncontended.execution.link_contention = uncontended.execution.engine_contention = false;
  try_change(uncontended, plan, value_us, "transfers that never wait for each other", list);
  std::stable_sort(list.begin(), list.end(),
                   [](const Suggestion& a, const Suggestion& b) { return a.gain > b.gain; });
  if (list.size() > kMostSuggestions) list.resize(kMostSuggestions);
  return list;
}

int64_t param_bytes_on(const Problem& problem, const Plan& plan, DeviceId device) {
  std::vector<OpId> ops;
  for (const auto& s : plan.segments)
    if (s.device == device) ops.insert(ops.end(), s.ops.begin(), s.ops.end());
  return problem.graph->param_bytes(ops);
}

// Time of the whole model on one device; infinite if the device cannot run all ops.
double alone_us(const Problem& problem, DeviceId device) {
  double sum = 0;
  std::vector<OpId> all;
  for (size_t i = 0; i < problem.graph->num_ops(); ++i) {
    sum += problem.costs->us(OpId(i), device);
    all.emplace_back(i);
  }
  return problem.costs->knows_segment(all, device) ? problem.costs->segment(all, device).us : sum;
}

std::string why_unused(const Problem& problem, DeviceId device, double value_us,
                       const std::vector<bool>& used) {
  const auto& cluster = *problem.cluster;
  if (!problem.may_use(device)) return "not among the devices that the plan may use";
  size_t can = 0;
  for (size_t i = 0; i < problem.graph->num_ops(); ++i)
    can += problem.costs->us(OpId(i), device) < kImpossible;
  if (can == 0) return "it can run none of the ops";
  for (const auto other : cluster.overlaps(device)) {
    const bool variant = cluster.physical(other) == cluster.physical(device);
    if (used[other.index()])
      return (variant ? "the device runs as " : "its cores are used by ") + cluster.device(other).name;
  }
  const double alone = alone_us(problem, device);
  if (alone < kImpossible) {
    return "the whole model would take " + format_us(alone) +
           " on it; no part was worth moving there (the plan needs " + format_us(value_us) + ")";
  }
  return "it can run only " + std::to_string(can) + " of " + std::to_string(problem.graph->num_ops()) +
         " ops";
}

// What the device's idle time was spent waiting for; requests that follow each other fill it with each other's work.
std::string what_limits(const Problem& problem, const Plan& plan, const Timeline& timeline, DeviceId device,
                        double busy_share) {
  if (busy_share > 0.95) return "bottleneck: the device is saturated";
  if (problem.objective == Objective::kThroughput)
    return "idle for " + percent(1 - busy_share) + " of the period";
  double waits_transfer = 0, waits_other = 0;
  double last_finish = 0;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const auto& step = plan.steps[i];
    if (step.kind != StepKind::kRun || plan.segments[step.segment.index()].device != device) continue;
    const double idle_from = std::exchange(last_finish, timeline.finish_us[i]);
    const auto w = timeline.waited_for[i];
    if (idle_from >= timeline.start_us[i] || !w.valid()) continue;
    // Until the transfer began, what it sends was computed.
    const bool run = plan.steps[w.index()].kind == StepKind::kRun;
    const double sent_from = run ? timeline.start_us[i] : std::max(idle_from, timeline.start_us[w.index()]);
    waits_other += sent_from - idle_from;
    waits_transfer += timeline.start_us[i] - sent_from;
  }
  const double end_idle = timeline.makespan_us - last_finish;
  if (end_idle >= std::max(waits_transfer, waits_other))
    return "done early; idle for the last " + format_us(end_idle);
  if (waits_transfer >= waits_other) return "waits " + format_us(waits_transfer) + " for transfers or loads";
  return "waits " + format_us(waits_other) + " for other devices";
}

std::vector<DeviceExplanation> explain_devices(const Problem& problem, const Plan& plan,
                                               const Timeline& timeline, double value_us) {
  const auto& cluster = *problem.cluster;
  std::vector<bool> used(cluster.num_devices());
  for (const auto& s : plan.segments) used[s.device.index()] = true;
  std::vector<DeviceExplanation> list;
  for (size_t d = 0; d < cluster.num_devices(); ++d) {
    const DeviceId id(d);
    DeviceExplanation e;
    e.device = cluster.device(id).name;
    e.used = used[d];
    e.requested = std::find(problem.devices.begin(), problem.devices.end(), id) != problem.devices.end();
    for (const DeviceId same : cluster.variants(id)) e.runs_as_variant |= same != id && used[same.index()];
    e.busy_share = value_us > 0 ? timeline.device_busy_us[d] / value_us : 0;
    for (const auto& s : plan.segments) e.segments += s.device == id;
    e.param_bytes = param_bytes_on(problem, plan, id);
    e.reason = e.used ? what_limits(problem, plan, timeline, id, e.busy_share)
                      : why_unused(problem, id, value_us, used);
    list.push_back(std::move(e));
  }
  return list;
}

// Where transfers have given times, tensors have no size.
std::string bytes_text(const Problem& problem, TensorId tensor) {
  if (problem.transfers) return "";
  return " (" + format_bytes(problem.graph->tensor(tensor).bytes) + ")";
}

std::string step_text(const Problem& problem, const Plan& plan, const Step& step) {
  const auto& cluster = *problem.cluster;
  const auto& segment = plan.segments[step.segment.index()];
  switch (step.kind) {
    case StepKind::kRun:
      return "run " + segment.name + " on " + cluster.device(segment.device).name;
    case StepKind::kTransfer:
      return "send " + problem.graph->tensor(step.tensor).name + bytes_text(problem, step.tensor) + " " +
             cluster.device(step.from).name + " -> " + cluster.device(step.to).name;
    case StepKind::kLoad:
      return "load parameters of " + segment.name + " to " + cluster.device(step.to).name;
  }
  return "";
}

// A segment that was not measured as one has the sum of its units.
VariantChoice::Time time_on(const Problem& problem, const Segment& segment, DeviceId id) {
  const Device& device = problem.cluster->device(id);
  const Cost cost = problem.costs->segment(segment.ops, id);
  return {.device = device.name,
          .variant = variant_text(variant_of(device)),
          .us = cost.us,
          .measured = cost.origin == Origin::kMeasured,
          .chosen = id == segment.device};
}

std::vector<VariantChoice> explain_variants(const Problem& problem, const Plan& plan) {
  std::vector<VariantChoice> choices;
  for (const Segment& segment : plan.segments) {
    VariantChoice choice{.segment = segment.name, .times = {}};
    for (const DeviceId id : problem.cluster->variants(segment.device)) {
      if (problem.may_use(id)) choice.times.push_back(time_on(problem, segment, id));
    }
    if (choice.times.size() > 1) choices.push_back(std::move(choice));
  }
  return choices;
}

void explain_path(const Problem& problem, const Plan& plan, const Timeline& timeline, Explanation& e) {
  const double whole = timeline.makespan_us;
  if (whole <= 0) return;
  std::optional<DeviceId> running;
  int united = 0;
  for (const auto id : critical_path(timeline)) {
    const auto& step = plan.steps[id.index()];
    const double us = timeline.finish_us[id.index()] - timeline.start_us[id.index()];
    const double share = us / whole;
    (step.kind == StepKind::kRun        ? e.compute_share
     : step.kind == StepKind::kTransfer ? e.transfer_share
                                        : e.load_share) += share;
    const auto device = plan.segments[step.segment.index()].device;
    if (step.kind == StepKind::kRun && running == device) {
      auto& last = e.critical_path.back();
      last.us += us;
      last.share += share;
      const auto plus = last.what.rfind(", and ");
      if (united > 0 && plus != std::string::npos) last.what.resize(plus);
      last.what += ", and " + std::to_string(++united) + " more there";
      continue;
    }
    united = 0;
    running = step.kind == StepKind::kRun ? std::optional<DeviceId>(device) : std::nullopt;
    e.critical_path.push_back({step_text(problem, plan, step), us, share});
  }
}

// The problem in which the named resource takes next to no time; nothing for a bus or a copy engine, whose speed is
// that of its links.
std::optional<Problem> without_resource(const Problem& problem, const std::string& resource) {
  const Cluster& cluster = *problem.cluster;
  std::vector<DeviceId> devices;
  for (size_t d = 0; d < cluster.num_devices(); ++d)
    if (resource == "device " + cluster.device(DeviceId(d)).name) devices.emplace_back(d);
  for (const auto& group : core_groups(cluster))
    if (resource == group.name) devices = group.devices;
  if (!devices.empty()) return with_devices_scaled(problem, devices, 1e-9);
  for (const auto& link : cluster.links()) {
    const auto name = "link " + link.name;
    if (resource == name || resource == name + " >" || resource == name + " <")
      return with_link_scaled(problem, link.name, 1e6);
  }
  return std::nullopt;
}

const ResourceUse* busiest(const Timeline& timeline) {
  const auto it = std::ranges::max_element(timeline.resources, {}, &ResourceUse::busy_us);
  return it == timeline.resources.end() ? nullptr : &*it;
}

// A device's cores, a link's bus and both ends' engines are as busy with the same work, so the next bottleneck is what
// a new evaluation finds.
std::optional<NextBottleneck> next_bottleneck(const Problem& problem, const Plan& plan,
                                              const Timeline& timeline) {
  const ResourceUse* now = busiest(timeline);
  if (now == nullptr || now->busy_us <= 0) return std::nullopt;
  const auto changed = without_resource(problem, now->name);
  if (!changed) return std::nullopt;
  const auto then = evaluate(*changed, plan);
  const ResourceUse* next = then.ok() ? busiest(*then) : nullptr;
  if (next == nullptr || next->name == now->name || next->busy_us <= now->busy_us * 1e-6) return std::nullopt;
  return NextBottleneck{.bottleneck = now->name, .next = next->name, .limit_us = next->busy_us};
}

void add_warnings(const Problem& problem, Explanation& e) {
  if (e.bound.us > e.value_us * (1 + kSolverTolerance))
    e.warnings.push_back("the plan is below its bound, so one of the two is wrong; see heddle verify");
  for (const auto& d : e.devices) {
    if (d.is_left_out()) e.warnings.push_back(d.device + " was requested but is not used: " + d.reason);
  }
  size_t estimated = 0, entries = 0;
  for (const auto device : problem.usable_devices()) {
    for (size_t i = 0; i < problem.graph->num_ops(); ++i) {
      const auto cost = problem.costs->at(OpId(i), device);
      if (cost.us >= kImpossible) continue;
      ++entries;
      estimated += cost.origin == Origin::kEstimated;
    }
  }
  if (estimated > 0) {
    e.warnings.push_back(
        std::to_string(estimated) + " of " + std::to_string(entries) +
        " times are estimates (roofline), not measurements: trust the ranking more than the figures");
  }
}

}  // namespace

Explanation explain(const Problem& problem, const Plan& plan, const Timeline& timeline, const Bound& bound) {
  Explanation e;
  e.objective = problem.objective;
  e.batch = problem.batch;
  e.value_us = objective_us(problem, timeline);
  e.bound = bound;
  e.gap = relative_gap(e.value_us, bound.us);
  e.single = best_single_device(problem);
  e.devices = explain_devices(problem, plan, timeline, e.value_us);
  e.variants = explain_variants(problem, plan);
  explain_path(problem, plan, timeline, e);
  if (problem.objective == Objective::kThroughput)
    e.next_bottleneck = next_bottleneck(problem, plan, timeline);
  e.suggestions = suggest(problem, plan, e.value_us);
  if (auto robust = robustness(problem, plan); robust.ok()) e.robustness = std::move(*robust);
  e.precision_text = int8_text(problem) + precision_choice_text(problem);
  if (problem.precision) {
    e.precision_units = precision_units_table(problem);
    e.precision = std::make_shared<const Json>(precision_choice_json(problem));
  }
  add_warnings(problem, e);
  return e;
}

}  // namespace heddle
