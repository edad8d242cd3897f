// The optimum of tiny problems by trying everything.
#pragma once

#include <algorithm>
#include <vector>

#include "plan_support.h"

namespace heddle::test {

// The best makespan over all devices, all choices of direct host access and all orders of runs, transfers and
// loads, one segment per op: the optimum of problems without known segments, since uniting ops only delays
// what leaves them. (An order on each resource is a restriction of some list, and starting each step as early
// as its list allows is never worse.)
class BruteForce {
 public:
  explicit BruteForce(const Problem& problem) : p_(problem) {}

  double best() {
    device_.resize(p_.graph->num_ops());
    host_access_.assign(p_.graph->num_ops(), false);
    assign(0);
    return best_;
  }

 private:
  void assign(size_t v) {
    if (v == device_.size()) return search_orders();
    for (size_t d = 0; d < p_.cluster->num_devices(); ++d) {
      if (!(p_.costs->us(OpId(v), DeviceId(d)) < kImpossible)) continue;
      device_[v] = DeviceId(d);
      assign(v + 1);
      if (!(host_access_us(p_, OpId(v), DeviceId(d)) < kImpossible)) continue;
      host_access_[v] = true;
      assign(v + 1);
      host_access_[v] = false;
    }
  }

  // Every step that this assignment may need, in no order; loads are one per op, whoever comes first brings
  // what is new.
  void search_orders() {
    plan_ = {};
    todo_.clear();
    for (size_t v = 0; v < device_.size(); ++v) {
      plan_.segments.push_back({p_.graph->ops()[v].name, {OpId(v)}, device_[v], 0});
      plan_.segments.back().host_access = host_access_[v];
      todo_.push_back({StepKind::kRun, SegmentId(v), TensorId(), device_[v], device_[v], -1});
    }
    for (size_t t = 0; t < p_.graph->num_tensors(); ++t) {
      const Tensor& tensor = p_.graph->tensors()[t];
      if (!tensor.producer.valid()) continue;
      std::vector<DeviceId> to;
      const DeviceId from = device_[tensor.producer.index()];
      for (const OpId reader : tensor.consumers) {
        const DeviceId d = device_[reader.index()];
        if (is_free(p_, from, d) || std::count(to.begin(), to.end(), d)) continue;
        if (p_.cluster->route(from, d) == nullptr) return;
        to.push_back(d);
        todo_.push_back({StepKind::kTransfer, SegmentId(tensor.producer.index()), TensorId(t), from, d, -1});
      }
    }
    if (p_.objective == Objective::kColdLatency && !add_loads()) return;
    used_.assign(todo_.size(), false);
    finish_.clear();
    extend(0);
  }

  bool add_loads() {
    for (size_t v = 0; v < device_.size(); ++v) {
      if (p_.cluster->device(device_[v]).kind == DeviceKind::kCpu || host_access_[v]) continue;
      int64_t bytes = 0;
      for (const ParamId q : p_.graph->ops()[v].params) {
        if (!resident(q, device_[v])) bytes += p_.graph->param(q).bytes;
      }
      if (bytes == 0) continue;
      if (p_.cluster->load_route(device_[v]) == nullptr) return false;
      todo_.push_back({StepKind::kLoad, SegmentId(v), TensorId(), DeviceId(), device_[v], -1});
    }
    return true;
  }

  bool ready(const Step& step) const {
    if (step.kind == StepKind::kLoad) return true;
    const auto done = [&](auto match) {
      for (size_t i = 0; i < todo_.size(); ++i) {
        if (!used_[i] && match(todo_[i])) return false;
      }
      return true;
    };
    if (step.kind == StepKind::kTransfer) {
      return done([&](const Step& s) { return s.kind == StepKind::kRun && s.segment == step.segment; });
    }
    const Op& op = p_.graph->ops()[step.segment.index()];
    return done([&](const Step& s) {
      if (s.kind == StepKind::kLoad) {
        if (s.to != step.to || host_access_[step.segment.index()]) return false;
        const auto& brings = p_.graph->ops()[s.segment.index()].params;
        return s.segment == step.segment || std::any_of(op.params.begin(), op.params.end(), [&](ParamId q) {
                 return std::count(brings.begin(), brings.end(), q) > 0 && !loaded(q, s.to) &&
                        !resident(q, s.to);
               });
      }
      const bool made = std::any_of(op.inputs.begin(), op.inputs.end(), [&](TensorId t) {
        return p_.graph->tensor(t).producer.valid() &&
               p_.graph->tensor(t).producer.index() == s.segment.index();
      });
      if (s.kind == StepKind::kRun) return made;
      return s.to == step.to && std::count(op.inputs.begin(), op.inputs.end(), s.tensor) > 0;
    });
  }

  bool resident(ParamId q, DeviceId to) const { return p_.is_resident(p_.cluster->memory_pool(to), q); }

  bool loaded(ParamId q, DeviceId to) const {
    return std::any_of(plan_.steps.begin(), plan_.steps.end(), [&](const Step& s) {
      if (s.kind != StepKind::kLoad || s.to != to) return false;
      const auto& brings = p_.graph->ops()[s.segment.index()].params;
      return std::count(brings.begin(), brings.end(), q) > 0;
    });
  }

  // A load whose parameters have all come with others is dropped.
  bool brings_nothing(const Step& step) const {
    if (step.kind != StepKind::kLoad) return false;
    const auto& params = p_.graph->ops()[step.segment.index()].params;
    return std::all_of(params.begin(), params.end(), [&](ParamId q) {
      return p_.graph->param(q).bytes == 0 || resident(q, step.to) || loaded(q, step.to);
    });
  }

  void extend(double makespan) {
    if (makespan >= best_) return;
    if (std::all_of(used_.begin(), used_.end(), [](bool u) { return u; })) {
      best_ = makespan;
      return;
    }
    for (size_t i = 0; i < todo_.size(); ++i) {
      if (used_[i] || !ready(todo_[i])) continue;
      used_[i] = true;
      if (brings_nothing(todo_[i])) {
        extend(makespan);
        used_[i] = false;
        continue;
      }
      plan_.steps.push_back(todo_[i]);
      const size_t at = plan_.steps.size() - 1;
      double start = 0;
      for (size_t j = 0; j < at; ++j) {
        if (finish_[j] > start && must_wait(p_, plan_, at, j)) start = finish_[j];
      }
      finish_.push_back(start + naive_duration(p_, plan_, at));
      extend(std::max(makespan, finish_.back()));
      finish_.pop_back();
      plan_.steps.pop_back();
      used_[i] = false;
    }
  }

  const Problem& p_;
  std::vector<DeviceId> device_;
  std::vector<bool> host_access_;
  Plan plan_;
  std::vector<Step> todo_;
  std::vector<bool> used_;
  std::vector<double> finish_;
  double best_ = kImpossible;
};

}  // namespace heddle::test
