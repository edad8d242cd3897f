// A data plane in real time, with the schedulers of the simulator. A clock, requests and devices drive them; devices
// are really there, or only take their planned time.
//
// Decisions are made under one lock by whichever thread brings the news (an arrival, the end of a run); a
// thread of its own keeps the time for devices that are not here, for links and for what is overdue. Every
// device that is here has a thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/base/sync.h"
#include "heddle/fleet/deployment.h"
#include "heddle/fleet/outcome.h"
#include "heddle/fleet/simulator.h"
#include "heddle/serve/remote_devices.h"

namespace heddle {

inline TimeNs live_now() { return steady_ns(); }

// A run of a row's batch on a device, or its way to one, of a row that is traced.
struct PlaneStep {
  uint64_t work = 0;  // rows with the same one went together
  bool transfer = false;
  bool lost = false;  // with its device, or it took too long or failed
  uint32_t pipeline = 0, partition = 0, device = 0, source = 0, batch = 0;
  std::string device_class, worker, source_worker;  // workers' names are empty for devices of this process
  TimeNs began = 0, ended = 0, planned_ns = 0;
  TimeNs measured_ns = 0;  // of a run, by the device
};
using PlaneSteps = std::vector<PlaneStep>;

// One row of a request on its way through a plane. The plane owns no requests: they live until settled().
struct LiveRequest {
  virtual ~LiveRequest() = default;
  // Called exactly once, with no lock held, on a thread of the plane or within submit(): must not block.
  virtual void settled() = 0;

  uint32_t model = 0;
  TimeNs deadline = 0;
  uint16_t priority = 0;               // of those that wait for the model the least is served first
  std::vector<RemotePayload> payload;  // what a device in another process is sent, in this order
  std::shared_ptr<PlaneSteps> steps;   // filled by the plane for a row that is traced; null: it is not
  // Filled by the plane.
  TimeNs arrived = 0, begun = 0, finished = 0;
  uint32_t batch = 0;    // rows of its first run
  uint32_t losses = 0;   // how often the device that had it was lost
  uint64_t digest = 0;   // of the payload, by the device in another process that had it last
  RemotePayload result;  // of a model that is computed there: its outputs one after the other
  Outcome outcome = Outcome::kOpen;
  std::string error;   // of kFailed
  bool again = false;  // of kFailed: its device is gone, so another try may succeed
};

// Runs batches of one pool on one virtual device that is here.
class DeviceRunner {
 public:
  virtual ~DeviceRunner() = default;
  // On the device's own thread; reads and writes what the requests refer to.
  virtual Status run(std::span<LiveRequest* const> batch) = 0;
  virtual std::vector<int> cores() const { return {}; }  // that the thread is bound to; empty: any
};

// How long a plane waits for devices in other processes. A run or transfer is given up when it takes longer
// than `factor` times its planned time, and at least `least_ns` longer, not counting the time in which its
// device says that it had no core: its requests run again elsewhere
// where their deadlines allow, and the device gets nothing until it has answered after all (a transfer's
// receiver: for `quarantine_ns`). A request that is open `grace_ns` after its deadline fails.
struct RemotePatience {
  double factor = 3;
  TimeNs least_ns = 250'000'000;
  TimeNs quarantine_ns = 1'000'000'000;
  TimeNs grace_ns = 500'000'000;
};

struct LivePlaneOptions {
  SchedulerKind scheduler = SchedulerKind::kReservation;
  DispatchOptions dispatch;
  // Batches that wait for more requests wait until the last moment at which they are in time. A thread that
  // sleeps until then wakes up too late for it, so it wakes this much earlier.
  TimeNs wake_early_ns = 2'000'000;
  size_t max_queued = 100000;  // requests in the plane; one more is withdrawn at once
  RemotePatience patience;
  bool watch_decisions = false;  // fills LiveCounters::lock_wait
};

struct LivePoolCounters {
  uint64_t runs = 0, rows = 0;
  double busy_s = 0;       // of all its devices together
  double predicted_s = 0;  // by the plan, of the same runs
  uint32_t running = 0;    // devices that are busy now
  uint32_t lost = 0;       // whose process is not there, or that have not answered for too long
  // Their mean over the last seconds: what is older counts less, by e every kUseMemory_s.
  double mean_running = 0;
  TimeNs mean_until = 0;
  // Brings the mean up to `now`; before `running` changes.
  void pass(TimeNs now);
};
inline constexpr double kUseMemory_s = 10;
// Whole devices of a class that the plan uses.
struct LiveClassCounters {
  uint32_t busy = 0;  // now
  uint32_t lost = 0;  // their process is not there
};
struct LiveModelCounters {
  uint64_t outcomes[kOutcomes] = {};  // by Outcome
  uint64_t in_plane = 0, queued = 0;  // now: accepted and not settled; of these, not begun
  DurationHistogram latency, queueing;
  std::vector<uint64_t> batch_sizes;  // [size - 1] first runs
};
struct LiveCounters {
  std::vector<LiveModelCounters> models;
  std::vector<std::vector<LivePoolCounters>> pools;  // [pipeline][partition]
  std::vector<LiveClassCounters> classes;            // [class]
  DurationHistogram decision;                        // of each arrival, by the clock
  DurationHistogram lock_wait;                       // of its thread for the plane before it
  SchedulerCounters scheduler;
  // Of devices in other processes.
  uint64_t late_answers = 0;  // of attempts that had been given up: dropped
  uint64_t given_up = 0;      // runs and transfers that took too long or failed
  uint64_t losses = 0;        // devices that went with their process
  uint64_t rerun = 0;         // rows that were put on another device
  uint64_t overdue = 0;       // requests that failed since none answered by their deadline's grace
};

class LivePlane {
 public:
  // `runners` has one entry for each virtual device of the deployment, which must pass check_deployment();
  // null: it takes its planned time and computes nothing. What a pipeline's runners hand on is theirs to keep
  // in the requests; links take their planned time. Errors: a deployment that does not hold, threads that do
  // not start.
  static Result<std::unique_ptr<LivePlane>> create(Deployment deployment, const LivePlaneOptions& options,
                                                   std::vector<std::shared_ptr<DeviceRunner>> runners);
  // Every device is one of `devices`, which outlives the plane. Errors: also a scheduler that forms batches
  // anew behind a pipeline's first partition (reactive), since feature maps travel by batch.
  static Result<std::unique_ptr<LivePlane>> create_remote(Deployment deployment,
                                                          const LivePlaneOptions& options,
                                                          std::shared_ptr<RemoteDevices> devices);
  virtual ~LivePlane() = default;  // what is still in the plane fails

  virtual const Deployment& deployment() const = 0;
  // The request's model and deadline are set. It may be settled before this returns.
  virtual void submit(LiveRequest& request) = 0;
  // Begins nothing more: requests that have not begun are settled as withdrawn, or returned when `hand_over`
  // (then they are not settled, and are submitted elsewhere). What runs goes on.
  virtual std::vector<LiveRequest*> drain(bool hand_over) = 0;
  virtual bool idle() const = 0;
  virtual LiveCounters counters() const = 0;
};

}  // namespace heddle
