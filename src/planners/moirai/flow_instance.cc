#include "flow_instance.h"

#include <algorithm>
#include <cmath>

#include "core/not_modelled.h"
#include "heddle/base/decimals.h"
#include "heddle/base/spelling.h"

namespace heddle {
namespace {

constexpr double kMostTickSum = 4503599627370496.0;  // 2^52: sums of ticks are exact as doubles

// From microseconds to ticks, one scale for all times.
class Ticks {
 public:
  // `sum` is above every sum that a schedule adds up.
  Ticks(std::span<const double> us, double sum) {
    const auto exact = decimal_scale(us, kMostDecimals);
    if (exact && sum * *exact <= kMostTickSum) {
      per_us_ = *exact;
      return;
    }
    is_exact_ = false;
    while (per_us_ < 1e9 && sum * per_us_ * 10 <= kMostTickSum) per_us_ *= 10;
    while (sum * per_us_ > kMostTickSum) per_us_ /= 10;
  }
  double per_us() const { return per_us_; }
  int64_t of(double us) const {
    const double ticks = us * per_us_;
    return is_exact_ ? std::llround(ticks) : static_cast<int64_t>(std::floor(ticks));
  }

 private:
  double per_us_ = 1;
  bool is_exact_ = true;
};

constexpr std::string_view kPlanner = "the flow search";

// What the flow search computes with, and would be wrong about otherwise.
Status check_model(const Problem& problem, std::span<const DeviceId> devices) {
  if (!problem.execution.engine_contention) return not_modelled(kPlanner, "transfers that pass each other");
  for (const DeviceId d : devices) {
    const Device& device = problem.cluster->device(d);
    if (device.copy_engines != 2)
      return not_modelled(kPlanner, "device with " +
                                        counted(static_cast<size_t>(device.copy_engines), "copy engine") +
                                        ", such as '" + device.name + "'");
  }
  return check_modelled(problem, devices, kPlanner);
}

}  // namespace

Result<FlowInstance> FlowInstance::make(const Problem& problem) {
  const Graph& graph = *problem.graph;
  FlowInstance instance;
  instance.devices = problem.usable_devices();
  HEDDLE_RETURN_IF_ERROR(check_model(problem, instance.devices));
  const size_t k = instance.devices.size();
  std::vector<double> op_us, flow_us;
  double sum = 0;
  for (const OpId v : graph.topological_order()) {
    instance.ops.push_back(v);
    double most = 0;
    for (const DeviceId d : instance.devices) {
      const OpId ops[] = {v};
      op_us.push_back(problem.costs->segment(ops, d).us);
      most = std::max(most, op_us.back());
    }
    if (!std::isfinite(most))
      return unsupported("op '" + graph.op(v).name +
                         "' cannot run on every device; the flow search needs a time for "
                         "each op on each usable device");
    sum += most;
  }
  for (size_t t = 0; t < graph.num_tensors(); ++t) {
    const TensorId tensor(t);
    if (!graph.tensor(tensor).producer.valid() || graph.tensor(tensor).consumers.empty()) continue;
    instance.tensors.push_back(tensor);
    if (problem.is_order_only(tensor)) continue;
    double most = 0;
    for (const DeviceId from : instance.devices) {
      for (const DeviceId to : instance.devices) {
        flow_us.push_back(problem.given_transfer_us(tensor, from, to));
        most = std::max(most, flow_us.back());
      }
    }
    sum += most;
  }
  std::vector<double> all = op_us;
  all.insert(all.end(), flow_us.begin(), flow_us.end());
  const Ticks ticks(all, sum);
  FlowWorkload& w = instance.workload;
  w.name = graph.name();
  w.ticks_per_us = ticks.per_us();
  for (const DeviceId d : instance.devices) {
    const int64_t limit = problem.cluster->memory_pool_bytes(problem.cluster->memory_pool(d));
    w.memory.push_back(limit > 0 ? static_cast<double>(limit) : std::numeric_limits<double>::infinity());
  }
  std::vector<uint32_t> place(graph.num_ops());
  for (size_t v = 0; v < instance.ops.size(); ++v) {
    place[instance.ops[v].index()] = static_cast<uint32_t>(v);
    FlowOp& op = w.ops.emplace_back();
    for (const ParamId p : graph.op(instance.ops[v]).params)
      op.memory += static_cast<double>(graph.param(p).bytes);
    for (size_t i = 0; i < k; ++i) op.ticks.push_back(ticks.of(op_us[v * k + i]));
  }
  size_t next = 0;
  for (const TensorId tensor : instance.tensors) {
    Flow& flow = w.flows.emplace_back();
    flow.from = place[graph.tensor(tensor).producer.index()];
    flow.to = place[graph.tensor(tensor).consumers.front().index()];
    flow.precedence = problem.is_order_only(tensor);
    for (size_t i = 0; i < k * k && !flow.precedence; ++i) flow.ticks.push_back(ticks.of(flow_us[next++]));
  }
  return instance;
}

Plan FlowInstance::plan_of(const Problem& problem, const FlowDecisions& d) const {
  Plan plan;
  for (size_t v = 0; v < ops.size(); ++v)
    plan.segments.push_back({problem.graph->op(ops[v]).name, {ops[v]}, devices[d.device[v]]});
  for (const uint32_t task : d.order) {
    if (task < ops.size()) {
      const DeviceId at = devices[d.device[task]];
      plan.steps.push_back({StepKind::kRun, SegmentId(size_t{task}), TensorId(), at, at, -1});
      continue;
    }
    const size_t q = task - ops.size();
    const Flow& f = workload.flows[q];
    const uint32_t from = d.device[f.from], to = d.device[f.to];
    if (!workload.crosses(q, from, to)) continue;
    plan.steps.push_back(
        {StepKind::kTransfer, SegmentId(size_t{f.from}), tensors[q], devices[from], devices[to], -1});
  }
  return plan;
}

FlowAdjacency::FlowAdjacency(const FlowWorkload& workload)
    : in_(workload.num_flows()),
      in_begin_(workload.num_ops() + 1, 0),
      out_(workload.num_flows()),
      out_begin_(workload.num_ops() + 1, 0) {
  for (const auto& f : workload.flows) {
    ++in_begin_[f.to + 1];
    ++out_begin_[f.from + 1];
  }
  for (size_t v = 0; v < workload.num_ops(); ++v) {
    in_begin_[v + 1] += in_begin_[v];
    out_begin_[v + 1] += out_begin_[v];
  }
  auto in_at = in_begin_, out_at = out_begin_;
  for (uint32_t q = 0; q < workload.num_flows(); ++q) {
    in_[in_at[workload.flows[q].to]++] = q;
    out_[out_at[workload.flows[q].from]++] = q;
  }
}

std::vector<int64_t> least_remaining(const FlowWorkload& w) {
  const size_t k = w.num_devices();
  const FlowAdjacency around(w);
  std::vector<int64_t> remaining(w.num_ops() * k, 0);
  for (size_t v = w.num_ops(); v-- > 0;) {
    for (const uint32_t q : around.out(v)) {
      const uint32_t reader = w.flows[q].to;
      for (uint32_t i = 0; i < k; ++i) {
        int64_t least = kNever;
        for (uint32_t j = 0; j < k; ++j)
          least = std::min(least, w.flow_ticks(q, i, j) + w.ops[reader].ticks[j] + remaining[reader * k + j]);
        remaining[v * k + i] = std::max(remaining[v * k + i], least);
      }
    }
  }
  return remaining;
}

std::vector<int64_t> least_heads(const FlowWorkload& w, const std::vector<int32_t>& device) {
  const size_t k = w.num_devices();
  const FlowAdjacency around(w);
  std::vector<int64_t> heads(w.num_ops() * k, kNever);
  for (size_t v = 0; v < w.num_ops(); ++v) {
    for (uint32_t i = 0; i < k; ++i) {
      if (device[v] != kAnyDevice && device[v] != static_cast<int32_t>(i)) continue;
      int64_t ready = 0;
      for (const uint32_t q : around.in(v)) {
        const uint32_t source = w.flows[q].from;
        int64_t least = kNever;
        for (uint32_t j = 0; j < k; ++j) {
          if (heads[source * k + j] < kNever)
            least = std::min(least, heads[source * k + j] + w.flow_ticks(q, j, i));
        }
        ready = std::max(ready, least);
      }
      heads[v * k + i] = ready + w.ops[v].ticks[i];
    }
  }
  return heads;
}

int64_t heaviest_path(const FlowWorkload& w, const std::vector<int64_t>& heads,
                      const std::vector<int64_t>& remaining) {
  const size_t k = w.num_devices();
  int64_t heaviest = 0;
  for (size_t v = 0; v < w.num_ops(); ++v) {
    int64_t least = kNever;
    for (size_t i = v * k; i < (v + 1) * k; ++i) {
      if (heads[i] < kNever) least = std::min(least, heads[i] + remaining[i]);
    }
    heaviest = std::max(heaviest, least);
  }
  return heaviest;
}

int64_t flow_bound(const FlowWorkload& w) {
  const auto heads = least_heads(w, std::vector<int32_t>(w.num_ops(), kAnyDevice));
  int64_t work = 0;
  for (const FlowOp& op : w.ops) work += *std::min_element(op.ticks.begin(), op.ticks.end());
  const auto devices = static_cast<int64_t>(w.num_devices());
  return std::max(heaviest_path(w, heads, least_remaining(w)), (work + devices - 1) / devices);
}

}  // namespace heddle
