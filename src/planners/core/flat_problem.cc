#include "flat_problem.h"

#include <algorithm>
#include <map>
#include <set>

namespace heddle {

FlatProblem::FlatProblem(const Problem& problem, std::vector<DeviceId> devices)
    : problem_(problem), graph_(*problem.graph), n_(problem.graph->num_ops()), devices_(std::move(devices)) {
  std::sort(devices_.begin(), devices_.end());
  local_.assign(problem.cluster->num_devices(), -1);
  for (size_t i = 0; i < devices_.size(); ++i) local_[devices_[i].index()] = static_cast<int32_t>(i);
  copy_graph();
  copy_cluster();
  find_core_groups();
  const size_t k = devices_.size();
  us_.resize(n_ * k);
  for (size_t v = 0; v < n_; ++v) {
    const auto row = problem.costs->row(OpId(v));
    for (size_t i = 0; i < k; ++i) us_[v * k + i] = row[devices_[i].index()];
  }
  // An op alone can be a known segment too.
  for (const SegmentCost& s : problem.costs->segments()) {
    if (s.ops.size() == 1 && local(s.device) >= 0)
      us_[s.ops[0].index() * k + static_cast<size_t>(local(s.device))] = s.cost.us;
  }
}

void FlatProblem::copy_graph() {
  const Graph& graph = *problem_.graph;
  for (const Tensor& t : graph.tensors()) {
    reader_begin_.push_back(static_cast<uint32_t>(readers_.size()));
    for (const OpId c : t.consumers) readers_.push_back(static_cast<uint32_t>(c.value));
  }
  reader_begin_.push_back(static_cast<uint32_t>(readers_.size()));
  for (const Param& p : graph.params()) param_bytes_.push_back(p.bytes);
  for (size_t v = 0; v < n_; ++v) num_reads_ += inputs(v).size();
  topological_position_.resize(n_);
  for (const OpId v : graph.topological_order()) {
    topological_position_[v.index()] = static_cast<uint32_t>(topological_.size());
    topological_.push_back(static_cast<uint32_t>(v.value));
  }
}

// The numbering of docs/execution-model.md's resources: two engines a device, two directions a link and a
// bus.
std::vector<uint32_t> FlatProblem::link_resources(std::span<const Hop> hops) const {
  const Cluster& cluster = *problem_.cluster;
  const auto links = 2 * static_cast<uint32_t>(cluster.num_devices());
  const auto buses = links + 2 * static_cast<uint32_t>(cluster.links().size());
  std::set<uint32_t> ids;
  for (const Hop& hop : hops) {
    if (!problem_.execution.link_contention) break;
    const Link& link = cluster.link(hop.link);
    const auto id = static_cast<uint32_t>(hop.link.value);
    ids.insert(links + 2 * id + (link.duplex == Duplex::kFull && !hop.forward ? 1 : 0));
    if (!link.bus.valid()) continue;
    const bool both_ways = cluster.bus(link.bus).duplex == Duplex::kFull;
    ids.insert(buses + 2 * static_cast<uint32_t>(link.bus.value) + (both_ways && !hop.forward ? 1 : 0));
  }
  return {ids.begin(), ids.end()};
}

std::vector<uint32_t> FlatProblem::resources_of(std::span<const Hop> hops, DeviceId from, DeviceId to) const {
  std::vector<uint32_t> ids;
  const auto add_engine = [&](DeviceId d, uint32_t direction) {
    const int engines = problem_.cluster->device(d).copy_engines;
    if (!problem_.execution.engine_contention || engines <= 0) return;
    ids.push_back(2 * static_cast<uint32_t>(d.value) + (engines == 1 ? 0 : direction));
  };
  if (from.valid()) add_engine(from, 0);
  add_engine(to, 1);
  std::sort(ids.begin(), ids.end());
  if (from.valid() && problem_.execution.fixed_sharing) return ids;
  const auto links = link_resources(hops);
  ids.insert(ids.end(), links.begin(), links.end());
  return ids;
}

void FlatProblem::add_resources(Way& way, std::span<const Hop> hops, DeviceId from, DeviceId to) {
  const auto ids = resources_of(hops, from, to);
  way.first = static_cast<uint32_t>(resource_pool_.size());
  resource_pool_.insert(resource_pool_.end(), ids.begin(), ids.end());
  way.last = static_cast<uint32_t>(resource_pool_.size());
  has_contention_ = has_contention_ || !ids.empty();
}

void FlatProblem::copy_cluster() {
  const Cluster& cluster = *problem_.cluster;
  const size_t k = devices_.size();
  num_resources_ = 2 * (cluster.num_devices() + cluster.links().size() + cluster.buses().size());
  ways_.resize(k * k);
  load_ways_.resize(k);
  const auto fill = [&](Way& w, const Route& route, DeviceId from, DeviceId to) {
    w.passage = Passage::kRoute;
    if (!route.hops.empty()) {
      w.latency_us = route.latency_us;
      w.bytes_per_s = route.bytes_per_s;
      if (from.valid() && problem_.execution.fixed_sharing)
        w.bytes_per_s /= sharing_factor(cluster, route.hops);
    }
    add_resources(w, route.hops, from, to);
  };
  for (size_t to = 0; to < k; ++to) {
    const DeviceId t = devices_[to];
    for (size_t from = 0; from < k; ++from) {
      Way& w = ways_[from * k + to];
      w.passage = passage(cluster, devices_[from], t);
      if (w.passage == Passage::kRoute) fill(w, *cluster.route(devices_[from], t), devices_[from], t);
    }
    needs_load_.push_back(heddle::needs_load(cluster, t) ? 1 : 0);
    if (!needs_load_[to]) {
      load_ways_[to].passage = Passage::kFree;
    } else if (is_cold() && cluster.load_route(t) != nullptr) {
      fill(load_ways_[to], *cluster.load_route(t), DeviceId(), t);
    }
    overlap_begin_.push_back(static_cast<uint32_t>(overlaps_.size()));
    for (const DeviceId other : cluster.overlaps(t)) {
      if (local(other) >= 0) overlaps_.push_back(static_cast<uint32_t>(local(other)));
    }
    pool_.push_back(static_cast<uint32_t>(cluster.memory_pool(t)));
  }
  overlap_begin_.push_back(static_cast<uint32_t>(overlaps_.size()));
  if (is_cold() && !problem_.resident.empty()) {
    resident_.assign(problem_.resident.size() * num_params(), 0);
    for (size_t p = 0; p < problem_.resident.size(); ++p) {
      for (const ParamId q : problem_.resident[p]) resident_[p * num_params() + q.index()] = 1;
    }
  }
  for (int p = 0; p < cluster.num_memory_pools(); ++p) {
    pool_limit_.push_back(cluster.memory_pool_bytes(p));
    has_limits_ = has_limits_ || pool_limit_.back() > 0;
  }
}

void FlatProblem::find_core_groups() {
  std::map<std::pair<int32_t, int>, std::vector<uint32_t>> users;
  for (size_t i = 0; i < devices_.size(); ++i) {
    const Device& device = problem_.cluster->device(devices_[i]);
    for (const int core : device.cores) {
      auto& list = users[{device.host.value, core}];
      if (list.empty() || list.back() != i) list.push_back(static_cast<uint32_t>(i));
    }
  }
  std::set<std::vector<uint32_t>> distinct;
  for (const auto& [core, list] : users) {
    if (list.size() > 1) distinct.insert(list);
  }
  core_groups_.assign(distinct.begin(), distinct.end());
}

std::vector<double> FlatProblem::least_us() const {
  std::vector<double> least(n_);
  for (size_t v = 0; v < n_; ++v) least[v] = *std::min_element(row(v).begin(), row(v).end());
  return least;
}

std::vector<double> FlatProblem::least_remaining_us() const {
  std::vector<double> remaining = least_us();
  for (size_t p = n_; p-- > 0;) {
    const uint32_t v = topological_[p];
    double after = 0;
    for (const uint32_t t : outputs(v)) {
      for (const uint32_t w : readers(t)) after = std::max(after, remaining[w]);
    }
    remaining[v] += after;
  }
  return remaining;
}

Assignment to_assignment(const FlatProblem& flat, const FlatPlan& plan) {
  Assignment a;
  a.device.reserve(plan.device.size());
  a.order.reserve(plan.order.size());
  for (const uint32_t i : plan.device) a.device.push_back(flat.device(i));
  for (const uint32_t v : plan.order) a.order.emplace_back(static_cast<int32_t>(v));
  return a;
}

std::optional<FlatPlan> to_flat_plan(const FlatProblem& flat, const Assignment& assignment) {
  FlatPlan plan;
  for (const DeviceId d : assignment.device) {
    if (!d.valid() || flat.local(d) < 0) return std::nullopt;
    plan.device.push_back(static_cast<uint32_t>(flat.local(d)));
  }
  for (const OpId v : assignment.order) plan.order.push_back(static_cast<uint32_t>(v.value));
  return plan;
}

}  // namespace heddle
