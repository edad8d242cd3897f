#include "cold_timer.h"

#include <algorithm>
#include <set>

#include "load_ways.h"

namespace heddle {
namespace {

constexpr size_t kMostHelpers = 8;

bool same_hops(const std::vector<Hop>& a, const std::vector<Hop>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Hop& x, const Hop& y) { return x.link == y.link && x.forward == y.forward; });
}

}  // namespace

ColdTables::ColdTables(const Problem& problem, std::vector<DeviceId> devices)
    : flat_(problem, std::move(devices)) {
  const size_t k = flat_.num_devices();
  ways_.resize(k);
  in_place_resources_.resize(k);
  for (size_t i = 0; i < k; ++i) add_ways(i);
  in_place_us_.assign(flat_.num_ops() * k, kImpossible);
  for (size_t v = 0; v < flat_.num_ops(); ++v) {
    for (size_t i = 0; i < k && has_params(v); ++i)
      in_place_us_[v * k + i] = host_access_us(problem, OpId(v), flat_.device(i));
  }
}

void ColdTables::add_ways(size_t device) {
  const Problem& problem = flat_.problem();
  const Cluster& cluster = *problem.cluster;
  const DeviceId to = flat_.device(device);
  const Route* own = cluster.load_route(to);
  if (!flat_.needs_load(device) || own == nullptr) return;
  const auto& own_way = flat_.load_way(device);
  const auto held = own_way.resources;
  ways_[device].push_back({own_way, {held.begin(), held.end()}, {}, -1});
  if (!problem.execution.fixed_sharing)
    in_place_resources_[device] = flat_.resources().link_resources(own->hops);
  std::set<std::vector<uint32_t>> seen{flat_.resources().link_resources(own->hops)};
  for (size_t h = 0; h < flat_.num_devices() && ways_[device].size() <= kMostHelpers; ++h) {
    if (h == device || cluster.device(flat_.device(h)).host != cluster.device(to).host) continue;
    const auto hops = hops_over(cluster, flat_.device(h), to);
    if (hops.empty()) continue;
    // What leaves host memory over one bus comes no faster by another device behind it.
    const Link& first = cluster.link(hops[0].link);
    std::vector<uint32_t> gate = flat_.resources().link_resources(std::span(hops).first(1));
    if (first.bus.valid() && gate.size() > 1) gate.erase(gate.begin());
    bool shares = false;
    for (const uint32_t r : gate) shares = shares || std::binary_search(held.begin(), held.end(), r);
    if (shares || !seen.insert(gate).second) continue;
    LoadWay way;
    way.hops = hops;
    way.helper = static_cast<int32_t>(h);
    auto transfer = flat_.resources().over(hops, DeviceId(), to, way.resources);
    if (!transfer.ok()) continue;
    way.way = *transfer;
    ways_[device].push_back(std::move(way));
  }
}

ColdTimer::ColdTimer(const ColdTables& tables)
    : tables_(tables), flat_(tables.flat()), n_(flat_.num_ops()), k_(flat_.num_devices()) {
  begin();
}

void ColdTimer::begin() {
  clocks_.assign(flat_.num_resources(), {});
  device_clocks_.assign(k_, {});
  param_at_.assign(flat_.num_pools() * flat_.num_params(), -1);
  param_by_.assign(param_at_.size(), -1);
  for (size_t pool = 0; pool < flat_.num_pools(); ++pool) {
    for (size_t p = 0; p < flat_.num_params(); ++p) {
      if (flat_.is_resident(pool, p)) param_at_[pool * flat_.num_params() + p] = 0;
    }
  }
  arrival_.assign(flat_.num_tensors() * k_, -1);
  start_.assign(n_, 0);
  finish_.assign(n_, 0);
  device_.assign(n_, 0);
  why_.assign(2 * n_, -1);
  pool_bytes_.assign(flat_.num_pools(), 0);
  makespan_ = 0;
}

void ColdTimer::rollback() {
  while (!undo_.empty()) {
    undo_.back()();
    undo_.pop_back();
  }
}

