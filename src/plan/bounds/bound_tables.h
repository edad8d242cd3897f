// Input of the bounds: least times per op and usable device, fastest possible routes, parameters. Proofs in
// docs/bounds.md. Private to bounds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "heddle/plan/bounds.h"
#include "heddle/plan/flat_graph.h"
#include "heddle/plan/problem.h"
#include "heddle/plan/relaxation.h"
#include "heddle/plan/resource_map.h"

namespace heddle {

struct BoundTables {
  explicit BoundTables(const Problem& problem);

  double t(size_t op, size_t i) const { return time[op * devices.size() + i]; }
  double path_t(size_t op, size_t i) const { return path_time[op * devices.size() + i]; }
  bool has_host_access() const { return !host_time.empty(); }
  const TransferRate& rate(size_t from, size_t to) const { return rates[from * devices.size() + to]; }

  const Problem& problem;
  const FlatGraph flat;
  const std::shared_ptr<const ResourceMap> map;  // shared: tables are copied
  const bool cold;
  std::vector<DeviceId> devices;  // usable devices; `device` below indexes this list
  // Op x device, infinite when impossible. time: work that the op adds to the device
  // (CostTable::bound_work()); path_time: from the op's start to its end (bound_times()). They differ if
  // stages are allowed. Both use the faster of the usual way and direct host access (section 14).
  std::vector<double> time, path_time;
  // Op x device: the time with direct host access (infinite: none), and the two tables above without it.
  // Empty unless some op has a time with direct host access.
  std::vector<double> host_time, loaded_time, loaded_path_time;
  // Least latency and highest bandwidth of any route (the cluster's or a plan's own), each taken by itself:
  // device x device, and from host memory (cold; all zero if no load is needed).
  std::vector<TransferRate> rates, loads;
  // Cold: exclusive resources that every load of a device must hold, numbered by first use.
  std::vector<std::vector<uint32_t>> load_resources;
  // The subset that every run with direct host access holds too.
  std::vector<std::vector<uint32_t>> host_resources;
  size_t num_load_resources = 0;
  std::vector<double> param_share;  // per op: sum over its parameters of bytes / number of readers
  // Op x device, counting only parameters that are not resident there. load_share: like param_share;
  // own_bytes: those that no other op reads; all_bytes: all; largest_param: the largest.
  std::vector<double> load_share, own_bytes, all_bytes, largest_param;
};

// L and R of docs/bounds.md, section 2, for v's virtual interval of length t(v, i): earliest finish of v on
// device i, and least time from v's start on i to the end.
struct PathBounds {
  std::vector<double> finish, rest;  // op x device
  std::vector<double> start;         // op x device: earliest start of the op's full interval (path_time)
  double best = 0;                   // length of the longest path
};
struct Block;
// Paths may jump over blocks (bound_blocks.h), which must be in topological order of their joins.
PathBounds path_bounds(const BoundTables& tables, std::span<const Block> blocks);

// Cold starts: a lower bound on the request's end. The links and buses out of host memory must carry every
// op's parameters, or be held while they are read in place, early enough for the ops that follow. 0 when
// nothing must leave host memory or links are not exclusive. docs/bounds.md, section 15. O(V D + V log V).
double host_gate_us(const BoundTables& tables, const PathBounds& paths);

// The largest of the path, area and window bounds on these tables, rounded down; infinite if no plan exists.
Bound bound_of(const BoundTables& tables, std::span<const Block> blocks, const Deadline& deadline);

}  // namespace heddle
