// DeepPlan (EuroSys 2023), as SortingHat (ICS'25) describes and compares with it in sections 2.1, 3.2
// and 4.2: the model runs on one device; each layer either has its parameters loaded or reads them in place
// (direct host access), and other devices' buses carry part of the parameters on the one device's behalf
// (parallel transmission).
//
// Minimises the makespan of one request, for each device that runs the whole model. Loads: in the order of
// first use, each over the way (its own bus, or another device's and on from there) on which it arrives first
// when nothing else moves. Host access: from "none" and from "wherever possible", ops in order change sides
// while the evaluator's makespan falls (memory above the limit counts first), for up to kMostPasses passes.
// O(k V (V + E) log V) a pass. Exploits loads that overlap with runs; ignores other devices' computing.
#include <algorithm>
#include <map>
#include <set>

#include "core/plan_store.h"
#include "load_ways.h"

namespace heddle {
namespace {

constexpr int kMostPasses = 3;
// Relative: less is rounding, not progress.
constexpr double kLess = 1e-12;

struct Transmission {
  int32_t route = -1;  // index into the assignment's routes; -1: the cluster's
  double latency_us = 0, us_per_byte = 0;
  std::set<std::pair<int, int>> holds;  // links (0) and buses (1)
};

Transmission way_over(const Cluster& cluster, const std::vector<Hop>& hops, int32_t route) {
  Transmission way{.route = route, .latency_us = 0, .us_per_byte = 0, .holds = {}};
  for (const Hop& hop : hops) {
    const Link& link = cluster.link(hop.link);
    way.latency_us += link.latency_us;
    way.us_per_byte = std::max(way.us_per_byte, 1e6 / link.bytes_per_s);
    way.holds.insert({0, hop.link.value});
    if (!link.bus.valid()) continue;
    way.holds.insert({1, link.bus.value});
    const double rate = cluster.bus(link.bus).bytes_per_s;
    if (rate > 0) way.us_per_byte = std::max(way.us_per_byte, 1e6 / rate);
  }
  return way;
}

// One device's plan: what each op does, and what that takes.
class Layers {
 public:
  Layers(const Problem& problem, DeviceId device, const PlannerOptions& options)
      : problem_(problem), options_(options), device_(device), evaluator_(problem) {
    const Graph& graph = *problem.graph;
    a_.device.assign(graph.num_ops(), device);
    a_.order.assign(graph.topological_order().begin(), graph.topological_order().end());
    for (const OpId op : a_.order) {
      if (bytes_of(op) > 0 && host_access_us(problem, op, device) < kImpossible) choices_.push_back(op);
    }
  }

  // Loads go over other devices' buses, too.
  bool transmit_in_parallel() {
    const Cluster& cluster = *problem_.cluster;
    const Route* own = cluster.load_route(device_);
    if (own == nullptr || own->hops.empty()) return false;
    ways_ = {way_over(cluster, own->hops, -1)};
    for (const DeviceId helper : problem_.usable_devices()) {
      if (helper == device_ || cluster.device(helper).host != cluster.device(device_).host) continue;
      auto hops = hops_over(cluster, helper, device_);
      if (hops.empty()) continue;
      ways_.push_back(way_over(cluster, hops, static_cast<int32_t>(a_.routes.size())));
      a_.routes.push_back(std::move(hops));
    }
    spread_loads();
    return ways_.size() > 1;
  }

  // Searches from both ends; the better plan's decisions.
  const Assignment& choose_host_access() {
    if (choices_.empty()) return a_;
    Assignment best = a_;
    Cost least = search(/*host_access=*/false);
    best = a_;
    if (search(/*host_access=*/true) < least) best = a_;
    a_ = std::move(best);
    return a_;
  }

 private:
  using Cost = std::pair<double, double>;  // bytes above the limits, makespan

  int64_t bytes_of(OpId op) const {
    int64_t bytes = 0;
    for (const ParamId p : problem_.graph->op(op).params) {
      const bool there = problem_.is_resident(problem_.cluster->memory_pool(device_), p);
      if (!there && __builtin_add_overflow(bytes, problem_.graph->param(p).bytes, &bytes)) return INT64_MAX;
    }
    return bytes;
  }

