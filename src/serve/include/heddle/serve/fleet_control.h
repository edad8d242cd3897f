// A served fleet that changes while it serves: another plan, or other counts of devices. Each change makes a
// plan, drains the running one and cuts over; requests that have not begun move to the new plan.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "heddle/base/log.h"
#include "heddle/serve/fleet_server.h"
#include "heddle/serve/http_server.h"
#include "heddle/serve/machine_fleet.h"
#include "heddle/serve/succession.h"

namespace heddle {

// When pools take other times than the plan's, the fleet's times are corrected by what was measured, and a
// new plan is made of them.
struct DriftOptions {
  double share = 0;  // a ratio of measured to planned time outside of [1/(1+share), 1+share] is drift; 0: off
  uint64_t window_runs = 50;  // that a ratio is of, at least; fewer are not evaluated
  double hold_s = 5;          // for which it must stay outside
  // What was tried and was no good is not tried again for so long; each time twice as long.
  double back_off_s = 60, most_back_off_s = 3600;
};

// A new plan is held against the one before it: the part of the requests that are in time.
struct TrialOptions {
  double window_s = 10;          // that are compared; 0: every plan is kept
  double margin = .05;           // by which the part may fall
  double growth = .1;            // a fall is not the plan's fault where the rate of requests grew by more
  uint64_t least_requests = 50;  // fewer are not compared
  double longest = 6;            // windows; a trial with too few requests ends then, and the plan stays
};

struct FleetControlOptions {
  LivePlaneOptions plane;
  double clock = 1;               // see timed_generation()
  WorkerPool* workers = nullptr;  // whose devices are used; outlives the service. Null: timed devices, here
  // Runs models with files, here or, where there are `workers`, by these; outlives the service. Null: they
  // are refused.
  MachineFleet* machine = nullptr;
  double wait_s = 30;   // for workers that have the first plan's devices
  CancelToken cancel;   // ends that waiting
  double replan_s = 2;  // for the plan with the fewest devices that load other weights
  DriftOptions drift;
  TrialOptions trial;  // of plans that drift caused,
  bool try_changes =
      false;  // and of those that were asked for, where the old plan could go on in the new fleet
  std::optional<Fleet> device_times;  // which timed devices take, by names; else the served fleet's own
  // Keeps what a successor needs to go on, a JSON text for resume(), for each plan that is put to work; from the
  // control's own thread. Null: nothing is kept.
  std::function<Status(const std::string& state)> save;
  const Succession* succession =
      nullptr;  // for status(): who leads; outlives the service. Null: no other can
  // Gets each change of plan and each decision on drift and trials, from the control's own thread.
  std::function<void(LogLevel, const std::string&)> log;
};

class FleetControl {
 public:
  // Puts the plan to work in `service`, which must outlive this object. Errors: timed_generation()'s.
  static Result<std::unique_ptr<FleetControl>> create(InferService& service, const Fleet& fleet,
                                                      const FleetPlan& plan,
                                                      const FleetControlOptions& options);
  // The same with the fleet, the plan, corrected times, drained devices and changes that another server saved. Workers
  // are waited for without a limit, and not for all devices (WaitFor::kEnough).
  static Result<std::unique_ptr<FleetControl>> resume(InferService& service, const std::string& saved,
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
  // `done` is called once, from another thread, when its plan is in use, or with the reason why the old one
  // goes on. Devices that are drained stay so, by their class's name.
  using OnDone = std::function<void(const Status&)>;
  virtual void replace(Fleet fleet, OnDone done) = 0;

  // Changes that wait, and all that come, fail: the server is stopping. What is under way goes on.
  virtual void stop() = 0;
};

}  // namespace heddle
