// One submodel's scheduling in SortingHat's terms (ICS'25, section 3.3): the constants of Table 1, with the
// adjustments of section 3.4.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "cold_timer.h"
#include "heddle/graph/submodels.h"

namespace heddle {

// Slots are the paper's subgraph indices: slot 0 holds parameters that stay in host memory, device i (from 0)
// has the slots i q + 1 .. (i + 1) q; in odd ones ops read their parameters in place. Nodes are ops first, in
// topological order, then parameters.
struct SlotProblem {
  size_t k = 0, q = 0, num_ops = 0;
  std::vector<uint32_t> op;                          // per op node, the graph's op
  std::vector<uint32_t> param;                       // per parameter node, the graph's parameter
  std::vector<uint8_t> placeholder;                  // per op node: stands for an op of an earlier submodel
  std::vector<std::pair<uint32_t, uint32_t>> edges;  // E: (node, op node), sorted, distinct
  std::vector<int64_t> bytes;                        // m_v per node
  std::vector<double> gpu_us, host_us;               // P^GPU, P^DHA: op node x device; infinite: not there
  std::vector<double> load_us;                       // m_w T_0,i: parameter x device
  std::vector<int64_t> copy_bytes;                   // per node, of what its readers get
  std::vector<double> copy_latency_us, copy_us_per_byte;  // T_i1,i2: device x device; infinite: no way
  std::vector<int64_t> limit, used;                       // M_i (0: none), PrevM_i
  std::vector<uint32_t> bus;                              // ParentPCIe: per device
  std::vector<double> bus_free, device_free;              // PrevDTFin, PrevSGFin
  std::vector<std::vector<uint32_t>> load_order;     // per bus its slots in the order of copies (ParentDT)
  std::vector<std::pair<uint32_t, uint32_t>> fixed;  // FixedNodes: op node, device

  size_t num_nodes() const { return num_ops + param.size(); }
  size_t num_slots() const { return k * q + 1; }
  size_t device_of(size_t slot) const { return (slot - 1) / q; }
  static bool in_place(size_t slot) { return slot % 2 == 1; }
  double us(size_t op_node, size_t slot) const {
    const size_t at = op_node * k + device_of(slot);
    return in_place(slot) ? host_us[at] : gpu_us[at];
  }
  // m_v T_i1,i2, rounded up to whole ticks where there are any.
  double copy(size_t node, size_t from, size_t to) const {
    const double us = copy_latency_us[from * k + to] +
                      static_cast<double>(copy_bytes[node]) * copy_us_per_byte[from * k + to];
    return copy_tick > 0 && us < kImpossible ? std::ceil(us / copy_tick - 1e-9) * copy_unit : us;
  }
  double copy_tick = 0, copy_unit = 1;
};

// What a submodel leaves to the next ones.
struct SlotState {
  std::vector<double> bus_free, device_free;
  std::vector<int64_t> used;
  std::vector<uint8_t> there;   // pool x parameter: brought before
  std::vector<int32_t> device;  // per op of the graph, -1: not placed yet
};

struct SlotOptions {
  size_t q = 6;
  // EfficientMIP as SortingHat compares with it (section 4.2): submodels know nothing of each other, loads
  // are not part of the program, equal devices, transfers over host memory at twice its speed.
  bool independent = false;
};

// Buses: devices whose loads leave host memory over one link or bus share one. Per device.
std::vector<uint32_t> buses_of(const ColdTables& tables);
SlotState first_state(const ColdTables& tables);
SlotProblem slot_problem(const ColdTables& tables, const Submodels& submodels, int index,
                         const SlotState& state, const SlotOptions& options);

}  // namespace heddle
