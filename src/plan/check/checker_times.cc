// Durations, precedence, routes and exclusive resources.
#include <algorithm>
#include <limits>
#include <set>

#include "checker_state.h"

namespace heddle {
namespace {

enum ResourceKind { kDeviceResource, kCoreResource, kLinkResource, kBusResource, kEngineResource };
const char* const kResourceNames[] = {"device", "core", "link", "bus", "copy engine"};

}  // namespace

void PlanChecker::check_steps() {
  for (const Device& device : cluster_.devices()) {
    const std::set<int> cores(device.cores.begin(), device.cores.end());
    for (const int core : cores) ++core_users_[{device.host.value, core}];
  }
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    switch (plan_.steps[i].kind) {
      case StepKind::kRun:
        check_run(i);
        break;
      case StepKind::kTransfer:
        check_transfer(i);
        break;
      case StepKind::kLoad:
        check_load(i);
        break;
    }
  }
}

void PlanChecker::check_duration(size_t i, double expected) {
  const double took = timeline_.finish_us[i] - timeline_.start_us[i];
  if (std::abs(took - expected) <= tolerance(timeline_.finish_us[i])) return;
  report(Violation::kTime,
         step_text(i) + " takes " + std::to_string(took) + " us, expected " + std::to_string(expected));
}

// Step `before` must precede step i in the list and end before it starts. -1: missing (reported elsewhere).
void PlanChecker::need(size_t i, int64_t before, const std::string& what) {
  if (before < 0) return;
  const auto b = static_cast<size_t>(before);
  if (b >= i)
    report(Violation::kOrder,
           step_text(i) + " is listed before step " + std::to_string(b) + ", from which " + what);
  if (timeline_.finish_us[b] > timeline_.start_us[i] + tolerance(timeline_.start_us[i])) {
    report(Violation::kOrder, step_text(i) + " starts at " + std::to_string(timeline_.start_us[i]) +
                                  " us, before step " + std::to_string(b) + " ends at " +
                                  std::to_string(timeline_.finish_us[b]) + ": " + what);
  }
}

void PlanChecker::need_tensor(size_t i, TensorId tensor) {
  const Segment& segment = segment_of(i);
  const OpId maker = graph_.tensor(tensor).producer;
  if (!maker.valid()) return;
  const int place = place_[static_cast<size_t>(segment.lane)][maker.index()];
  if (place < 0 || place == plan_.steps[i].segment.value) return;
  const DeviceId from = plan_.segments[static_cast<size_t>(place)].device;
  const int64_t run = run_step_[static_cast<size_t>(place)];
  if (run >= 0 && in_one_stage(static_cast<size_t>(run), i))
    report(Violation::kOrder, step_text(i) + " reads tensor '" + graph_.tensor(tensor).name +
                                  "' from a member of its own stage");
  const std::string what = "it reads tensor '" + graph_.tensor(tensor).name + "'";
  const bool is_order_only = has_given_times() && problem_.transfers->matrix[tensor.index()] < 0;
  if (is_order_only || free_between(from, segment.device))
    return need(i, run_step_[static_cast<size_t>(place)], what);
  const auto it = transfer_to_.find({segment.lane, tensor.value, segment.device.value});
  if (it != transfer_to_.end()) return need(i, static_cast<int64_t>(it->second), what);
  report(Violation::kTransferMissing, step_text(i) + " reads tensor '" + graph_.tensor(tensor).name +
                                          "' from device '" + cluster_.device(from).name +
                                          "', but no step transfers it");
}

// A segment's time when it runs alone. With direct host access: the sum of its ops' times. Under fixed
// sharing, ops with parameters take 2 x as long for each device whose route from host memory shares a link or
// bus with its own.
double PlanChecker::alone_us(const Segment& segment) const {
  if (!segment.host_access) return problem_.costs->segment(segment.ops, segment.device).us;
  const Route* own = cluster_.load_route(segment.device);
  if (own == nullptr || !loads_needed(segment.device)) return kImpossible;
  const auto places = [&](const Route& route) {
    std::set<std::pair<int, int>> used;
    for (const Hop& hop : route.hops) {
      used.insert({kLinkResource, hop.link.value});
      const BusId bus = cluster_.link(hop.link).bus;
      if (bus.valid()) used.insert({kBusResource, bus.value});
    }
    return used;
  };
  const auto here = places(*own);
  int sharers = 0;
  for (size_t d = 0; d < cluster_.num_devices(); ++d) {
    const Route* other = cluster_.load_route(DeviceId(d));
    if (other == nullptr || !loads_needed(DeviceId(d))) continue;
    const auto there = places(*other);
    sharers += std::any_of(here.begin(), here.end(), [&](const auto& x) { return there.count(x) > 0; }) ||
               DeviceId(d) == segment.device;
  }
  double sum = 0;
  for (const OpId op : segment.ops) {
    const auto& params = graph_.op(op).params;
    const bool reads =
        std::any_of(params.begin(), params.end(), [&](ParamId p) { return graph_.param(p).bytes > 0; });
    if (reads) {
      sum += problem_.costs->host_access_us(op, segment.device) *
             (problem_.execution.fixed_sharing ? 2 * sharers : 1);
    } else {
      sum += problem_.costs->us(op, segment.device);
    }
  }
  return sum;
}