// What of the op's parameters is not in its memory yet.
bool ColdTimer::load(uint32_t op, uint8_t device, uint8_t way) {
  if (way == kInPlace || !tables_.has_params(op) || !flat_.needs_load(device)) return true;
  const size_t pool = flat_.pool(device);
  double* const there = param_at_.data() + pool * flat_.num_params();
  int64_t bytes = 0;
  for (const uint32_t p : flat_.params(op)) {
    if (there[p] < 0) bytes = plus_bytes(bytes, flat_.param_bytes(p));
  }
  if (bytes == 0) return true;
  if (way >= tables_.ways(device).size()) return false;
  const auto& w = tables_.ways(device)[way];
  double ready = 0;
  int32_t why = -1;
  for (const uint32_t r : w.resources) wait(clocks_[r].free_at, clocks_[r].by, ready, why);
  const double us = w.way.time_us(bytes), finish = ready + us;
  held_us_ += us;
  const auto self = static_cast<int32_t>(n_ + op);
  why_[n_ + op] = why;
  for (const uint32_t r : w.resources) set(clocks_[r], {finish, self});
  for (const uint32_t p : flat_.params(op)) {
    if (there[p] >= 0) continue;
    set(there[p], finish);
    param_by_[pool * flat_.num_params() + p] = self;
  }
  set(pool_bytes_[pool], plus_bytes(pool_bytes_[pool], bytes));
  makespan_ = std::max(makespan_, finish);
  if (plan_ != nullptr) {
    plan_->steps.push_back({StepKind::kLoad, SegmentId(segment_of_[op]), TensorId(), DeviceId(),
                            flat_.device(device), route_numbers_[device][way]});
  }
  return true;
}

double ColdTimer::run(uint32_t op, uint8_t device, uint8_t way) {
  const bool in_place = way == kInPlace && tables_.has_params(op) && flat_.needs_load(device);
  const double us = in_place ? tables_.in_place_us(op, device) : flat_.us(op, device);
  if (!(us < kImpossible)) return kImpossible;
  double ready = 0;
  int32_t why = -1;
  for (const uint32_t t : flat_.inputs(op)) {
    const uint32_t producer = flat_.producer(t);
    const uint8_t from = device_[producer];
    double at = finish_[producer];
    const auto& w = flat_.way(from, device);
    if (from != device && w.passage == Passage::kNone) return kImpossible;
    if (from != device && w.passage == Passage::kRoute) {
      double& arrival = arrival_[t * k_ + device];
      if (arrival < 0) {
        for (const uint32_t r : w.resources) at = std::max(at, clocks_[r].free_at);
        at += w.time_us(flat_.bytes(t));
        for (const uint32_t r : w.resources) set(clocks_[r], {at, static_cast<int32_t>(producer)});
        set(arrival, at);
        makespan_ = std::max(makespan_, at);
        if (plan_ != nullptr) {
          plan_->steps.push_back({StepKind::kTransfer, SegmentId(segment_of_[producer]), TensorId(size_t{t}),
                                  flat_.device(from), flat_.device(device), -1});
        }
      }
      at = arrival;
    }
    wait(at, static_cast<int32_t>(producer), ready, why);
  }
  if (!in_place && flat_.needs_load(device)) {
    const size_t base = flat_.pool(device) * flat_.num_params();
    for (const uint32_t p : flat_.params(op)) {
      if (param_at_[base + p] < 0) return kImpossible;
      wait(param_at_[base + p], param_by_[base + p], ready, why);
    }
  }
  wait(device_clocks_[device].free_at, device_clocks_[device].by, ready, why);
  if (in_place) {
    for (const uint32_t r : tables_.in_place_resources(device))
      wait(clocks_[r].free_at, clocks_[r].by, ready, why);
  }
  const double finish = ready + us;
  const auto self = static_cast<int32_t>(op);
  set(device_clocks_[device], {finish, self});
  if (in_place) {
    for (const uint32_t r : tables_.in_place_resources(device)) set(clocks_[r], {finish, self});
    if (!tables_.in_place_resources(device).empty()) held_us_ += us;
  }
  start_[op] = ready;
  finish_[op] = finish;
  device_[op] = device;
  why_[op] = why;
  makespan_ = std::max(makespan_, finish);
  if (plan_ != nullptr) {
    plan_->steps.push_back({StepKind::kRun, SegmentId(segment_of_[op]), TensorId(), flat_.device(device),
                            flat_.device(device), -1});
  }
  return finish;
}

double ColdTimer::try_op(uint32_t op, uint8_t device, uint8_t way) {
  trying_ = true;
  held_us_ = 0;
  const double makespan = makespan_;
  const double finish = load(op, device, way) ? run(op, device, way) : kImpossible;
  rollback();
  makespan_ = makespan;
  trying_ = false;
  return finish;
}

double ColdTimer::place(uint32_t op, uint8_t device, uint8_t way) {
  held_us_ = 0;
  return load(op, device, way) ? run(op, device, way) : kImpossible;
}

double ColdTimer::time(const ColdDecisions& d) {
  begin();
  due_.assign(n_, -1);
  next_due_.assign(n_, -1);
  // From the last place on, so that loads due at one place come in the order of their runs.
  for (size_t i = n_; i-- > 0;) {
    const uint32_t v = d.order[i];
    const size_t at = i - std::min<size_t>(i, d.lead[v]);
    next_due_[v] = due_[at];
    due_[at] = static_cast<int32_t>(v);
  }
  for (size_t i = 0; i < n_; ++i) {
    for (int32_t v = due_[i]; v >= 0; v = next_due_[static_cast<size_t>(v)]) {
      const auto op = static_cast<uint32_t>(v);
      if (!load(op, d.device[op], d.way[op])) return kImpossible;
    }
    const uint32_t v = d.order[i];
    if (!(run(v, d.device[v], d.way[v]) < kImpossible)) return kImpossible;
  }
  return makespan_;
}

