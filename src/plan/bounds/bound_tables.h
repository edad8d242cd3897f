// What the bounds read: least times per op and usable device, fastest conceivable ways, parameters. Proofs in
// docs/bounds.md. Private to bounds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/plan/bounds.h"
#include "heddle/plan/flat_graph.h"
#include "heddle/plan/problem.h"

namespace heddle {

// Least latency and most bandwidth of any route, cluster's or plan's own, one by one.
struct FastestWay {
  double latency_us = 0;
  double us_per_byte = 0;
  double us(double bytes) const { return latency_us + bytes * us_per_byte; }
};

struct BoundTables {
  explicit BoundTables(const Problem& problem);

  double t(size_t op, size_t i) const { return time[op * devices.size() + i]; }
  double path_t(size_t op, size_t i) const { return path_time[op * devices.size() + i]; }
  bool has_host_access() const { return !host_time.empty(); }
  const FastestWay& way(size_t from, size_t to) const { return ways[from * devices.size() + to]; }

  const Problem& problem;
  const FlatGraph flat;
  const bool cold;
  std::vector<DeviceId> devices;  // usable; the rest counts in their numbers
  // Op x device, infinite when impossible: what the op adds to the device's work (CostTable::bound_work()),
  // and how long it takes from its start to its end (bound_times()). They differ where stages are allowed.
  // Both count the faster of the usual way and direct host access (section 14).
  std::vector<double> time, path_time;
  // Op x device, where some op has a time with direct host access: that time (infinite: none), and the two
  // tables above without it. Empty otherwise.
  std::vector<double> host_time, loaded_time, loaded_path_time;
  std::vector<FastestWay> ways;   // device x device; infinite latency when there is none
  std::vector<FastestWay> loads;  // cold: from host memory; all zero where none is needed
  // Cold: exclusive resources that every load of a device must hold, numbered by first use.
  std::vector<std::vector<uint32_t>> load_resources;
  // Those among them that every run with direct host access holds, too.
  std::vector<std::vector<uint32_t>> host_resources;
  size_t num_load_resources = 0;
  std::vector<double> param_share;  // per op: each parameter's bytes over the number of ops that read it
  // Op x device, of parameters that are not resident there: the same; those that no other op reads; all; the
  // largest.
  std::vector<double> load_share, own_bytes, all_bytes, largest_param;
};

// Earliest finish of v on device i, and least time from v's start on i to the end: L and R of docs/bounds.md,
// for v's virtual interval of length t(v, i).
struct PathBounds {
  std::vector<double> finish, rest;  // op x device
  std::vector<double> start;         // op x device: earliest start, of the interval in its whole length
  double best = 0;                   // the longest path
};
struct Block;
// Paths may jump over blocks (bound_blocks.h), which must come in topological order of their joins.
PathBounds path_bounds(const BoundTables& tables, std::span<const Block> blocks);

// The best of paths, area and windows on these tables, rounded down; infinite when there is no plan.
Bound bound_of(const BoundTables& tables, std::span<const Block> blocks, const Deadline& deadline);

}  // namespace heddle
