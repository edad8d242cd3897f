// A plan: which ops run together on which device, and one ordered list of runs, transfers and loads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/base/ids.h"
#include "heddle/cluster/cluster.h"

namespace heddle {

// Ops that run as one unit on one device. No tensor leaves a segment before all of its ops are done.
struct Segment {
  std::string name;
  std::vector<OpId> ops;  // ascending, convex
  DeviceId device;
  int lane = 0;
  // Segments with the same number >= 0 form a stage: they run at once on their device, start together and end
  // together. Their run steps are adjacent in the list. -1: the segment runs alone.
  int32_t stage = -1;
  // Direct host access (cold): the ops read their parameters in place from host memory, which changes their
  // time. The segment needs no load; while it runs it holds the links and buses of its device's load route.
  // Not allowed in a stage, nor on devices that need no loads.
  bool host_access = false;
  // Parameters leave the device's memory after the last run there that uses them, if every segment there that
  // uses them (without host access) sets this flag. Only if the problem allows it.
  bool drops_params = false;
};

enum class StepKind : uint8_t { kRun, kTransfer, kLoad };

constexpr const char* step_kind_name(StepKind kind) {  // "run", "transfer", "load"
  constexpr const char* kNames[] = {"run", "transfer", "load"};
  return kNames[static_cast<size_t>(kind)];
}

// The kinds of steps in the timeline:
//   kRun       `segment` runs on its device (from = to = that device).
//   kTransfer  `tensor` of segment `segment` goes from that segment's device to device `to`, once for
//              all readers there.
//   kLoad      Copies parameters of `segment` from host memory to its device (`from` is invalid): all that
//              are neither resident in that memory pool nor brought by an earlier load. A route of its own
//              may lead through another device (parallel transmission).
struct Step {
  StepKind kind = StepKind::kRun;
  SegmentId segment;
  TensorId tensor;
  DeviceId from, to;
  int32_t route = -1;  // index into Plan::routes; -1: the cluster's own route
};

// The order of `steps` is the order on every exclusive resource: a device, a direction of a link, a bus or a
// copy engine serves its steps in list order. The list is topological. Two devices of one memory pool also
// need a transfer step if the cluster has a route between them (its cost may be only a hand-over latency).
// Within one device there is no step.
//
// Throughput plans may have several lanes. Each lane holds every op once and serves its share of the requests
// (data parallelism). Latency plans have one lane with share 1.
struct Plan {
  std::vector<Segment> segments;
  std::vector<Step> steps;
  std::vector<std::vector<Hop>> routes;     // routes other than the cluster's
  std::vector<double> lane_shares = {1.0};  // positive, sum 1
};

}  // namespace heddle
