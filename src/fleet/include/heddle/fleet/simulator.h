// A discrete-event simulation of a deployed fleet plan. It has arrivals, a scheduler's decisions, work on virtual
// devices and links, times that differ from the plan's, loss and return of devices, and changes of plan.
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
  kBusyUntil,    // Dispatcher with fill_gaps = false
  kReactive,     // ReactiveScheduler
};
const char* scheduler_name(SchedulerKind kind);  // "reservation", "busy-until", "reactive"
std::optional<SchedulerKind> scheduler_named(std::string_view name);

// How real times differ from the plan's: each time is multiplied by a log-normal factor of mean 1, and with
// probability straggler_share also by straggler_factor.
struct ExecutionNoise {
  double jitter = 0;           // standard deviation of the logarithm, for runs and transfers
  double straggler_share = 0;  // probability
  double straggler_factor = 1;
  bool any() const { return jitter > 0 || (straggler_share > 0 && straggler_factor != 1); }
};

struct DeviceFault {
  TimeNs at = 0;
  uint32_t device_class = 0;
  uint32_t devices = 1;  // whole devices, drawn at random from those that are used and present
  TimeNs back = kNever;  // when they return
};

// At `at` the old plan stops beginning batches. When its batches in flight are done, the new plan takes over
// the waiting requests. Virtual devices with the same role in both plans continue at once; others first load
// for `load`. With `spares_first` the devices that the old plan leaves unused load while it still serves, and
// the change begins `load` later; only roles for which there is no spare device then load after it.
struct PlanMigration {
  const Deployment* to = nullptr;  // has the same models and classes; must outlive the simulation
  TimeNs at = 0, load = 0;
  bool spares_first = false;
};

struct SimulationOptions {
  SchedulerKind scheduler = SchedulerKind::kReservation;
  DispatchOptions dispatch;  // fill_gaps is overwritten according to `scheduler`
  ExecutionNoise noise;
  std::vector<DeviceFault> faults;
  // In order of time; none may begin before the spare devices of the one before it have loaded. One that
  // begins before the one before it has taken over replaces it.
  std::vector<PlanMigration> migrations;
  TimeNs horizon = 0;  // end of the period for device use and `course`; 0: the last arrival
  TimeNs warmup = 0;   // requests that arrive earlier are served, but not counted
  uint64_t seed = 1;
  // Work that overlaps this window is recorded, at most kMostBars pieces.
  TimeNs window_from = 0, window_to = 0;
  bool time_decisions = false;  // fills SimulationResult::decision, which then differs between runs
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
  DurationHistogram latency;          // from arrival to answer, of the answered requests
  DurationHistogram queueing;         // from arrival to dispatch; counted at every dispatch
  std::vector<uint64_t> batch_sizes;  // [size - 1] number of runs with that batch size at the first partition
};

struct ClassUse {
  std::string name;
  int64_t devices = 0;
  double busy_share =
      0;  // share of the class's device time up to the horizon; a virtual device counts as its share
  double uplink_share = 0;  // busy share of the uplinks of the servers in use
};

struct MigrationCourse {
  TimeNs taken_over = kNever;     // kNever: a later migration replaced this one
  std::vector<int64_t> spares{};  // [class] unused devices that loaded from PlanMigration::at on
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
  DurationHistogram decision;           // wall time of all decisions at an arrival: queue, probe, reserve
  SchedulerCounters counters;
  std::vector<RequestCounts> course;  // counts by time of arrival, in kCourseSteps equal parts of the horizon
  std::vector<WorkBar> window;
  TimeNs horizon = 0, end = 0;  // end: time of the last arrival or work
  TimeNs migrated = kNever;     // time at which the last new plan took over
  std::vector<MigrationCourse> migrations;
  uint64_t events = 0;  // number of arrivals, ends of work, wakes and faults
  uint64_t wakes = 0;   // of these the scheduler's wakes
};

// The deployment must pass check_deployment(). Errors: options out of range (noise, classes), arrivals that
// are unsorted or name no model, cancellation. O(events * (log running work + decision)).
Result<SimulationResult> simulate(const Deployment& deployment, std::span<const Arrival> arrivals,
                                  const SimulationOptions& options);

}  // namespace heddle
