// Moirai's model (equations 4 to 8) with optional intervals in place of big constants: an op has one on each
// device (6), a flow one on the egress port of each device that it may leave and one on the ingress port of
// each that it may enter (8). Starts and ends are bounded by the heaviest paths, device by device.

#include <algorithm>
#include <cmath>
#include <tuple>

#include "flow_methods.h"
#include "flow_timer.h"
#include "search/schedule_model.h"

namespace heddle {
namespace {

class FlowCp {
 public:
  FlowCp(const FlowWorkload& w, const FlowCpOptions& options)
      : w_(w),
        o_(options),
        k_(w.num_devices()),
        device_(options.device.empty() ? std::vector<int32_t>(w.num_ops(), kAnyDevice) : options.device),
        heads_(least_heads(w, device_)),
        remaining_(least_remaining(w)),
        horizon_(most()),
        hint_(options.hint != nullptr && options.hint->makespan <= horizon_ ? options.hint : nullptr),
        m_(w.num_ops(), k_, horizon_) {}

  Result<FlowCpResult> run() {
    FlowCpResult result;
    result.bound = std::max(o_.at_least, heaviest_path(w_, heads_, remaining_));
    if (result.bound > horizon_) return result;
    build(result.bound);
    HEDDLE_ASSIGN_OR_RETURN(const auto solution, solve(m_.cp, {.deadline = o_.deadline,
                                                               .work = o_.work,
                                                               .threads = o_.threads,
                                                               .seed = o_.seed,
                                                               .rel_gap = 0,
                                                               .abs_gap = 0.5}));
    if (solution.status == SolveStatus::kInfeasible) {
      result.bound = std::max(result.bound, horizon_ + 1);
      return result;
    }
    if (std::isfinite(solution.bound))
      result.bound = std::max(result.bound, static_cast<int64_t>(std::ceil(solution.bound - 1e-6)));
    if (solution.has_values()) {
      FlowSchedule schedule = read(solution.values);
      result.bound = std::min(result.bound, schedule.makespan);
      if (o_.hint == nullptr || schedule.makespan < o_.hint->makespan) result.schedule = std::move(schedule);
    }
    return result;
  }

 private:
  // Nothing later is looked for.
  int64_t most() const {
    int64_t most = 0;
    for (const auto& op : w_.ops) most += *std::max_element(op.ticks.begin(), op.ticks.end());
    for (const auto& f : w_.flows) {
      if (!f.precedence) most += *std::max_element(f.ticks.begin(), f.ticks.end());
    }
    if (o_.hint != nullptr) most = std::min(most, o_.hint->makespan);
    return o_.wanted ? std::min(most, *o_.wanted - 1) : most;
  }
  void build(int64_t bound) {
    makespan_ = m_.cp.add_integer(bound, horizon_);
    if (hint_ != nullptr) m_.cp.hint(makespan_, hint_->makespan);
    for (size_t v = 0; v < w_.num_ops(); ++v) add_op(v);
    add_flows();
    m_.add_resources();
    add_memory();
    m_.cp.minimise(makespan_);
  }
  bool allowed(size_t v, size_t i) const { return heads_[v * k_ + i] < kNever; }
  // A device's own resources: itself, its egress and its ingress port.
  size_t egress(size_t i) const { return k_ + i; }
  size_t ingress(size_t i) const { return 2 * k_ + i; }

  void add_op(size_t v) {
    start_.push_back(m_.cp.add_integer(0, horizon_));
    end_.push_back(m_.cp.add_integer(0, horizon_));
    if (hint_ != nullptr) {
      m_.cp.hint(start_[v], hint_->op_start[v]);
      m_.cp.hint(end_[v], hint_->op_start[v] + w_.ops[v].ticks[hint_->device[v]]);
    }
    for (size_t i = 0; i < k_; ++i) {
      // A device on which the op ends too late, whatever else is decided, is none.
      if (!allowed(v, i) || heads_[v * k_ + i] + remaining_[v * k_ + i] > horizon_) continue;
      const auto hint = hint_ != nullptr ? std::optional(hint_->device[v] == i) : std::nullopt;
      const CpLit when[] = {m_.may_run(v, i, hint)};
      m_.hold(i, m_.cp.interval(start_[v], w_.ops[v].ticks[i], end_[v], when));
      m_.after(end_[v], CpExpr(0), heads_[v * k_ + i], when);
      m_.after(makespan_, end_[v], remaining_[v * k_ + i], when);
    }
    m_.choose_device(v);
  }

