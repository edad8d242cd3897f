// HIOS-MR: mapping recording. HIOS, section V-B, Algorithm 3; with Algorithm 2 (section IV-B) for "hios-mr",
// without it for "hios-mr-inter".
//
// Minimises the makespan of one request. A table holds for each op v_i (by falling priority indicator) and
// device j the earliest finish t_ij found when v_i runs on j, and the device g_ij of v_(i-1) in that
// schedule; a schedule of v_1..v_(i-1) is read off the table backwards (lines 9 to 12). O(ops^2 * devices +
// edges * devices^2).
//
// Beyond the paper: devices that differ are all tried for the first ops, too (min(M, i) leaves out only
// equal ones), and with several sinks the schedule with the least makespan is kept, which is line 22 where
// the last op is the only sink.
#include <algorithm>

#include "hios.h"
#include "stage_planner.h"

namespace heddle {
namespace {

// Whether all devices are equal: then only as many matter as there are ops.
bool equal_devices(const StageInstance& instance) {
  for (size_t v = 0; v < instance.num_ops(); ++v) {
    for (size_t d = 1; d < instance.num_devices(); ++d) {
      if (instance.us(v, d) != instance.us(v, 0)) return false;
    }
  }
  double latency = -1, per_byte = -1;
  for (size_t a = 0; a < instance.num_devices(); ++a) {
    for (size_t b = 0; b < instance.num_devices(); ++b) {
      if (a == b) continue;
      const double fixed = instance.transfer_us(0, a, b), whole = instance.transfer_us(1, a, b);
      if (latency >= 0 && (fixed != latency || whole != per_byte)) return false;
      latency = fixed;
      per_byte = whole;
    }
  }
  return true;
}

class Table {
 public:
  Table(const StageInstance& instance, std::vector<uint32_t> order)
      : instance_(instance),
        order_(std::move(order)),
        k_(instance.num_devices()),
        equal_(equal_devices(instance)),
        finish_(instance.num_ops() * k_, kNoTime),
        before_(instance.num_ops() * k_, kUnmapped),
        free_(k_),
        at_(instance.num_ops()),
        device_(instance.num_ops()) {}

  // Row i from the rows before it.
  void fill(size_t i) {
    const uint32_t v = order_[i];
    if (i == 0) {
      for (size_t j = 0; j < columns(0); ++j) finish_[j] = instance_.us(v, j);
      return;
    }
    for (uint32_t k = 0; k < columns(i - 1); ++k) {
      if (finish_[(i - 1) * k_ + k] == kNoTime) continue;
      read_back(i - 1, k);
      for (size_t j = 0; j < columns(i); ++j) {
        double ready = free_[j];
        for (const auto& in : instance_.inputs(v))
          ready = std::max(ready, at_[in.op] + instance_.transfer_us(in.bytes, device_[in.op], j));
        const double finish = ready + instance_.us(v, j);
        if (finish < finish_[i * k_ + j]) {
          finish_[i * k_ + j] = finish;
          before_[i * k_ + j] = k;
        }
      }
    }
  }

  // The devices of the schedule whose last op is on j; false when there is none.
  bool devices_from(uint32_t j, std::vector<uint32_t>& device, double& makespan) {
    const size_t last = order_.size() - 1;
    if (finish_[last * k_ + j] == kNoTime) return false;
    read_back(last, j);
    device = device_;
    makespan = *std::max_element(at_.begin(), at_.end());
    return true;
  }

 private:
  size_t columns(size_t i) const { return equal_ ? std::min(k_, i + 1) : k_; }

  // Devices and finishes of the ops up to row i when that is on j, and when each device is free (line 14).
  void read_back(size_t i, uint32_t j) {
    std::fill(free_.begin(), free_.end(), 0);
    for (size_t l = i + 1; l-- > 0;) {
      const uint32_t v = order_[l];
      at_[v] = finish_[l * k_ + j];
      device_[v] = j;
      free_[j] = std::max(free_[j], at_[v]);
      j = before_[l * k_ + j];
    }
  }

  const StageInstance& instance_;
  const std::vector<uint32_t> order_;
  const size_t k_;
  const bool equal_;
  std::vector<double> finish_;    // t_ij
  std::vector<uint32_t> before_;  // g_ij
  std::vector<double> free_, at_;
  std::vector<uint32_t> device_;
};

}  // namespace

Result<StageSchedule> hios_mr_inter(const StageInstance& instance, const Deadline& deadline) {
  const HiosPriorities priorities = hios_priorities(instance);
  const size_t n = instance.num_ops();
  Table table(instance, priorities.order);
  size_t row = 0;
  for (; row < n && !deadline.should_stop(); ++row) table.fill(row);
  if (deadline.cancelled()) return stage_plan_cancelled();
  std::vector<uint32_t> device(n, kUnmapped);
  double least = kNoTime;
  for (uint32_t j = 0; row == n && j < instance.num_devices(); ++j) {
    std::vector<uint32_t> candidate;
    double makespan = 0;
    if (!table.devices_from(j, candidate, makespan) || makespan >= least) continue;
    least = makespan;
    device = std::move(candidate);
  }
  if (!append_where_first_done(instance, priorities.order, device)) return no_stage_plan();
  return stages_in_order(instance, priorities.order, device);
}

PlannerEntry hios_mr_planner() {
  return {{.name = "hios-mr",
           .description = "ops mapped in turn from recorded schedules, then stages by a sliding window",
           .source = "HIOS, section V-B, Algorithms 3 and 2",
           .objectives = {Objective::kLatency},
           .exploits = "stages, transfer times, unequal devices",
           .ignores = "contention, memory limits",
           .settings = {stages_setting()},
           .aliases = {{.name = "hios-mr-inter",
                        .settings = {{"stages", "none"}},
                        .description = "ops mapped in turn from recorded schedules, no stages",
                        .source = "HIOS, section V-B, Algorithm 3",
                        .exploits = "transfer times, unequal devices",
                        .ignores = "stages, contention, memory limits"}}},
          [](const Problem& problem, const PlannerOptions& options) {
            return plan_mapping(problem, options, "hios-mr", hios_mr_inter);
          }};
}

}  // namespace heddle