double ColdTimer::excess_bytes(const Reserve& reserve) const {
  // Where parameters may leave again their sum says nothing.
  if (flat_.problem().execution.parameter_drops) return 0;
  double excess = 0;
  for (size_t pool = 0; pool < pool_bytes_.size(); ++pool) {
    const int64_t limit = flat_.pool_limit(pool);
    const int64_t kept = pool < reserve.size() ? reserve[pool] : 0;
    if (limit > 0)
      excess += std::max(0.0, static_cast<double>(pool_bytes_[pool]) + static_cast<double>(kept) -
                                  static_cast<double>(limit));
  }
  return excess;
}

double ColdTimer::mean_finish_us() const {
  double sum = 0;
  for (const double f : finish_) sum += f;
  return sum / static_cast<double>(n_);
}

std::vector<uint32_t> ColdTimer::critical_ops() const {
  std::vector<uint32_t> ops;
  auto at = static_cast<int32_t>(std::max_element(finish_.begin(), finish_.end()) - finish_.begin());
  for (size_t steps = 0; at >= 0 && steps < 2 * n_; ++steps) {
    ops.push_back(static_cast<uint32_t>(at) % static_cast<uint32_t>(n_));
    at = why_[static_cast<size_t>(at)];
  }
  return ops;
}

Plan ColdTimer::plan(const ColdDecisions& d) {
  Plan plan;
  route_numbers_.assign(k_, {});
  for (size_t i = 0; i < k_; ++i) {
    for (const auto& way : tables_.ways(i)) {
      route_numbers_[i].push_back(way.hops.empty() ? -1 : static_cast<int32_t>(plan.routes.size()));
      if (!way.hops.empty()) plan.routes.push_back(way.hops);
    }
  }
  const Problem& problem = flat_.problem();
  segment_of_.assign(n_, -1);
  for (const uint32_t v : d.order) {
    segment_of_[v] = static_cast<int32_t>(plan.segments.size());
    const bool loads = tables_.has_params(v) && flat_.needs_load(d.device[v]);
    const bool in_place = loads && d.way[v] == kInPlace;
    Segment segment;
    segment.name = problem.graph->op(OpId(size_t{v})).name;
    segment.ops = {OpId(size_t{v})};
    segment.device = flat_.device(d.device[v]);
    segment.host_access = in_place;
    segment.drops_params = problem.execution.parameter_drops && loads && !in_place;
    plan.segments.push_back(std::move(segment));
  }
  plan_ = &plan;
  time(d);
  plan_ = nullptr;
  return plan;
}

std::optional<ColdDecisions> cold_decisions(const ColdTables& tables, const Plan& plan) {
  const FlatProblem& flat = tables.flat();
  const Graph& graph = *flat.problem().graph;
  ColdDecisions d(flat.num_ops());
  std::vector<uint32_t> loaded_after(flat.num_ops(), UINT32_MAX);  // runs before the load
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::kTransfer) continue;
    const Segment& segment = plan.segments[step.segment.index()];
    if (segment.stage >= 0 || segment.lane != 0 || flat.local(segment.device) < 0) return std::nullopt;
    const auto device = static_cast<size_t>(flat.local(segment.device));
    const auto& ways = tables.ways(device);
    if (step.kind == StepKind::kLoad) {
      uint8_t way = 0;
      for (size_t w = 1; step.route >= 0 && w < ways.size(); ++w) {
        if (same_hops(ways[w].hops, plan.routes[static_cast<size_t>(step.route)]))
          way = static_cast<uint8_t>(w);
      }
      for (const OpId op : segment.ops) {
        d.way[op.index()] = way;
        loaded_after[op.index()] = static_cast<uint32_t>(d.order.size());
      }
      continue;
    }
    auto ops = segment.ops;
    std::sort(ops.begin(), ops.end(),
              [&](OpId a, OpId b) { return graph.topological_position(a) < graph.topological_position(b); });
    for (const OpId op : ops) {
      const size_t v = op.index();
      d.device[v] = static_cast<uint8_t>(device);
      if (segment.host_access && tables.has_params(v)) d.way[v] = kInPlace;
      const auto place = static_cast<uint32_t>(d.order.size());
      if (loaded_after[v] != UINT32_MAX) d.lead[v] = place - loaded_after[v];
      d.order.push_back(static_cast<uint32_t>(v));
    }
  }
  if (d.order.size() != flat.num_ops()) return std::nullopt;
  return d;
}

}  // namespace heddle
