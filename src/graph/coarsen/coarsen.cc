#include "heddle/graph/coarsen.h"

#include <algorithm>
#include <set>

#include "heddle/base/errors.h"

namespace heddle {
namespace {

constexpr size_t kMostTypes = 4;  // shown in a unit's type

// "Convolution+Add+Relu"; a run of one type is shown once.
std::string joined_types(const Graph& fine, const std::vector<OpId>& ops) {
  std::string text, last;
  size_t shown = 0;
  for (const auto v : ops) {
    const auto& type = fine.op(v).type;
    if (type == last) continue;
    last = type;
    if (++shown > kMostTypes) return text + "+...";
    text += (text.empty() ? "" : "+") + type;
  }
  return text;
}

// One sum per device class that every member has a time for. A member's time for "*" stands in for any class
// that the member does not name itself.
std::vector<GivenTime> summed_times(const Graph& fine, const std::vector<OpId>& ops) {
  std::set<std::string> classes;
  for (const auto v : ops) {
    for (const auto& t : fine.op(v).given_times) classes.insert(t.device_class);
  }
  std::vector<GivenTime> sums;
  for (const auto& name : classes) {
    double sum = 0;
    bool all = true;
    for (const auto v : ops) {
      const GivenTime* exact = nullptr;
      const GivenTime* any = nullptr;
      for (const auto& t : fine.op(v).given_times) {
        if (t.device_class == name) exact = &t;
        if (t.device_class == "*") any = &t;
      }
      const auto* found = exact != nullptr ? exact : any;
      all = all && found != nullptr;
      if (found != nullptr) sum += found->us;
    }
    if (all) sums.push_back({name, sum});
  }
  return sums;
}

double mean_utilization(const Graph& fine, const std::vector<OpId>& ops) {
  double weight = 0, sum = 0;
  for (const auto v : ops) {
    const auto& op = fine.op(v);
    const double w = !op.given_times.empty() ? op.given_times.front().us : op.flops;
    weight += w;
    sum += w * op.utilization;
  }
  if (weight > 0) return std::clamp(sum / weight, 1e-9, 1.0);
  for (const auto v : ops) sum += fine.op(v).utilization;
  return std::clamp(sum / static_cast<double>(ops.size()), 1e-9, 1.0);
}

class Coarsener {
 public:
  Coarsener(const Graph& fine, std::span<const int> group)
      : fine_(fine), group_(group), builder_(fine.name()) {}

  Result<std::shared_ptr<const Graph>> run() {
    HEDDLE_RETURN_IF_ERROR(collect());
    for (const auto& p : fine_.params()) builder_.add_param(p);
    map_.assign(fine_.num_tensors(), TensorId());
    for (const auto t : fine_.inputs()) {
      const auto& tensor = fine_.tensor(t);
      map_[t.index()] = builder_.add_input(tensor);
    }
    is_output_.assign(fine_.num_tensors(), false);
    for (const auto t : fine_.outputs()) is_output_[t.index()] = true;
    for (size_t k = 0; k < groups_.size(); ++k) add_unit(k);
    // Inputs are set last because a unit may read a tensor of a unit that is added later.
    for (size_t k = 0; k < groups_.size(); ++k) builder_.set_inputs(OpId(k), mapped(inputs_[k]));
    for (const auto t : fine_.outputs()) builder_.add_output(map_[t.index()]);
    return with_context(builder_.build(), "coarsening '" + fine_.name() + "': the groups feed each other");
  }

 private:
  Status collect() {
    for (size_t v = 0; v < group_.size(); ++v) {
      const int g = group_[v];
      if (g < 0 || static_cast<size_t>(g) >= group_.size()) {
        return invalid_input("coarsening '" + fine_.name() + "': group " + std::to_string(g) +
                             " is out of range");
      }
      if (static_cast<size_t>(g) >= groups_.size()) groups_.resize(static_cast<size_t>(g) + 1);
      groups_[static_cast<size_t>(g)].emplace_back(v);
    }
    for (size_t k = 0; k < groups_.size(); ++k) {
      if (groups_[k].empty())
        return invalid_input("coarsening '" + fine_.name() + "': group " + std::to_string(k) + " is empty");
      std::sort(groups_[k].begin(), groups_[k].end(), [&](OpId a, OpId b) {
        return fine_.topological_position(a) < fine_.topological_position(b);
      });
    }
    inputs_.resize(groups_.size());
    return {};
  }

  bool inside(OpId v, size_t k) const { return v.valid() && group_[v.index()] == static_cast<int>(k); }

  void add_unit(size_t k) {
    const auto& ops = groups_[k];
    Op unit;
    unit.type = joined_types(fine_, ops);
    unit.name = fine_.op(ops.back()).name;
    std::set<TensorId> reads;
    std::set<ParamId> params;
    std::vector<Tensor> outputs;
    std::vector<TensorId> made;
    for (const auto v : ops) {
      const auto& op = fine_.op(v);
      unit.flops += op.flops;
      params.insert(op.params.begin(), op.params.end());
      unit.onnx_names.insert(unit.onnx_names.end(), op.onnx_names.begin(), op.onnx_names.end());
      if (op.members.empty()) {
        unit.members.push_back(v);
      } else {
        unit.members.insert(unit.members.end(), op.members.begin(), op.members.end());
      }
      for (const auto t : op.inputs) {
        if (!inside(fine_.tensor(t).producer, k)) reads.insert(t);
      }
      for (const auto t : op.outputs) {
        if (leaves(t, k)) {
          outputs.push_back(fine_.tensor(t));
          made.push_back(t);
        }
      }
    }
    std::sort(unit.members.begin(), unit.members.end());
    unit.params.assign(params.begin(), params.end());
    inputs_[k].assign(reads.begin(), reads.end());
    for (const auto t : reads) unit.bytes_accessed += fine_.tensor(t).bytes;
    for (const auto t : made) unit.bytes_accessed += fine_.tensor(t).bytes;
    for (const auto p : params) unit.bytes_accessed += fine_.param(p).bytes;
    unit.given_times = summed_times(fine_, ops);
    unit.utilization = mean_utilization(fine_, ops);
    const auto id = builder_.add_op(std::move(unit), std::move(outputs));
    const auto ids = builder_.outputs_of(id);
    for (size_t i = 0; i < made.size(); ++i) map_[made[i].index()] = ids[i];
  }

  bool leaves(TensorId t, size_t k) const {
    if (is_output_[t.index()]) return true;
    const auto& consumers = fine_.tensor(t).consumers;
    return std::any_of(consumers.begin(), consumers.end(), [&](OpId c) { return !inside(c, k); });
  }

  std::vector<TensorId> mapped(const std::vector<TensorId>& tensors) const {
    std::vector<TensorId> ids;
    for (const auto t : tensors) ids.push_back(map_[t.index()]);
    return ids;
  }

  const Graph& fine_;
  std::span<const int> group_;
  GraphBuilder builder_;
  std::vector<std::vector<OpId>> groups_;
  std::vector<std::vector<TensorId>> inputs_;  // per group, tensors of the fine graph
  std::vector<TensorId> map_;
  std::vector<bool> is_output_;
};

}  // namespace

Result<std::shared_ptr<const Graph>> coarsen(const Graph& fine, std::span<const int> group) {
  if (group.size() != fine.num_ops()) {
    return invalid_input("coarsening '" + fine.name() + "': " + std::to_string(group.size()) +
                         " group numbers for " + std::to_string(fine.num_ops()) + " ops");
  }
  return Coarsener(fine, group).run();
}

}  // namespace heddle
