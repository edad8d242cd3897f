// A plan: which ops run together where, and every run, transfer and load in one order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/base/ids.h"
#include "heddle/cluster/cluster.h"

namespace heddle {

// Ops that run as one unit on one device. Nothing leaves a segment before all of it is done.
struct Segment {
  std::string name;
  std::vector<OpId> ops;  // ascending, convex
  DeviceId device;
  int lane = 0;
  // Segments with one number >= 0 are a stage: they run at once on their device, start together and end
  // together. Their run steps stand next to each other in the list. -1: it runs alone.
  int32_t stage = -1;
  // Direct host access (cold): its ops read their parameters in place from host memory, in another time; it
  // needs no load, and holds the links and buses of its device's load route while it runs. Not in a stage,
  // and only on devices that need loads.
  bool host_access = false;
  // Its parameters leave the device's memory after the last run there that uses them, as far as every segment
  // there that uses them (without host access) says so. Only where the problem allows it.
  bool drops_params = false;
};

enum class StepKind : uint8_t { kRun, kTransfer, kLoad };

// One task of the timeline.
//   kRun       `segment` runs on its device (from = to = that device).
//   kTransfer  `tensor` goes from the device of its producer's segment to device `to`, once for all readers
//   there;
//              `segment` is the producing segment.
//   kLoad      the parameters of `segment` that are not in its memory pool from the start, nor brought by an
//              earlier load, are copied from host memory to the segment's device (from invalid). A route of
//              its own may lead through another device (parallel transmission).
struct Step {
  StepKind kind = StepKind::kRun;
  SegmentId segment;
  TensorId tensor;
  DeviceId from, to;
  int32_t route = -1;  // index into Plan::routes, or -1: the cluster's own route
};

// The order of `steps` is the order on every exclusive resource: a device, a link's direction, a bus or a
// copy engine serves the steps that need it as they come in this list. The list is topological. Between
// devices of one memory pool a tensor moves by a step too when the cluster has a route between them (its cost
// may be a hand-over latency only); on one device there is no step.
//
// Throughput plans may have several lanes: each lane holds every op once and serves its share of the requests
// (data parallelism). Latency plans have one lane with share 1.
struct Plan {
  std::vector<Segment> segments;
  std::vector<Step> steps;
  std::vector<std::vector<Hop>> routes;     // routes other than the cluster's
  std::vector<double> lane_shares = {1.0};  // positive, sum 1
};

}  // namespace heddle
