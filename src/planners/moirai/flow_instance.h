// A latency problem with given transfer times (Transfers::kGiven) in whole numbers, as the flow search and its
// constraint program need it. A flow is a tensor of the problem.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 4;

struct FlowOp {
  double memory = 0;           // the same on every device, for the whole run
  std::vector<int64_t> ticks;  // per device
};

struct Flow {
  uint32_t from = 0, to = 0;   // ops
  bool precedence = false;     // no data: never a transfer
  std::vector<int64_t> ticks;  // [device of from * devices + device of to]; 0 on the diagonal
};

struct FlowWorkload {
  std::string name;
  double ticks_per_us = 1;     // a power of ten
  std::vector<double> memory;  // per device
  std::vector<FlowOp> ops;     // in a topological order
  std::vector<Flow> flows;

  size_t num_devices() const { return memory.size(); }
  size_t num_ops() const { return ops.size(); }
  size_t num_flows() const { return flows.size(); }
  // Ops and flows in one numbering: op v is task v, flow q is task num_ops() + q.
  size_t num_tasks() const { return ops.size() + flows.size(); }
  int64_t flow_ticks(size_t q, uint32_t from, uint32_t to) const {
    const Flow& f = flows[q];
    return f.precedence || from == to ? 0 : f.ticks[from * memory.size() + to];
  }
  // A flow that crosses devices and so holds two copy engines, be it for no time.
  bool crosses(size_t q, uint32_t from, uint32_t to) const { return !flows[q].precedence && from != to; }
  double in_us(int64_t ticks) const { return static_cast<double>(ticks) / ticks_per_us; }
};

// Flows in and out of each op.
struct FlowAdjacency {
  explicit FlowAdjacency(const FlowWorkload& workload);
  std::span<const uint32_t> in(size_t op) const { return slice(in_, in_begin_, op); }
  std::span<const uint32_t> out(size_t op) const { return slice(out_, out_begin_, op); }

 private:
  static std::span<const uint32_t> slice(const std::vector<uint32_t>& v, const std::vector<uint32_t>& begin,
                                         size_t i) {
    return std::span<const uint32_t>(v).subspan(begin[i], begin[i + 1] - begin[i]);
  }
  std::vector<uint32_t> in_, in_begin_, out_, out_begin_;
};

// What a search decides. The order of tasks is the order on every device and copy engine; it is topological (a
// flow after the op that it leaves, an op after its flows).
struct FlowDecisions {
  std::vector<uint32_t> device;  // per op
  std::vector<uint32_t> order;   // every task once
};

struct FlowSchedule {
  std::vector<uint32_t> device;
  std::vector<int64_t> op_start, flow_start;  // ticks
  int64_t makespan = 0;                       // the last op's end
};

struct FlowInstance {
  FlowWorkload workload;
  std::vector<DeviceId> devices;  // of the problem: the usable ones
  std::vector<OpId> ops;          // of the problem
  std::vector<TensorId> tensors;  // of the problem: one a flow

  // Times become whole ticks of their smallest decimal where they have at most nine and sums stay exact. Else
  // they are rounded down, so that a bound on the instance holds for the problem. Fails where an op cannot run
  // on every usable device.
  static Result<FlowInstance> make(const Problem& problem);
  // The plan whose steps have the order of the decisions.
  Plan plan_of(const Problem& problem, const FlowDecisions& decisions) const;
};

// Of fixed devices: an op may run on any.
inline constexpr int32_t kAnyDevice = -1;

// remaining[op * devices + k]: the least time from the end of op on k to the end of the schedule, over every
// path and every choice of devices along it, ports free. O(flows * devices^2).
std::vector<int64_t> least_remaining(const FlowWorkload& workload);

// heads[op * devices + k]: no schedule with these devices (of each op, or kAnyDevice) has op on k end earlier;
// kNever where it may not be there. O(flows * devices^2).
std::vector<int64_t> least_heads(const FlowWorkload& workload, const std::vector<int32_t>& device);

// The heaviest path through any op with these heads and remaining times.
int64_t heaviest_path(const FlowWorkload& workload, const std::vector<int64_t>& heads,
                      const std::vector<int64_t>& remaining);

// Combinatorial bounds: the heaviest path, device by device, with its transfers; the work shared out over all
// devices (each op's least share). Ticks. O(flows * devices^2).
int64_t flow_bound(const FlowWorkload& workload);

}  // namespace heddle
