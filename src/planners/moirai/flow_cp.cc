// Moirai's model (equations 4 to 8) with optional intervals in place of big constants: an op has one on each
// device (6), a flow one on the egress port of each device that it may leave and one on the ingress port of
// each that it may enter (8). Starts and ends are bounded by the heaviest paths, device by device.
#include "flow_cp.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "flow_timer.h"
#include "heddle/solve/cp.h"

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
        remaining_(least_remaining(w)) {}

  Result<FlowCpResult> run() {
    int64_t most = 0;
    for (const auto& op : w_.ops) most += *std::max_element(op.ticks.begin(), op.ticks.end());
    for (const auto& f : w_.flows) {
      if (!f.precedence) most += *std::max_element(f.ticks.begin(), f.ticks.end());
    }
    if (o_.hint != nullptr) most = std::min(most, o_.hint->makespan);
    if (o_.wanted) most = std::min(most, *o_.wanted - 1);
    FlowCpResult result;
    result.bound = std::max(o_.at_least, least_end());
    if (result.bound > most) return result;
    horizon_ = most;
    makespan_ = model_.add_integer(result.bound, horizon_);
    add_ops();
    add_flows();
    for (size_t i = 0; i < k_; ++i) {
      model_.no_overlap(on_device_[i]);
      model_.no_overlap(egress_[i]);
      model_.no_overlap(ingress_[i]);
    }
    add_memory();
    model_.minimise(makespan_);
    const bool hint_fits = o_.hint != nullptr && o_.hint->makespan <= horizon_;
    if (hint_fits) add_hint();

    SolveOptions solve_options;
    solve_options.deadline = o_.deadline;
    solve_options.seed = o_.seed;
    solve_options.threads = o_.threads;
    solve_options.rel_gap = 0;
    solve_options.abs_gap = 0.5;
    HEDDLE_ASSIGN_OR_RETURN(const auto solution, solve(model_, solve_options));
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
  bool allowed(size_t v, size_t i) const { return heads_[v * k_ + i] < kNever; }
  int64_t least_end() const {
    int64_t most = 0;
    for (size_t v = 0; v < w_.num_ops(); ++v) {
      int64_t least = kNever;
      for (size_t i = 0; i < k_; ++i) {
        if (allowed(v, i)) least = std::min(least, heads_[v * k_ + i] + remaining_[v * k_ + i]);
      }
      most = std::max(most, least);
    }
    return most;
  }

  void add_ops() {
    on_device_.resize(k_);
    egress_.resize(k_);
    ingress_.resize(k_);
    for (size_t v = 0; v < w_.num_ops(); ++v) {
      const auto& ticks = w_.ops[v].ticks;
      start_.push_back(model_.add_integer(0, horizon_));
      end_.push_back(model_.add_integer(0, horizon_));
      std::vector<CpLit> choices;
      for (size_t i = 0; i < k_; ++i) {
        // A device on which the op ends too late, whatever else is decided, is none.
        const bool fits = allowed(v, i) && heads_[v * k_ + i] + remaining_[v * k_ + i] <= horizon_;
        on_.push_back(fits ? model_.add_literal() : !model_.true_literal());
        if (!fits) continue;
        const CpLit here = on_.back();
        choices.push_back(here);
        const CpLit when[] = {here};
        on_device_[i].push_back(model_.interval(start_[v], ticks[i], end_[v], when));
        model_.linear(heads_[v * k_ + i], CpExpr(end_[v]), horizon_, when);
        model_.linear(remaining_[v * k_ + i], CpExpr(makespan_).add(end_[v], -1), horizon_, when);
      }
      model_.exactly_one(choices);
    }
  }
  CpLit on(size_t v, size_t i) const { return on_[v * k_ + i]; }

  void add_flows() {
    flow_start_.resize(w_.num_flows());
    flow_end_.resize(w_.num_flows());
    size_.resize(w_.num_flows());
    for (size_t q = 0; q < w_.num_flows(); ++q) {
      const Flow& f = w_.flows[q];
      if (f.precedence) {
        model_.linear(0, CpExpr(start_[f.to]).add(end_[f.from], -1), horizon_);
        continue;
      }
      flow_start_[q] = model_.add_integer(0, horizon_);
      flow_end_[q] = model_.add_integer(0, horizon_);
      // An interval's size may have one variable only.
      size_[q] = model_.add_integer(0, std::min(horizon_, *std::max_element(f.ticks.begin(), f.ticks.end())));
      model_.linear(0, CpExpr(flow_start_[q]).add(end_[f.from], -1), horizon_);
      model_.linear(0, CpExpr(start_[f.to]).add(flow_end_[q], -1), horizon_);
      model_.linear(0, CpExpr(flow_end_[q]).add(flow_start_[q], -1), horizon_);
      for (uint32_t i = 0; i < k_; ++i) add_ports(q, i);
    }
  }

  // Flow q leaves, or enters, device i.
  void add_ports(size_t q, uint32_t i) {
    const Flow& f = w_.flows[q];
    const CpLit from_here = on(f.from, i), to_here = on(f.to, i);
    const CpLit leaves = model_.add_literal(), enters = model_.add_literal();
    and_of(leaves, from_here, !to_here);
    and_of(enters, to_here, !from_here);
    for (uint32_t j = 0; j < k_; ++j) {
      if (j == i) continue;
      const CpLit when[] = {from_here, on(f.to, j)};
      const int64_t ticks = w_.flow_ticks(q, i, j);
      model_.linear(ticks, CpExpr(flow_end_[q]).add(flow_start_[q], -1), ticks, when);
    }
    const CpLit out[] = {leaves}, in[] = {enters};
    egress_[i].push_back(model_.interval(flow_start_[q], size_[q], flow_end_[q], out));
    ingress_[i].push_back(model_.interval(flow_start_[q], size_[q], flow_end_[q], in));
    ports_.push_back({leaves, enters, static_cast<uint32_t>(q), i});
  }
  void and_of(CpLit both, CpLit a, CpLit b) {
    const CpLit parts[] = {a, b}, when[] = {both};
    model_.all_of(parts, when);
    const CpLit either[] = {both, !a, !b};
    model_.any_of(either);
  }

  // Equation (5), in whole numbers that lose nothing on the safe side.
  void add_memory() {
    for (size_t i = 0; i < k_; ++i) {
      double total = 0;
      for (const auto& op : w_.ops) total += op.memory;
      if (total <= w_.memory[i]) continue;
      const double scale = std::min(1.0, 1e15 / std::max(1.0, total));
      CpExpr used;
      for (size_t v = 0; v < w_.num_ops(); ++v)
        used.add(on(v, i), static_cast<int64_t>(std::ceil(w_.ops[v].memory * scale)));
      model_.linear(0, std::move(used), static_cast<int64_t>(std::floor(w_.memory[i] * scale)));
    }
  }

  void add_hint() {
    const FlowSchedule& s = *o_.hint;
    model_.hint(makespan_, s.makespan);
    for (size_t v = 0; v < w_.num_ops(); ++v) {
      model_.hint(start_[v], s.op_start[v]);
      model_.hint(end_[v], s.op_start[v] + w_.ops[v].ticks[s.device[v]]);
      for (size_t i = 0; i < k_; ++i) hint(on(v, i), s.device[v] == i);
    }
    for (size_t q = 0; q < w_.num_flows(); ++q) {
      const Flow& f = w_.flows[q];
      if (f.precedence) continue;
      const int64_t ticks = w_.flow_ticks(q, s.device[f.from], s.device[f.to]);
      model_.hint(flow_start_[q], s.flow_start[q]);
      model_.hint(flow_end_[q], s.flow_start[q] + ticks);
      model_.hint(size_[q], ticks);
    }
    for (const Port& p : ports_) {
      const uint32_t from = s.device[w_.flows[p.flow].from], to = s.device[w_.flows[p.flow].to];
      hint(p.leaves, from == p.device && to != p.device);
      hint(p.enters, to == p.device && from != p.device);
    }
  }
  void hint(CpLit literal, bool value) {
    if (literal.var() != model_.true_literal().var())
      model_.hint(literal.var(), value != literal.negated() ? 1 : 0);
  }

  FlowSchedule read(const std::vector<double>& values) const {
    const auto at = [&](CpVar v) {
      return static_cast<int64_t>(std::llround(values[static_cast<size_t>(v.index)]));
    };
    FlowSchedule s;
    s.makespan = at(makespan_);
    for (size_t v = 0; v < w_.num_ops(); ++v) {
      s.op_start.push_back(at(start_[v]));
      s.device.push_back(0);
      for (uint32_t i = 0; i < k_; ++i) {
        const CpLit here = on(v, i);
        if ((at(here.var()) != 0) != here.negated()) s.device.back() = i;
      }
    }
    for (size_t q = 0; q < w_.num_flows(); ++q) {
      const Flow& f = w_.flows[q];
      s.flow_start.push_back(f.precedence ? s.op_start[f.from] + w_.ops[f.from].ticks[s.device[f.from]]
                                          : at(flow_start_[q]));
    }
    return time_flows(w_, decisions_of(w_, s));
  }

  struct Port {
    CpLit leaves, enters;
    uint32_t flow, device;
  };
  const FlowWorkload& w_;
  const FlowCpOptions& o_;
  const size_t k_;
  const std::vector<int32_t> device_;
  const std::vector<int64_t> heads_, remaining_;
  CpModel model_;
  int64_t horizon_ = 0;
  CpVar makespan_;
  std::vector<CpVar> start_, end_, flow_start_, flow_end_, size_;
  std::vector<CpLit> on_;
  std::vector<Port> ports_;
  std::vector<std::vector<CpInterval>> on_device_, egress_, ingress_;
};

}  // namespace

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

