// A discrete-event simulation of a deployed fleet plan: arrivals, a scheduler's decisions, work on virtual
// devices and links, times that differ from the plan's, devices that go and return, and a change of plan in
// the middle.
//
// Each request has exactly one outcome: answered in time, answered late, dropped by the scheduler, or failed
// (lost with a device). After the last arrival the simulation goes on until everything is answered. The
// result depends on the deployment, the arrivals, the options and the seed alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "heddle/fleet/arrivals.h"
#include "heddle/fleet/deployment.h"
#include "heddle/fleet/dispatch.h"
#include "heddle/fleet/scheduler.h"
#include "heddle/fleet/statistics.h"

namespace heddle {

enum class SchedulerKind {
  kReservation,  // Dispatcher
  kBusyUntil,    // Dispatcher without filling gaps
  kReactive,     // ReactiveScheduler
};
const char* scheduler_name(SchedulerKind kind);  // "reservation", "busy-until", "reactive"
std::optional<SchedulerKind> scheduler_named(std::string_view name);

// How real times differ from the plan's. A time is multiplied by a log-normal factor of mean 1, and with some
// probability by the stragglers' factor.
struct ExecutionNoise {
  double jitter = 0;           // standard deviation of the logarithm, for runs and transfers
  double straggler_share = 0;  // probability
  double straggler_factor = 1;
  bool any() const { return jitter > 0 || (straggler_share > 0 && straggler_factor != 1); }
};

struct DeviceFault {
  TimeNs at = 0;
  uint32_t device_class = 0;
  uint32_t devices = 1;  // whole ones, by lot among those that the plan uses and that are there
  TimeNs back = kNever;  // when they return
};

// At `at` no batch of the old plan begins any more; when those in flight are done, the new plan takes over
// the waiting requests. A virtual device that has the same role in both plans goes on at once, others need
// `load`.
struct PlanMigration {
  const Deployment* to = nullptr;  // with the same models and classes; must outlive the simulation
  TimeNs at = 0, load = 0;
};

struct SimulationOptions {
  SchedulerKind scheduler = SchedulerKind::kReservation;
  DispatchOptions dispatch;  // fill_gaps is set by the scheduler's kind
  ExecutionNoise noise;
  std::vector<DeviceFault> faults;
  std::optional<PlanMigration> migration;
  TimeNs horizon = 0;  // for the devices' use and the course; 0: the last arrival
  TimeNs warmup = 0;   // requests that arrive before are served, but not counted
  uint64_t seed = 1;
  // What runs in this window is recorded, at most kMostBars pieces of work.
  TimeNs window_from = 0, window_to = 0;
  bool time_decisions = false;  // fills SimulationResult::decision, which then differs from run to run
  CancelToken cancel;
};

inline constexpr size_t kMostBars = 20000;
inline constexpr size_t kCourseSteps = 60;

struct RequestCounts {
  uint64_t arrivals = 0, in_time = 0, late = 0, dropped = 0, failed = 0;
  double attainment() const {
    return arrivals ? static_cast<double>(in_time) / static_cast<double>(arrivals) : 1;
  }
};

struct ModelStatistics {
  std::string model;
  RequestCounts requests;
  DurationHistogram latency;   // from arrival to answer, of those answered
  DurationHistogram queueing;  // from arrival to the dispatch of the batch, every time it is dispatched
  std::vector<uint64_t> batch_sizes;  // [size - 1] first runs of so large batches
};

struct ClassUse {
  std::string name;
  int64_t devices = 0;
  double busy_share =
      0;  // of all the fleet's devices' time until the horizon; a virtual device counts as its share
  double uplink_share = 0;  // of the time of the servers in use: their uplinks sending
};

struct WorkBar {
  TimeNs start = 0, end = 0;
  uint32_t device = 0, pipeline = 0, partition = 0, batch_size = 0, request = 0;
  bool transfer = false;
};

struct SimulationResult {
  std::vector<ModelStatistics> models;
  std::vector<ClassUse> classes;
  RequestCounts total;
  DurationHistogram latency, queueing;  // of all models
  DurationHistogram transfer;           // from the end of a run to the arrival at the next device
  DurationHistogram decision;           // wall time of each arrival's decisions: queue, probe, reserve
  SchedulerCounters counters;
  std::vector<RequestCounts> course;  // kCourseSteps equal parts of the horizon, by time of arrival
  std::vector<WorkBar> window;
  TimeNs horizon = 0, end = 0;  // of the last arrival or work
  TimeNs migrated = kNever;     // when the new plan took over
  uint64_t events = 0;          // arrivals, ends of work, wakes, faults
};

// The deployment must pass check_deployment(). Errors: options out of range (noise, classes), arrivals that
// are not sorted or have no such model, cancelled. O(events * (log running work + decision)).
Result<SimulationResult> simulate(const Deployment& deployment, std::span<const Arrival> arrivals,
                                  const SimulationOptions& options);

}  // namespace heddle
