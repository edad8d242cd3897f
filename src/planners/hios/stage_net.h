// What the bounds on stages look at: the graph with least times, works and transfers, in one direction.
#pragma once

#include <cstdint>
#include <vector>

#include "stage_instance.h"

namespace heddle {

// An edge between two ops as each of them sees it; `edge` is the same number in both directions.
struct StageArc {
  uint32_t op, edge;
  double us;  // least transfer between two different devices; kNoTime: they must share one
};

struct StageNet {
  size_t n = 0, devices = 1, edges = 0;
  std::vector<uint32_t> order;  // topological
  std::vector<std::vector<StageArc>> before, behind;
  std::vector<double> us, work;              // least over the devices; kNoTime until set
  std::vector<std::vector<uint64_t>> above;  // per op, a bit for each op with a path to it; see kMostOps

  static constexpr size_t kMostOps = 2'000;  // larger graphs have no `above`: it grows with the square

  // To be given times, edges, and finish().
  StageNet(size_t ops, size_t devices);
  void add_edge(uint32_t from, uint32_t to, double least_us);
  void finish();  // the edges must form no cycle

  StageNet reversed() const;
  // These ops, numbered as they stand there, and the edges between them.
  StageNet part(const std::vector<uint32_t>& ops) const;
  bool is_above(uint32_t a, uint32_t b) const { return (above[b][a / 64] >> (a % 64)) & 1; }

 private:
  void find_above();
};

// What is known of a schedule of makespan at most T: starts are not before `head`; pairs of ops that share a
// device in every such schedule have one cluster; flags per edge.
struct StageKnowledge {
  std::vector<double> head;  // in the net's direction
  std::vector<uint32_t> cluster;
  std::vector<std::vector<uint32_t>> members;  // per cluster
  std::vector<uint8_t> apart;                  // per edge: its ops never share a device
};

// The earliest time at which one device can be done with these ops, each not before its head: the largest
// r + work of those with a head of at least r. `ops` is put in order of heads.
double one_device_us(const StageNet& net, const std::vector<double>& head, std::vector<uint32_t>& ops);

// Raises heads once, in topological order; true when one rose by more than rounding.
bool raise_heads(const StageNet& net, const StageKnowledge& known, std::vector<double>& head);

// Per op, the earliest start on a device other than the one of `source`, for what lies below it; kNoTime for
// the source, and for ops that cannot leave its device. Ops that are not below it: their head.
std::vector<double> starts_elsewhere(const StageNet& net, const std::vector<double>& head, uint32_t source);

// The op with the most ops below it (the first of those).
uint32_t widest_source(const StageNet& net);

}  // namespace heddle
