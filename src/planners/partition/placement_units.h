// A PlacementGraph contracted to what a max-load planner places: units that share a device, and nets.
//
// A net is a node's output: the units of the node and of its consumers. It costs nothing while all of them
// are on one device; otherwise each accelerator with one of them pays its cost once, be it to send or to
// receive. That is exactly the paper's load (section 3): a connectivity cost of a hypergraph.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "placement_instance.h"

namespace heddle {

// A node, unit or device as an index.
inline size_t at(int32_t v) { return static_cast<size_t>(v); }

struct PlacementUnits {
  struct Net {
    double cost = 0;
    std::vector<int32_t> pins;  // ascending, at least two
  };
  int accelerators = 0, cpus = 0;
  double accelerator_bytes = 0;
  std::vector<std::vector<int32_t>> members;  // nodes of each unit
  std::vector<double> accelerator, cpu, bytes;
  std::vector<bool> on_accelerator;
  std::vector<Net> nets;                      // of positive cost, no two with the same pins
  std::vector<std::vector<int32_t>> nets_of;  // of each unit
  // Contiguous: the order in which devices must stand; acyclic, units are in topological order. Else empty.
  std::vector<std::vector<int32_t>> next, previous;

  // Whether colours on a cycle were joined, which for latency is a restriction.
  bool joined_cycles = false;

  size_t size() const { return members.size(); }
  int devices() const { return accelerators + cpus; }
  bool is_cpu(int32_t device) const { return device >= accelerators; }
  // Sizes are whole bytes, sums of them at most 2^59.
  int64_t memory_limit() const { return static_cast<int64_t>(std::min(accelerator_bytes, 1e18)); }
  bool allowed(int32_t unit, int32_t device) const {
    return is_cpu(device) || on_accelerator[static_cast<size_t>(unit)];
  }
  double time(int32_t unit, int32_t device) const {
    return is_cpu(device) ? cpu[static_cast<size_t>(unit)] : accelerator[static_cast<size_t>(unit)];
  }
};

// Which order of the devices the contraction respects.
enum class PlacementOrder {
  kNone,        // max-load: any assignment
  kContiguous,  // max-load: the forward graph, see PlacementRules::contiguous
  kPieces,      // latency: all edges, so that pieces can run one after the other
};

// Contracts nodes of one colour; with an order also colours on a cycle of it; and a unit that takes no time
// and no memory into a unit that is in all of its nets (with an order: its only neighbour). For max-load no
// optimum is lost. For latency the second is a restriction: colours on a cycle could also run on the CPUs in
// part. O(E log E) for each round of the third.
PlacementUnits make_placement_units(const PlacementGraph& workload, PlacementOrder order);

// Devices of units to devices of nodes.
PlacementSplit split_of_units(const PlacementGraph& workload, const PlacementUnits& units,
                              const std::vector<int32_t>& device_of_unit);
// The reverse; empty when the split puts two nodes of a unit on different devices.
std::vector<int32_t> units_of_split(const PlacementUnits& units, const PlacementSplit& split);

}  // namespace heddle