// The factor on the time per byte under fixed sharing.
double PlanChecker::transfer_sharing(const CheckedRoute& route) const {
  if (!problem_.execution.fixed_sharing) return 1;
  if (route.hops.size() == 1 && !cluster_.link(route.hops[0].link).bus.valid()) return 1.5;
  int devices = 0;
  for (const Device& device : cluster_.devices()) devices += device.kind != DeviceKind::kCpu;
  return std::max(1, devices);
}

// The time of a run, or of its stage.
double PlanChecker::run_us(size_t i) const {
  const Segment& own = segment_of(i);
  const auto stage = stages_.find(own.stage);
  if (stage == stages_.end() || stage->second.size() == 1) return alone_us(own);
  std::vector<StageItem> items;
  for (const size_t j : stage->second) {
    const Segment& member = segment_of(j);
    const double us = problem_.costs->segment(member.ops, own.device).us;
    if (!std::isfinite(us)) return us;
    items.push_back(problem_.costs->stage_item(member.ops, own.device, us));
  }
  return problem_.costs->stage_model(own.device).us(items);
}

bool PlanChecker::in_one_stage(size_t i, size_t j) const {
  return plan_.steps[i].kind == StepKind::kRun && plan_.steps[j].kind == StepKind::kRun &&
         segment_of(i).stage >= 0 && segment_of(i).stage == segment_of(j).stage;
}

void PlanChecker::check_run(size_t i) {
  const Segment& segment = segment_of(i);
  const double us = run_us(i);
  if (std::isfinite(us)) check_duration(i, us + (moves_within_runs() ? moves_us(i) : 0));
  std::set<TensorId> read;
  std::set<ParamId> used;
  for (const OpId op : segment.ops) {
    read.insert(graph_.op(op).inputs.begin(), graph_.op(op).inputs.end());
    used.insert(graph_.op(op).params.begin(), graph_.op(op).params.end());
  }
  for (const TensorId t : read) need_tensor(i, t);
  if (loads_needed(segment.device) && !segment.host_access) {
    for (const ParamId p : used) {
      if (graph_.param(p).bytes <= 0 || is_resident(cluster_.memory_pool(segment.device), p)) continue;
      const auto it = load_of_.find({cluster_.memory_pool(segment.device), p.value});
      if (it != load_of_.end()) {
        need(i, static_cast<int64_t>(it->second), "it uses parameter '" + graph_.param(p).name + "'");
      } else {
        report(Violation::kLoadMissing,
               step_text(i) + " uses parameter '" + graph_.param(p).name + "', which no step loads");
      }
    }
  }
  if (segment.host_access) occupy_host_access(i);
  occupy(i, kDeviceResource, segment.device.value, 0);
  const Device& device = cluster_.device(segment.device);
  for (const int core : std::set<int>(device.cores.begin(), device.cores.end())) {
    if (core_users_[{device.host.value, core}] > 1) occupy(i, kCoreResource, device.host.value, core);
  }
}

// False for the node of a device that is neither usable nor on the host's own node.
bool PlanChecker::may_pass(NodeId node) const {
  bool is_device = false;
  for (size_t d = 0; d < cluster_.num_devices(); ++d) {
    const DeviceId device(d);
    if (cluster_.device_node(device) != node) continue;
    is_device = true;
    if (problem_.devices.empty() || cluster_.host_node(cluster_.device(device).host) == node) return true;
    if (std::find(problem_.devices.begin(), problem_.devices.end(), device) != problem_.devices.end())
      return true;
  }
  return !is_device;
}

