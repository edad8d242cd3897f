// A served fleet that changes while it serves: another plan, or other counts of devices. Each change makes a
// plan, drains the running one and cuts over; requests that have not begun move to the new plan.
#pragma once

#include <functional>
#include <memory>

#include "heddle/serve/fleet_server.h"
#include "heddle/serve/http_server.h"
#include "heddle/serve/machine_fleet.h"

namespace heddle {

struct FleetControlOptions {
  LivePlaneOptions plane;
  double clock = 1;                 // see timed_generation()
  WorkerPool* workers = nullptr;    // whose devices are used; outlives the service. Null: timed devices, here
  MachineFleet* machine = nullptr;  // runs models with files; outlives the service. Null: timed devices, here
  double wait_s = 30;               // for workers that have the first plan's devices
  CancelToken cancel;               // ends that waiting
  double replan_s = 2;              // for the plan with the fewest devices that load other weights
};

class FleetControl {
 public:
  // Puts the plan to work in `service`, which must outlive this object. Errors: timed_generation()'s.
  static Result<std::unique_ptr<FleetControl>> create(InferService& service, const Fleet& fleet,
                                                      const FleetPlan& plan,
                                                      const FleetControlOptions& options);
  virtual ~FleetControl() = default;  // waits for a change that is under way

  // GET v2/fleet; POST v2/fleet with a fleet file (JSON), see replace(); POST v2/fleet/plan with a plan file
  // (JSON); POST v2/fleet/counts with
  // {"change": {CLASS: N}}, N devices more or, below 0, fewer; POST v2/fleet/drain with the same, N devices
  // that stay in the fleet and get nothing to do, or, below 0, are used again. False: the path is not one of
  // these, and nothing was answered. Changes are answered once they are done, one after the other: 409 when
  // the fleet cannot do it, and then the old plan goes on.
  virtual bool answer(const HttpHead& head, const HttpBody& body, const HttpReply& reply) = 0;

  // Another description of the fleet: counts, classes, models, times, SLOs or weights. Returns at once;
  // `told` is called once, from another thread, when its plan is at work, or with the reason why the old one
  // goes on. Devices that are drained stay so, by their class's name.
  using Told = std::function<void(const Status&)>;
  virtual void replace(Fleet fleet, Told told) = 0;
};

}  // namespace heddle
