// Builds a whole plan, with its transfers and loads, from a planner's decisions: device and order of each op.
#pragma once

#include <vector>

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

// One lane's decisions.
struct Assignment {
  std::vector<DeviceId> device;  // per op
  std::vector<OpId> order;       // all ops, topological: a device runs its ops in this order
  // Optional: ops with the same number (any ints) form a segment: same device, convex, quotient acyclic. Its
  // place in the order is that of its last op. Empty: every op is its own segment.
  std::vector<int> segment;
  // Optional: segments (all ops of each) with the same number >= 0 form a stage: they run at once on their
  // device, so none may depend on another, not even indirectly. Its place in the order is that of its last
  // op. -1: alone. Empty: no stages.
  std::vector<int> stage;
  // Optional, cold only; all ops of a segment must agree. host_access, per op: 1 if it reads its parameters
  // in place from host memory (direct host access). It has no effect without parameters or on devices that
  // need no loads. load_route, per op: the route of its load from host memory, as index into `routes`; -1:
  // the cluster's own route.
  std::vector<uint8_t> host_access;
  std::vector<int32_t> load_route;
  std::vector<std::vector<Hop>> routes;
};

// Times the decisions by event simulation. Devices run in the given order. A transfer is issued when its
// tensor is ready; each resource serves requests first come, first served (ties: producer, tensor,
// destination). Loads (cold objective) go in the order of first use, as early as their bus allows. Runs with
// direct host access wait for their links as transfers do. If the problem allows it, parameters are dropped
// after their last use. Steps are sorted by start, so evaluate() gives the same times. Fails when an op has
// no device, its device cannot run it, there is no route, or the quotient is cyclic. O((V + E) log V).
Result<Plan> build_plan(const Problem& problem, const Assignment& assignment);

struct Lane {
  Assignment assignment;
  double share = 1;
};
// Throughput plans with several lanes.
Result<Plan> build_plan(const Problem& problem, const std::vector<Lane>& lanes);

// The decisions of one lane of a plan, for example as a start for local search.
Assignment assignment_of(const Problem& problem, const Plan& plan, int lane = 0);

// Merges ops of one device into segments if no op starts later in the single-request timeline and the
// quotient stays acyclic. Candidates are neighbours in the device's order; no op elsewhere may wait for a
// tensor inside their union. Fewer, larger segments run faster on real devices. O((V + E) log V).
std::vector<int> merge_segments(const Problem& problem, const Assignment& assignment);

}  // namespace heddle