PlanChecker::CheckedRoute PlanChecker::route_of(size_t i, const Route* by_default, NodeId from, NodeId to) {
  const Step& step = plan_.steps[i];
  CheckedRoute route;
  if (step.route >= 0) {
    route.hops = plan_.routes[static_cast<size_t>(step.route)];
  } else if (by_default != nullptr) {
    route.hops = by_default->hops;
  } else {
    report(Violation::kRoute, step_text(i) + ": the cluster has no route from '" + cluster_.node(from).name +
                                  "' to '" + cluster_.node(to).name + "'");
    return route;
  }
  route.bytes_per_s = std::numeric_limits<double>::infinity();
  std::set<NodeId> seen{from};
  NodeId at = from;
  for (const Hop& hop : route.hops) {
    const bool exists = hop.link.valid() && hop.link.index() < cluster_.links().size();
    const Link* link = exists ? &cluster_.link(hop.link) : nullptr;
    const bool leads_on = exists && (hop.forward ? link->a : link->b) == at &&
                          (hop.forward || link->duplex != Duplex::kOneWay) &&
                          seen.insert(hop.forward ? link->b : link->a).second;
    const NodeId next = !exists ? at : hop.forward ? link->b : link->a;
    if (leads_on && step.kind == StepKind::kLoad && step.route >= 0 && next != to && !may_pass(next)) {
      report(Violation::kRoute, step_text(i) + ": its route passes '" + cluster_.node(next).name +
                                    "', which is not among the devices to use");
    }
    if (!leads_on) {
      report(Violation::kRoute, step_text(i) + ": its route breaks at '" + cluster_.node(at).name +
                                    "' (no such link there, against a one-way link, or in a circle)");
      return route;
    }
    at = hop.forward ? link->b : link->a;
    route.latency_us += link->latency_us;
    route.bytes_per_s = std::min(route.bytes_per_s, link->bytes_per_s);
    const double bus = link->bus.valid() ? cluster_.bus(link->bus).bytes_per_s : 0;
    if (bus > 0) route.bytes_per_s = std::min(route.bytes_per_s, bus);
  }
  route.ok = at == to;
  if (!route.ok) {
    report(Violation::kRoute, step_text(i) + ": its route ends at '" + cluster_.node(at).name +
                                  "' instead of '" + cluster_.node(to).name + "'");
  }
  return route;
}

void PlanChecker::occupy(size_t i, int kind, int number, int detail) {
  const int lane = segment_of(i).lane;
  intervals_[{lane, kind, number, detail}].push_back({timeline_.start_us[i], timeline_.finish_us[i], i});
  const double share = plan_.lane_shares[static_cast<size_t>(lane)];
  // A stage holds its device once, not once per member.
  const bool counted = i > 0 && in_one_stage(i, i - 1);
  if (plan_.steps[i].kind != StepKind::kLoad && !counted) {
    load_us_[{kind, number, detail}] += share * (timeline_.finish_us[i] - timeline_.start_us[i]);
  }
}

void PlanChecker::add_links(const std::vector<Hop>& hops, Places& used) const {
  if (!problem_.execution.link_contention) return;
  for (const Hop& hop : hops) {
    const Link& link = cluster_.link(hop.link);
    const int back = hop.forward ? 0 : 1;
    used.insert({kLinkResource, hop.link.value, link.duplex == Duplex::kFull ? back : 0});
    if (!link.bus.valid()) continue;
    used.insert({kBusResource, link.bus.value, cluster_.bus(link.bus).duplex == Duplex::kFull ? back : 0});
  }
}

// Direct host access holds the links and buses of the load route, no copy engine. Fixed sharing: nothing.
void PlanChecker::occupy_host_access(size_t i) {
  const Route* route = cluster_.load_route(segment_of(i).device);
  if (route == nullptr || problem_.execution.fixed_sharing) return;
  Places used;
  add_links(route->hops, used);
  for (const auto& [kind, number, detail] : used) occupy(i, kind, number, detail);
}

void PlanChecker::occupy_route(size_t i, const CheckedRoute& route) {
  Places used;
  if (!problem_.execution.fixed_sharing || plan_.steps[i].kind == StepKind::kLoad)
    add_links(route.hops, used);
  if (problem_.execution.engine_contention) {
    const auto engine = [&](DeviceId d, int in) {
      const int engines = cluster_.device(d).copy_engines;
      if (engines > 0) used.insert({kEngineResource, d.value, engines == 1 ? 0 : in});
    };
    if (plan_.steps[i].kind == StepKind::kTransfer) engine(plan_.steps[i].from, 0);
    engine(plan_.steps[i].to, 1);
  }
  for (const auto& [kind, number, detail] : used) occupy(i, kind, number, detail);
}