FlowDecisions decisions_of(const FlowWorkload& w, const FlowSchedule& s) {
  struct Key {
    int64_t start, end;
    uint32_t topological, task;
  };
  std::vector<Key> keys;
  for (uint32_t v = 0; v < w.num_ops(); ++v)
    keys.push_back({s.op_start[v], s.op_start[v] + w.ops[v].ticks[s.device[v]], 2 * v + 1, v});
  for (uint32_t q = 0; q < w.num_flows(); ++q) {
    const Flow& f = w.flows[q];
    // What does not cross goes where its data is, so that idle flows never come after their readers.
    const int64_t ticks = w.flow_ticks(q, s.device[f.from], s.device[f.to]);
    keys.push_back(
        {s.flow_start[q], s.flow_start[q] + ticks, 2 * f.to, static_cast<uint32_t>(w.num_ops()) + q});
  }
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    if (a.start != b.start) return a.start < b.start;
    if (a.end != b.end) return a.end < b.end;
    return a.topological != b.topological ? a.topological < b.topological : a.task < b.task;
  });
  FlowDecisions d{s.device, {}};
  for (const Key& key : keys) d.order.push_back(key.task);
  return d;
}

Result<FlowCpResult> solve_flows(const FlowWorkload& workload, const FlowCpOptions& options) {
  return FlowCp(workload, options).run();
}

}  // namespace heddle