  // Each load, in the order of first use, on the way on which it arrives first.
  void spread_loads() {
    std::map<std::pair<int, int>, double> free_at;
    a_.load_route.assign(problem_.graph->num_ops(), -1);
    for (const OpId op : a_.order) {
      const auto bytes = static_cast<double>(bytes_of(op));
      const bool in_place = !a_.host_access.empty() && a_.host_access[op.index()] != 0;
      if (bytes == 0 || in_place) continue;
      const Transmission* best = nullptr;
      double first = kImpossible;
      for (const Transmission& way : ways_) {
        double at = 0;
        for (const auto& held : way.holds) at = std::max(at, free_at[held]);
        at += way.latency_us + bytes * way.us_per_byte;
        if (at < first) {
          first = at;
          best = &way;
        }
      }
      if (best == nullptr) continue;
      for (const auto& held : best->holds) free_at[held] = first;
      a_.load_route[op.index()] = best->route;
    }
  }

  Cost cost() {
    if (ways_.size() > 1) spread_loads();
    const auto plan = build_plan(problem_, a_);
    if (!plan.ok() || !evaluator_.evaluate(*plan, {.critical = false, .resources = true}, timeline_).ok())
      return {kImpossible, kImpossible};
    double excess = 0;
    for (size_t pool = 0; pool < timeline_.peak_memory_bytes.size(); ++pool) {
      const int64_t limit = problem_.cluster->memory_pool_bytes(static_cast<int>(pool));
      if (limit > 0)
        excess += std::max(
            0.0, static_cast<double>(timeline_.peak_memory_bytes[pool]) - static_cast<double>(limit));
    }
    return {excess, timeline_.makespan_us};
  }

  static bool less(const Cost& a, const Cost& b) {
    return a.first != b.first ? a.first < b.first : a.second < b.second * (1 - kLess);
  }

  Cost search(bool host_access) {
    a_.host_access.assign(problem_.graph->num_ops(), 0);
    for (const OpId op : choices_) a_.host_access[op.index()] = host_access;
    Cost now = cost();
    for (int pass = 0; pass < kMostPasses; ++pass) {
      bool improved = false;
      for (const OpId op : choices_) {
        if (options_.deadline.should_stop()) break;
        uint8_t& choice = a_.host_access[op.index()];
        choice ^= 1;
        const Cost other = cost();
        if (less(other, now)) {
          now = other;
          improved = true;
        } else {
          choice ^= 1;
        }
      }
      if (!improved) break;
    }
    if (ways_.size() > 1) spread_loads();
    return now;
  }

  const Problem& problem_;
  const PlannerOptions& options_;
  const DeviceId device_;
  Evaluator evaluator_;
  Timeline timeline_;
  std::vector<OpId> choices_;  // ops that may read their parameters in place
  std::vector<Transmission> ways_;
  Assignment a_;
};

Result<PlannerOutput> plan_deep_plan(const Problem& problem, const PlannerOptions& options) {
  PlanStore candidates(problem);
  for (const DeviceId device : problem.usable_devices()) {
    if (options.deadline.cancelled() || (options.deadline.should_stop() && !candidates.empty())) break;
    const std::string& name = problem.cluster->device(device).name;
    Layers alone(problem, device, options);
    candidates.offer(alone.choose_host_access(), name);
    Layers with_help(problem, device, options);
    if (with_help.transmit_in_parallel())
      candidates.offer(with_help.choose_host_access(), name + " with other devices' buses");
  }
  const bool stopped = options.deadline.should_stop();
  return candidates.output(stopped ? StopReason::kTimeLimit : StopReason::kFinished, options.deadline);
}

}  // namespace

PlannerEntry deepplan_planner() {
  return {
      {.name = "deepplan",
       .description = "one device: per layer direct host access or a load, partly over other devices' buses",
       .source = "DeepPlan, EuroSys 2023, as in SortingHat, sections 2.1, 3.2 and 4.2",
       .objectives = {Objective::kColdLatency},
       .exploits = "loads that overlap with runs, direct host access, parallel transmission",
       .ignores = "other devices' computing"},
      plan_deep_plan};
}

}  // namespace heddle