void PlanChecker::check_transfer(size_t i) {
  const Step& step = plan_.steps[i];
  const Segment& segment = segment_of(i);
  if (step.from != segment.device) {
    report(Violation::kRoute, step_text(i) + " starts at '" + cluster_.device(step.from).name +
                                  "', but its producer runs on '" + cluster_.device(segment.device).name +
                                  "'");
  }
  const bool is_order_only = has_given_times() && problem_.transfers->matrix[step.tensor.index()] < 0;
  if (is_order_only || free_between(step.from, step.to)) {
    report(Violation::kRoute, step_text(i) + ": between these devices nothing is transferred");
    return;
  }
  need(i, run_step_[step.segment.index()], "its tensor comes");
  if (has_given_times()) {
    if (step.route >= 0) report(Violation::kRoute, step_text(i) + ": its time is given, so it has no route");
    const size_t devices = cluster_.num_devices();
    const auto matrix = static_cast<size_t>(problem_.transfers->matrix[step.tensor.index()]);
    const size_t row = matrix * devices + step.from.index();
    check_duration(i, problem_.transfers->us[row * devices + step.to.index()]);
    return occupy_route(i, {});
  }
  const CheckedRoute route = route_of(i, cluster_.route(step.from, step.to), cluster_.device_node(step.from),
                                      cluster_.device_node(step.to));
  if (!route.ok) return;
  check_duration(i, route.latency_us + static_cast<double>(graph_.tensor(step.tensor).bytes) /
                                           route.bytes_per_s * 1e6 * transfer_sharing(route));
  occupy_route(i, route);
}

void PlanChecker::check_load(size_t i) {
  const DeviceId to = plan_.steps[i].to;
  const CheckedRoute route = route_of(i, cluster_.load_route(to),
                                      cluster_.host_node(cluster_.device(to).host), cluster_.device_node(to));
  if (!route.ok) return;
  check_duration(i, route.latency_us + static_cast<double>(load_bytes_[i]) / route.bytes_per_s * 1e6);
  occupy_route(i, route);
}

void PlanChecker::check_overlaps() {
  for (auto& [key, list] : intervals_) {
    const int kind = std::get<1>(key);
    const bool is_cpu =
        kind == kCoreResource ||
        (kind == kDeviceResource && cluster_.device(DeviceId(std::get<2>(key))).kind == DeviceKind::kCpu);
    if (is_cpu && problem_.execution.unlimited_cpus) continue;
    std::sort(list.begin(), list.end(), [](const Interval& a, const Interval& b) {
      return std::tie(a.start, a.finish, a.step) < std::tie(b.start, b.finish, b.step);
    });
    size_t busy = 0;  // index of the interval that ends last so far
    for (size_t k = 1; k < list.size(); ++k) {
      const Interval &before = list[busy], &now = list[k];
      const std::string where = std::string(kResourceNames[std::get<1>(key)]);
      if (now.start < before.finish - tolerance(before.finish) && !in_one_stage(now.step, before.step)) {
        report(Violation::kOverlap, step_text(now.step) + " starts at " + std::to_string(now.start) +
                                        " us, while " + step_text(before.step) + " holds the same " + where +
                                        " until " + std::to_string(before.finish));
      }
      if (now.step < list[k - 1].step && now.start > list[k - 1].start + tolerance(now.start)) {
        report(Violation::kOrder, step_text(now.step) + " is listed before " + step_text(list[k - 1].step) +
                                      ", but comes after it on the same " + where);
      }
      if (now.finish >= before.finish) busy = k;
    }
  }
}

void PlanChecker::check_totals() {
  const auto differs = [](double a, double b) { return !(std::abs(a - b) <= tolerance(b)); };
  if (differs(timeline_.makespan_us, makespan_)) {
    report(Violation::kTime, "the makespan is given as " + std::to_string(timeline_.makespan_us) +
                                 " us, but the last step ends at " + std::to_string(makespan_));
  }
  // Sums of the steps' times, each of which is as exact as its end.
  const double rounding =
      std::numeric_limits<double>::epsilon() * makespan_ * static_cast<double>(plan_.steps.size());
  const auto sums_differ = [&](double a, double b) { return !(std::abs(a - b) <= tolerance(b) + rounding); };
  double period = 0;
  for (const auto& [key, us] : load_us_) period = std::max(period, us);
  if (problem_.objective == Objective::kThroughput && sums_differ(timeline_.period_us, period)) {
    report(Violation::kTime, "the period is given as " + std::to_string(timeline_.period_us) +
                                 " us, but the busiest resource needs " + std::to_string(period) +
                                 " us per request");
  }
  for (size_t d = 0; d < timeline_.device_busy_us.size(); ++d) {
    const auto it = load_us_.find({kDeviceResource, static_cast<int>(d), 0});
    const double busy = it == load_us_.end() ? 0 : it->second;
    if (d >= cluster_.num_devices() || sums_differ(timeline_.device_busy_us[d], busy)) {
      report(Violation::kTime, "device " + std::to_string(d) + " is said to be busy for " +
                                   std::to_string(timeline_.device_busy_us[d]) + " us, but its steps take " +
                                   std::to_string(busy));
    }
  }
}

}  // namespace heddle
