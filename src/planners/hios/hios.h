// HIOS (Kundu and Shu, "HIOS: Hierarchical Inter-Operator Scheduler for Real-Time Inference of DAG-Structured
// Deep Learning Models on Multiple GPUs", IPDPSW 2024): its algorithms on a flat instance, also as starts for
// searches.
//
// The paper has equal devices. On unequal ones an op's weight in path lengths and priorities is its mean time
// over the devices that run it and an edge's its mean transfer between two devices (as in HEFT), while every
// schedule that is tried takes the times of its own devices; that is the paper's algorithm where all are
// equal.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "stage_schedule.h"

namespace heddle {

// Priority indicators p(v) (section IV-A) and the ops by falling p(v): a topological order.
struct HiosPriorities {
  std::vector<double> us;  // mean time of each op
  std::vector<double> indicator;
  std::vector<uint32_t> order;
  double latency_us = 0, us_per_byte = 0;  // mean transfer between two devices
  double transfer_us(double bytes) const { return latency_us + bytes * us_per_byte; }
};
HiosPriorities hios_priorities(const StageInstance& instance);

inline constexpr uint32_t kUnmapped = UINT32_MAX;
// Algorithm 1, lines 10 to 13: the mapped ops in this order, each appended to its device at the earliest
// time. Their latency; kNoTime when one cannot run there or be reached. `finish` is filled for mapped ops.
// O(ops + edges).
double append_in_order(const StageInstance& instance, std::span<const uint32_t> order,
                       const std::vector<uint32_t>& device, std::vector<double>& finish);
// Gives each op without a device the one where it ends first, all ops appended in this (topological) order;
// false when one can run nowhere. O((ops + edges) devices).
bool append_where_first_done(const StageInstance& instance, std::span<const uint32_t> order,
                             std::vector<uint32_t>& device);
// The same decisions of all ops as a schedule of stages with one op each.
StageSchedule stages_in_order(const StageInstance& instance, std::span<const uint32_t> order,
                              const std::vector<uint32_t>& device);

// The longest path of the ops without a device whose intermediate ops (all but first and last) have no edge
// from or to a mapped op (Algorithm 1, line 5), with mean times and transfers, the boundary edges to mapped
// ops at both ends included. Ties: smaller op numbers. O(ops + edges).
std::vector<uint32_t> longest_valid_path(const StageInstance& instance, const HiosPriorities& priorities,
                                         const std::vector<uint32_t>& device);

// Algorithm 1 without line 17: kInfeasible when some op fits nowhere beside what is mapped. After the
// deadline the ops that are left go where they end first; kCancelled when it was cancelled.
// O(paths * devices * (ops + edges)).
Result<StageSchedule> hios_lp_inter(const StageInstance& instance, const Deadline& deadline);
// Algorithm 3 without line 27; the same errors. O(ops^2 * devices + edges * devices^2).
Result<StageSchedule> hios_mr_inter(const StageInstance& instance, const Deadline& deadline);
// HEFT with insertion (Topcuoglu et al., TPDS 2002, section 4.1) on the instance; the same errors.
Result<StageSchedule> heft_inter(const StageInstance& instance, const Deadline& deadline);

// The best of a few list schedules that form stages, each improved by sweeps (stage_list.cc); the same errors.
Result<StageSchedule> construct_stages(const StageInstance& instance, const Deadline& deadline);

// Algorithm 2 with window w = the instance's width: joins each op with the stages that follow it on its
// device where that lowers the latency. Never worse than `schedule`, which must be feasible; stops early at
// the deadline. O(ops * width * (ops + edges)).
StageSchedule hios_parallelize(const StageInstance& instance, StageSchedule schedule,
                               const Deadline& deadline);
// IOS's dynamic program on parts of each device's ops in place of Algorithm 2. `schedule`: stages of one op
// each; kInfeasible when it cannot be timed.
Result<StageSchedule> hios_ios(const StageInstance& instance, StageSchedule schedule,
                               const Deadline& deadline);

}  // namespace heddle
