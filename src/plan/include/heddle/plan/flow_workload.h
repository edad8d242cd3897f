// Placement problems with a time for every flow and pair of devices, as Moirai's public workloads state them:
// which device runs each op, and when each op and each flow starts.
//
// Problem (problem.h) times a transfer by its bytes and the cluster's route, once for all readers of a
// device. Here every edge is a flow of its own with any time for each ordered pair of devices, and a flow
// holds the egress port of the device that it leaves and the ingress port of the one that it enters (Moirai,
// equations 4 to 8). So these workloads have their own evaluator and checker; all times are whole ticks and
// exact.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/status.h"

namespace heddle {

struct FlowOp {
  std::string name;
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
  std::string time_unit;       // as the file names it
  double ticks_per_unit = 1;   // a power of ten
  std::vector<double> memory;  // per device, in the unit of FlowOp::memory
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
  // A flow that crosses devices and so holds two ports, be it for no time.
  bool crosses(size_t q, uint32_t from, uint32_t to) const { return !flows[q].precedence && from != to; }
  double in_units(int64_t ticks) const { return static_cast<double>(ticks) / ticks_per_unit; }
};

// The JSON form of the public data (docs/flow-workloads.md). Fails, naming file and place, on unknown ids,
// sizes that differ, negative times, a cycle, times with more than nine decimals or above 2^40 ticks.
// O(size).
Result<FlowWorkload> read_flow_workload(const std::string& path);
Result<FlowWorkload> parse_flow_workload(std::string_view json);

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

// What a search decides. The order of tasks is the order on every device and port; it is topological (a flow
// after the op that it leaves, an op after its flows).
struct FlowDecisions {
  std::vector<uint32_t> device;  // per op
  std::vector<uint32_t> order;   // every task once
};

struct FlowSchedule {
  std::vector<uint32_t> device;
  std::vector<int64_t> op_start, flow_start;  // ticks
  int64_t makespan = 0;                       // the last op's end
};

// Starts each task, in the given order, as soon as what it needs is done and its device or ports are free.
// Fails when the decisions are malformed; does not judge memory. O(tasks).
Result<FlowSchedule> evaluate_flows(const FlowWorkload& workload, const FlowDecisions& decisions);

// Recomputes feasibility from the workload alone, exactly: memory, equations (6) to (8), the makespan. An
// empty list: feasible. At most 20 findings. Shares no code with the evaluator. O(tasks log tasks).
std::vector<std::string> check_flows(const FlowWorkload& workload, const FlowSchedule& schedule);

}  // namespace heddle