  void add_flows() {
    flow_start_.resize(w_.num_flows());
    flow_end_.resize(w_.num_flows());
    size_.resize(w_.num_flows());
    for (size_t q = 0; q < w_.num_flows(); ++q) {
      const Flow& f = w_.flows[q];
      if (f.precedence) {
        m_.after(start_[f.to], end_[f.from], 0);
        continue;
      }
      flow_start_[q] = m_.cp.add_integer(0, horizon_);
      flow_end_[q] = m_.cp.add_integer(0, horizon_);
      // An interval's size may have one variable only.
      size_[q] = m_.cp.add_integer(0, std::min(horizon_, *std::max_element(f.ticks.begin(), f.ticks.end())));
      m_.after(flow_start_[q], end_[f.from], 0);
      m_.after(start_[f.to], flow_end_[q], 0);
      m_.after(flow_end_[q], flow_start_[q], 0);
      if (hint_ != nullptr) {
        const int64_t ticks = w_.flow_ticks(q, hint_->device[f.from], hint_->device[f.to]);
        m_.cp.hint(flow_start_[q], hint_->flow_start[q]);
        m_.cp.hint(flow_end_[q], hint_->flow_start[q] + ticks);
        m_.cp.hint(size_[q], ticks);
      }
      for (uint32_t i = 0; i < k_; ++i) add_ports(q, i);
    }
  }

  // Flow q leaves, or enters, device i.
  void add_ports(size_t q, uint32_t i) {
    const Flow& f = w_.flows[q];
    const CpLit from_here = m_.on(f.from, i), to_here = m_.on(f.to, i);
    const CpLit leaves = m_.cp.add_literal(), enters = m_.cp.add_literal();
    m_.both(leaves, from_here, !to_here);
    m_.both(enters, to_here, !from_here);
    for (uint32_t j = 0; j < k_; ++j) {
      if (j == i) continue;
      const CpLit when[] = {from_here, m_.on(f.to, j)};
      const int64_t ticks = w_.flow_ticks(q, i, j);
      m_.cp.linear(ticks, CpExpr(flow_end_[q]).add(flow_start_[q], -1), ticks, when);
    }
    const CpLit out[] = {leaves}, in[] = {enters};
    m_.hold(egress(i), m_.cp.interval(flow_start_[q], size_[q], flow_end_[q], out));
    m_.hold(ingress(i), m_.cp.interval(flow_start_[q], size_[q], flow_end_[q], in));
    if (hint_ == nullptr) return;
    const uint32_t from = hint_->device[f.from], to = hint_->device[f.to];
    m_.hint(leaves, from == i && to != i);
    m_.hint(enters, to == i && from != i);
  }
  // Equation (5), in whole numbers that lose nothing on the safe side.
  void add_memory() {
    for (size_t i = 0; i < k_; ++i) {
      double total = 0;
      for (const auto& op : w_.ops) total += op.memory;
      if (total <= w_.memory[i]) continue;
      const double scale = std::min(1.0, 1e15 / std::max(1.0, total));
      const auto bytes = [&](size_t v, size_t device) {
        return device == i ? static_cast<int64_t>(std::ceil(w_.ops[v].memory * scale)) : 0;
      };
      m_.limit_memory(bytes, static_cast<int64_t>(std::floor(w_.memory[i] * scale)));
    }
  }

  FlowSchedule read(const std::vector<double>& values) const {
    const auto at = [&](CpVar v) { return ScheduleModel::value(v, values); };
    FlowSchedule s;
    s.makespan = at(makespan_);
    for (size_t v = 0; v < w_.num_ops(); ++v) {
      s.op_start.push_back(at(start_[v]));
      s.device.push_back(m_.device(v, values));
    }
    for (size_t q = 0; q < w_.num_flows(); ++q) {
      const Flow& f = w_.flows[q];
      s.flow_start.push_back(f.precedence ? s.op_start[f.from] + w_.ops[f.from].ticks[s.device[f.from]]
                                          : at(flow_start_[q]));
    }
    return time_flows(w_, decisions_of(w_, s));
  }

  const FlowWorkload& w_;
  const FlowCpOptions& o_;
  const size_t k_;
  const std::vector<int32_t> device_;
  const std::vector<int64_t> heads_, remaining_;
  const int64_t horizon_;
  const FlowSchedule* hint_;  // where it is short enough
  ScheduleModel m_;
  CpVar makespan_;
  std::vector<CpVar> start_, end_, flow_start_, flow_end_, size_;
};

}  // namespace

FlowDecisions decisions_of(const FlowWorkload& w, const FlowSchedule& s) {
  using Key = std::tuple<int64_t, int64_t, uint32_t, uint32_t>;  // start, end, topological place, task
  std::vector<Key> keys;
  for (uint32_t v = 0; v < w.num_ops(); ++v)
    keys.emplace_back(s.op_start[v], s.op_start[v] + w.ops[v].ticks[s.device[v]], 2 * v + 1, v);
  for (uint32_t q = 0; q < w.num_flows(); ++q) {
    const Flow& f = w.flows[q];
    // What does not cross goes where its data is, so that idle flows never come after their readers.
    const int64_t ticks = w.flow_ticks(q, s.device[f.from], s.device[f.to]);
    keys.emplace_back(s.flow_start[q], s.flow_start[q] + ticks, 2 * f.to, w.num_ops() + q);
  }
  std::sort(keys.begin(), keys.end());
  FlowDecisions d{s.device, {}};
  for (const Key& key : keys) d.order.push_back(std::get<3>(key));
  return d;
}

Result<FlowCpResult> solve_flows(const FlowWorkload& workload, const FlowCpOptions& options) {
  return FlowCp(workload, options).run();
}

}  // namespace heddle
