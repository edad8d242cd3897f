// Steps that move data (transfers and loads) and the routes that they take.
#include <algorithm>

#include "evaluation.h"

namespace heddle {

std::optional<RoutedTransfer> Evaluator::Impl::route_of(size_t i, const RoutedTransfer& cluster_route,
                                                        DeviceId from) {
  const Step& step = plan_->steps[i];
  if (step.route < 0) {
    if (step.route == -1 && cluster_route.passage == Passage::kRoute) return cluster_route;
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
  const auto own = map_.over(hops, from, step.to, own_resources_.emplace_back());
  if (own.ok()) return *own;
  fail(i, own.error().message());
  return std::nullopt;
}

void Evaluator::Impl::occupy(size_t i, size_t lane, const RoutedTransfer& transfer, double us, Ready ready) {
  const size_t base = lane * map_.size();
  for (const uint32_t r : transfer.resources)
    ready.wait_for(clocks_[base + r].free_at, clocks_[base + r].step);
  const double finish = ready.at + us;
  for (const uint32_t r : transfer.resources) {
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
  const SegmentData segment = segments_[step.segment.index()];
  const auto lane = size_t{segment.lane};
  ProducedTensor& m = produced(lane, step.tensor.index());
  if (m.step < 0 || m.segment != step.segment.value) {
    return fail(
        i, "'" + name_of(i) + "' has not made tensor '" + problem_.graph->tensor(step.tensor).name + "' yet");
  }
  if (step.from != segment.device) return fail(i, "it does not start at its producer's device");
  const RoutedTransfer& cluster_route = map_.transfer(step.from, step.to);
  const auto tensor = static_cast<uint32_t>(step.tensor.value);
  if (comes_free(tensor, step.from, step.to))
    return fail(i, "between these devices tensors need no transfer");
  if (find_transfer(m, step.to) >= 0) {
    return fail(i, "tensor '" + problem_.graph->tensor(step.tensor).name + "' goes to this device twice");
  }
  const RoutedTransfer* transfer = &cluster_route;
  std::optional<RoutedTransfer> own;
  if (has_given_times_ && step.route != -1) return fail(i, "a transfer with a given time has no route");
  if (step.route != -1 || cluster_route.passage == Passage::kNone) {
    own = route_of(i, cluster_route, step.from);
    if (!own) return false;
    transfer = &*own;
  }
  const double us = has_given_times_ ? problem_.given_transfer_us(step.tensor, step.from, step.to)
                                     : transfer->time_us(flat_.bytes(tensor));
  occupy(i, lane, *transfer, us, {m.finish, m.step});
  next_transfer_[i] = m.transfers;
  m.transfers = static_cast<int32_t>(i);
  return true;
}

bool Evaluator::Impl::load_step(size_t i) {
  const Step& step = plan_->steps[i];
  if (!cold_) return fail(i, "loads belong to the cold-latency objective only");
  if (!step.segment.valid() || step.segment.index() >= plan_->segments.size())
    return fail(i, "there is no such segment");
  const SegmentData segment = segments_[step.segment.index()];
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
  const auto load = route_of(i, map_.load(step.to), DeviceId());
  if (!load) return false;
  const double us = load->time_us(bytes);
  occupy(i, segment.lane, *load, us, {});
  for (const uint32_t r : load->resources) load_busy_[r] += us;
  return true;
}

}  // namespace heddle
