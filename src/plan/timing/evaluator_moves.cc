// The steps that move data: transfers and loads, and the ways that they take.
#include <algorithm>
#include <utility>

#include "evaluation.h"

namespace heddle {

std::optional<Way> Evaluator::Impl::way_of(size_t i, const Way& cluster_way, NodeId from,
                                           DeviceId from_device) {
  const Step& step = plan_->steps[i];
  if (step.route < 0) {
    if (step.route == -1 && cluster_way.passage == Passage::kRoute) return cluster_way;
    fail(i, step.route == -1 ? "there is no route to device '" + cluster_.device(step.to).name + "'"
                             : "there is no such route");
    return std::nullopt;
  }
  if (static_cast<size_t>(step.route) >= plan_->routes.size()) {
    fail(i, "there is no route " + std::to_string(step.route));
    return std::nullopt;
  }
  const auto& hops = plan_->routes[static_cast<size_t>(step.route)];
  for (size_t h = 0; step.kind == StepKind::kLoad && h + 1 < hops.size(); ++h) {
    if (!hops[h].link.valid() || hops[h].link.index() >= cluster_.links().size()) break;
    const Link& link = cluster_.link(hops[h].link);
    const NodeId node = hops[h].forward ? link.b : link.a;
    if (closed_nodes_[node.index()] == 0) continue;
    fail(i, "its route passes '" + cluster_.node(node).name + "', which is not among the devices to use");
    return std::nullopt;
  }
  auto route = make_route(cluster_, hops, from, cluster_.device_node(step.to));
  if (!route.ok()) {
    fail(i, route.error().message());
    return std::nullopt;
  }
  auto own =
      std::make_unique<OwnWay>(OwnWay{std::move(*route), map_.resources_of(hops, from_device, step.to)});
  Way way{Passage::kRoute, &own->route, own->resources};
  way.take_rates(map_.sharing(hops, from_device));
  own_ways_.push_back(std::move(own));
  return way;
}

void Evaluator::Impl::occupy(size_t i, size_t lane, const Way& way, double us, Ready ready) {
  const size_t base = lane * map_.size();
  for (const uint32_t r : way.resources) ready.wait_for(clocks_[base + r].free_at, clocks_[base + r].step);
  const double finish = ready.at + us;
  for (const uint32_t r : way.resources) {
    clocks_[base + r] = {finish, static_cast<int32_t>(i)};
    busy_[r] += plan_->lane_shares[lane] * us;
  }
  out_->start_us[i] = ready.at;
  out_->finish_us[i] = finish;
  out_->makespan_us = std::max(out_->makespan_us, finish);
  if (waited_) out_->waited_for[i] = StepId(ready.step);
}

bool Evaluator::Impl::transfer_step(size_t i) {
  const Step& step = plan_->steps[i];
  if (!step.segment.valid() || step.segment.index() >= plan_->segments.size())
    return fail(i, "there is no such segment");
  if (!step.tensor.valid() || step.tensor.index() >= num_tensors_) return fail(i, "there is no such tensor");
  if (!step.to.valid() || step.to.index() >= num_devices_) return fail(i, "there is no such device");
  const Brief segment = briefs_[step.segment.index()];
  const auto lane = size_t{segment.lane};
  Made& m = made(lane, step.tensor.index());
  if (m.step < 0 || m.segment != step.segment.value) {
    return fail(
        i, "'" + name_of(i) + "' has not made tensor '" + problem_.graph->tensor(step.tensor).name + "' yet");
  }
  if (step.from != segment.device) return fail(i, "it does not start at its producer's device");
  const Way& cluster_way = map_.way(step.from, step.to);
  const auto tensor = static_cast<uint32_t>(step.tensor.value);
  if (comes_free(tensor, step.from, step.to))
    return fail(i, "between these devices tensors need no transfer");
  if (find_transfer(m, step.to) >= 0) {
    return fail(i, "tensor '" + problem_.graph->tensor(step.tensor).name + "' goes to this device twice");
  }
  const double made_at = m.finish;
  const Way* way = &cluster_way;
  std::optional<Way> own;
  if (has_given_times_ && step.route != -1) return fail(i, "a transfer with a given time has no route");
  if (step.route != -1 || cluster_way.passage == Passage::kNone) {
    own = way_of(i, cluster_way, cluster_.device_node(step.from), step.from);
    if (!own) return false;
    way = &*own;
  }
  const double us = has_given_times_ ? problem_.given_transfer_us(step.tensor, step.from, step.to)
                                     : way->time_us(flat_.bytes(tensor));
  occupy(i, lane, *way, us, {made_at, m.step});
  next_transfer_[i] = m.transfers;
  m.transfers = static_cast<int32_t>(i);
  return true;
}

bool Evaluator::Impl::load_step(size_t i) {
  const Step& step = plan_->steps[i];
  if (!cold_) return fail(i, "loads belong to the cold-latency objective only");
  if (!step.segment.valid() || step.segment.index() >= plan_->segments.size())
    return fail(i, "there is no such segment");
  const Brief segment = briefs_[step.segment.index()];
  if (step.to != segment.device) return fail(i, "a load goes to its segment's device");
  if (!needs_load(cluster_, step.to)) return fail(i, "this device lives in host memory and needs no loads");
  if (segment.host_access) return fail(i, "'" + name_of(i) + "' reads its parameters from host memory");
  const auto pool = static_cast<size_t>(cluster_.memory_pool(step.to));
  int64_t bytes = 0;
  for (const OpId op : ops_of(segment)) {
    for (const uint32_t p : flat_.params(op.index())) {
      int32_t& by = param_load_[pool * problem_.graph->num_params() + p];
      if (by != kAbsent) continue;
      by = static_cast<int32_t>(i);
      bytes = plus_bytes(bytes, problem_.graph->params()[p].bytes);
    }
  }
  if (bytes == 0) return fail(i, "every parameter of '" + name_of(i) + "' is there already");
  const auto way =
      way_of(i, map_.load_way(step.to), cluster_.host_node(cluster_.device(step.to).host), DeviceId());
  if (!way) return false;
  const double us = way->time_us(bytes);
  occupy(i, segment.lane, *way, us, {});
  for (const uint32_t r : way->resources) load_busy_[r] += us;
  return true;
}

}  // namespace heddle
