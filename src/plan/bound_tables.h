// What the bounds read: least times per op and usable device, fastest conceivable ways, parameters. Proofs in
// docs/bounds.md. Private to bounds.
#pragma once

#include <cstdint>
#include <vector>

#include "flat_graph.h"
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
  const FastestWay& way(size_t from, size_t to) const { return ways[from * devices.size() + to]; }

  const Problem& problem;
  const FlatGraph flat;
  const bool cold;
  std::vector<DeviceId> devices;  // usable; the rest counts in their numbers
  std::vector<double> time;       // op x device: CostTable::bound_times(), infinite when impossible
  std::vector<FastestWay> ways;   // device x device; infinite latency when there is none
  std::vector<FastestWay> loads;  // cold: from host memory; all zero where none is needed
  // Cold: exclusive resources that every load of a device must hold, numbered by first use.
  std::vector<std::vector<uint32_t>> load_resources;
  size_t num_load_resources = 0;
  std::vector<double> param_share;    // per op: each parameter's bytes over the number of ops that read it
  std::vector<double> own_bytes;      // per op: parameters that no other op reads
  std::vector<double> all_bytes;      // per op
  std::vector<double> largest_param;  // per op
};

// Earliest finish of v on device i, and least time from v's start on i to the end: L and R of docs/bounds.md.
struct PathBounds {
  std::vector<double> finish, rest;  // op x device
  double best = 0;                   // max over ops of min over devices of L + R - t
};
PathBounds path_bounds(const BoundTables& tables);

}  // namespace heddle
