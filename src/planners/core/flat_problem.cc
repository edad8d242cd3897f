#include "flat_problem.h"

#include <algorithm>

namespace heddle {

FlatProblem::FlatProblem(const Problem& problem, std::vector<DeviceId> devices)
    : problem_(problem),
      graph_(*problem.graph),
      resources_(*problem.cluster, problem.execution),
      n_(problem.graph->num_ops()),
      devices_(std::move(devices)) {
  std::sort(devices_.begin(), devices_.end());
  local_.assign(problem.cluster->num_devices(), -1);
  for (size_t i = 0; i < devices_.size(); ++i) local_[devices_[i].index()] = static_cast<int32_t>(i);
  copy_graph();
  copy_cluster();
  core_groups_ = core_groups_among(*problem.cluster, devices_);
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

void FlatProblem::copy_cluster() {
  const Cluster& cluster = *problem_.cluster;
  for (const DeviceId from : devices_) {
    for (const DeviceId to : devices_) {
      ways_.push_back(resources_.transfer(from, to));
      has_contention_ = has_contention_ || !ways_.back().resources.empty();
    }
  }
  for (const DeviceId d : devices_) {
    has_contention_ = has_contention_ || (is_cold() && !resources_.load(d).resources.empty());
    needs_load_.push_back(heddle::needs_load(cluster, d) ? 1 : 0);
    overlap_begin_.push_back(static_cast<uint32_t>(overlaps_.size()));
    for (const DeviceId other : cluster.overlaps(d)) {
      if (local(other) >= 0) overlaps_.push_back(static_cast<uint32_t>(local(other)));
    }
    pool_.push_back(static_cast<uint32_t>(cluster.memory_pool(d)));
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
