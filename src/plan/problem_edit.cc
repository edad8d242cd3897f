#include "heddle/plan/problem_edit.h"

#include <algorithm>

namespace heddle {
namespace {

class ProblemEditor {
 public:
  ProblemEditor(const Problem& from, const ProblemEdit& edit) : from_(from), edit_(edit), to_(from) {}

  Result<Problem> run() {
    HEDDLE_ASSIGN_OR_RETURN(to_.cluster, edit_cluster(*from_.cluster, edit_.cluster));
    // The order is that of edit_cluster().
    const Cluster& old = *from_.cluster;
    for (size_t d = 0; d < old.num_devices(); ++d) {
      if (!names_hardware_of(old, edit_.cluster.remove, DeviceId(d))) source_.emplace_back(d);
    }
    if (const DeviceId twin = old.find_device(edit_.cluster.add); twin.valid()) {
      for (const DeviceId same : old.variants(twin)) source_.push_back(same);
    }
    to_.costs = costs();
    to_.devices = devices();
    if (!from_.devices.empty() && to_.devices.empty())
      return invalid_input("no device is left of those that the plan may use");
    if (from_.transfers) to_.transfers = transfer_times();
    if (!to_.resident.empty()) carry_residents();
    HEDDLE_RETURN_IF_ERROR(validate(to_));
    return to_;
  }

 private:
  std::shared_ptr<const TransferTimes> transfer_times() const {
    auto times = std::make_shared<TransferTimes>(*from_.transfers);
    if (from_.execution.transfers == Transfers::kGiven) times->us = matrices();
    for (double& us : times->us) us /= edit_.transfers;
    return times;
  }

  double factor(DeviceId from) const {
    return names_hardware_of(*from_.cluster, edit_.cluster.scale, from) ? edit_.cluster.factor : 1;
  }

  std::shared_ptr<const CostTable> costs() const {
    const CostTable& old = *from_.costs;
    auto table = std::make_shared<CostTable>(old.num_ops(), source_.size());
    for (size_t d = 0; d < source_.size(); ++d) {
      const DeviceId to(d), from = source_[d];
      const double faster = factor(from);
      for (size_t v = 0; v < old.num_ops(); ++v) {
        const OpId op(v);
        Cost cost = old.at(op, from);
        cost.us /= faster;
        table->set(op, to, cost);
        if (old.has_utilizations()) table->set_utilization(op, to, old.utilization(op, from));
        if (old.has_host_access()) table->set_host_access(op, to, old.host_access_us(op, from) / faster);
      }
      if (old.has_stage_models()) table->set_stage_model(to, old.stage_model(from));
      if (old.has_core_taken()) table->set_core_taken(to, old.core_taken(from));
      for (SegmentCost segment : old.segments()) {
        if (segment.device != from) continue;
        segment.device = to;
        segment.cost.us /= faster;
        table->set_segment(std::move(segment));
      }
    }
    return table;
  }

  std::vector<DeviceId> devices() const {
    std::vector<DeviceId> usable;
    for (size_t d = 0; d < source_.size(); ++d) {
      if (from_.devices.empty() || from_.may_use(source_[d])) usable.emplace_back(d);
    }
    return from_.devices.empty() ? std::vector<DeviceId>() : usable;
  }

  std::vector<double> matrices() const {
    std::vector<double> us;
    for (size_t t = 0; t < from_.transfers->matrix.size(); ++t) {
      if (from_.is_order_only(TensorId(t))) continue;
      for (size_t a = 0; a < source_.size(); ++a) {
        for (size_t b = 0; b < source_.size(); ++b) us.push_back(a == b ? 0 : between(TensorId(t), a, b));
      }
    }
    return us;
  }

  double between(TensorId tensor, size_t a, size_t b) const {
    if (source_[a] != source_[b]) return from_.given_transfer_us(tensor, source_[a], source_[b]);
    double most = 0;
    for (size_t d = 0; d < from_.cluster->num_devices(); ++d) {
      most = std::max({most, from_.given_transfer_us(tensor, source_[a], DeviceId(d)),
                       from_.given_transfer_us(tensor, DeviceId(d), source_[a])});
    }
    return most;
  }

  // Resident parameters stay in their memory; the memory of an added device is empty.
  void carry_residents() {
    to_.resident.assign(static_cast<size_t>(to_.cluster->num_memory_pools()), {});
    for (size_t d = 0; d < source_.size(); ++d) {
      if (to_.cluster->device(DeviceId(d)).name != from_.cluster->device(source_[d]).name) continue;
      const auto old = static_cast<size_t>(from_.cluster->memory_pool(source_[d]));
      to_.resident[static_cast<size_t>(to_.cluster->memory_pool(DeviceId(d)))] = from_.resident[old];
    }
  }

  const Problem& from_;
  const ProblemEdit& edit_;
  Problem to_;
  std::vector<DeviceId> source_;  // per device: the old one whose times it has
};

}  // namespace

Result<Problem> edit_problem(const Problem& problem, const ProblemEdit& edit) {
  return ProblemEditor(problem, edit).run();
}

}  // namespace heddle
