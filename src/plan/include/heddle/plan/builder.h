// From a planner's decisions (device and order of each op) to a whole plan with its transfers and loads.
#pragma once

#include <vector>

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

// One lane's decisions.
struct Assignment {
  std::vector<DeviceId> device;  // per op
  std::vector<OpId> order;       // all ops, topological: a device runs its ops in this order
  // Optional: ops with one number form a segment (same device, convex, quotient acyclic); numbers are any
  // ints. A segment takes the place in the order of its last op. Empty: every op is its own segment.
  std::vector<int> segment;
  // Optional: segments (all ops of each) with one number >= 0 form a stage: they run at once on their device
  // (none may need another, not even through others). A stage takes the place in the order of its last op.
  // -1: alone. Empty: no stages.
  std::vector<int> stage;
  // Cold only, optional; the ops of a segment agree. Per op: 1, it reads its parameters in place from host
  // memory (direct host access; no difference on devices that need no loads, nor to what has no parameters);
  // the route of its load, an index into `routes` (from host memory to its device), -1: the cluster's.
  std::vector<uint8_t> host_access;
  std::vector<int32_t> load_route;
  std::vector<std::vector<Hop>> routes;
};

// Times the decisions by events: devices run in the given order, transfers are issued when their tensor is
// ready and each resource serves them first come first served (ties by producer, tensor, destination), loads
// (cold objective) in the order of first use and as early as their bus allows. The steps come out sorted by
// start, so that evaluate() gives the same times. Runs with direct host access wait for their links as
// transfers do. Where the problem allows it, parameters are dropped after their last use. Fails when an op
// has no device, a device cannot run it, there is no route, or the quotient is cyclic. O((V + E) log V).
Result<Plan> build_plan(const Problem& problem, const Assignment& assignment);

struct Lane {
  Assignment assignment;
  double share = 1;
};
// Throughput plans with several lanes.
Result<Plan> build_plan(const Problem& problem, const std::vector<Lane>& lanes);

// The decisions of one lane of a plan, e.g. as a start for local search.
Assignment assignment_of(const Problem& problem, const Plan& plan, int lane = 0);

// Unites ops of one device into segments wherever no op starts later for it in the single-request timeline
// and the quotient stays acyclic: neighbours in the device's order whose union has no reader elsewhere
// waiting in between. Fewer, larger segments run faster on real devices. O((V + E) log V).
std::vector<int> merge_segments(const Problem& problem, const Assignment& assignment);

}  // namespace heddle
