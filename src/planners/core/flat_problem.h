// A problem in flat arrays over a chosen set of devices, as the planners' inner loops need it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/plan/builder.h"
#include "heddle/plan/flat_graph.h"
#include "heddle/plan/problem.h"
#include "heddle/plan/resource_map.h"

namespace heddle {

// Devices are numbered 0 .. k-1 in ascending DeviceId; ops, tensors and parameters keep their numbers. The
// problem must outlive this object.
class FlatProblem {
 public:
  FlatProblem(const Problem& problem, std::vector<DeviceId> devices);

  const Problem& problem() const { return problem_; }
  size_t num_ops() const { return n_; }
  size_t num_devices() const { return devices_.size(); }
  size_t num_tensors() const { return graph_.num_tensors(); }
  size_t num_params() const { return param_bytes_.size(); }
  size_t num_pools() const { return pool_limit_.size(); }
  size_t num_resources() const { return resources_.size(); }
  size_t num_reads() const { return num_reads_; }
  DeviceId device(size_t i) const { return devices_[i]; }
  std::span<const DeviceId> devices() const { return devices_; }
  // The number of a device here, or -1.
  int32_t local(DeviceId d) const { return local_[d.index()]; }

  double us(size_t op, size_t i) const { return us_[op * devices_.size() + i]; }
  std::span<const double> row(size_t op) const {
    return {us_.data() + op * devices_.size(), devices_.size()};
  }
  // Distinct tensors read that ops make; tensors made; parameters with bytes; distinct readers of a tensor.
  std::span<const uint32_t> inputs(size_t op) const { return graph_.inputs(op); }
  std::span<const uint32_t> outputs(size_t op) const { return graph_.outputs(op); }
  std::span<const uint32_t> params(size_t op) const { return graph_.params(op); }
  std::span<const uint32_t> readers(size_t tensor) const { return slice(readers_, reader_begin_, tensor); }
  uint32_t producer(size_t tensor) const { return static_cast<uint32_t>(graph_.producer(tensor)); }
  int64_t bytes(size_t tensor) const { return graph_.bytes(tensor); }
  int64_t param_bytes(size_t param) const { return param_bytes_[param]; }
  std::span<const uint32_t> topological() const { return topological_; }
  uint32_t topological_position(size_t op) const { return topological_position_[op]; }

  const RoutedTransfer& way(size_t from, size_t to) const { return ways_[from * devices_.size() + to]; }
  const RoutedTransfer& load_way(size_t to) const { return resources_.load(devices_[to]); }
  // Time from device to device; infinity when there is no way.
  double transfer_us(size_t from, size_t to, int64_t bytes) const {
    const RoutedTransfer& w = way(from, to);
    if (w.passage == Passage::kFree) return 0;
    return w.passage == Passage::kRoute ? w.time_us(bytes) : kImpossible;
  }
  const ResourceMap& resources() const { return resources_; }
  bool needs_load(size_t i) const { return needs_load_[i]; }
  // Devices among these that share cores with it.
  std::span<const uint32_t> overlaps(size_t i) const { return slice(overlaps_, overlap_begin_, i); }
  // Sets of devices that share a core and so share its time.
  const std::vector<std::vector<uint32_t>>& core_groups() const { return core_groups_; }
  uint32_t pool(size_t i) const { return pool_[i]; }
  int64_t pool_limit(size_t pool) const { return pool_limit_[pool]; }  // 0: none
  bool has_limits() const { return has_limits_; }
  // Cold: there from the start.
  bool is_resident(size_t pool, size_t param) const {
    return !resident_.empty() && resident_[pool * num_params() + param] != 0;
  }
  bool is_cold() const { return problem_.objective == Objective::kColdLatency; }
  // True when some transfer or load between these devices can delay another one.
  bool has_contention() const { return has_contention_; }

  // Least time of each op over the devices, and the least time that remains from the start of each op (itself
  // included) when transfers are free.
  std::vector<double> least_us() const;
  std::vector<double> least_remaining_us() const;

 private:
  static std::span<const uint32_t> slice(const std::vector<uint32_t>& v, const std::vector<uint32_t>& begin,
                                         size_t i) {
    return std::span<const uint32_t>(v).subspan(begin[i], begin[i + 1] - begin[i]);
  }
  void copy_graph();
  void copy_cluster();

  const Problem& problem_;
  const FlatGraph graph_;
  const ResourceMap resources_;
  size_t n_, num_reads_ = 0;
  std::vector<DeviceId> devices_;
  std::vector<int32_t> local_;
  std::vector<double> us_;
  std::vector<uint32_t> reader_begin_, readers_, topological_, topological_position_;
  std::vector<int64_t> param_bytes_, pool_limit_;
  std::vector<RoutedTransfer> ways_;
  std::vector<uint8_t> needs_load_, resident_;  // per device; pool x param
  std::vector<uint32_t> overlap_begin_, overlaps_, pool_;
  std::vector<std::vector<uint32_t>> core_groups_;
  bool has_limits_ = false, has_contention_ = false;
};

// One lane's decisions with the planners' device numbers.
struct FlatPlan {
  std::vector<uint32_t> device;  // per op
  std::vector<uint32_t> order;
};
Assignment to_assignment(const FlatProblem& flat, const FlatPlan& plan);
// nullopt when the assignment uses a device that is not among the flat problem's.
std::optional<FlatPlan> to_flat_plan(const FlatProblem& flat, const Assignment& assignment);

}  // namespace heddle
