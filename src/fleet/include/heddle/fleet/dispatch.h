// The reservation-based data plane with adaptive batching (PPipe, ATC'25, section 5.4, Algorithms 1 and 2).
//
// Each model has a queue ordered by deadline. A decision takes the first request and probes every pipeline of
// the model at its planned batch. It takes the pipeline with the shortest wait among those that meet the
// deadline. If none does, it goes through the pipelines by wait and takes the largest smaller batch that
// meets the deadline. Without such a batch the request is dropped. If the queue holds too few requests for
// the batch, it waits, but no longer than these requests can wait and still be in time. Then the path is
// reserved and the batch dispatched.
#pragma once

#include <array>
#include <vector>

#include "heddle/fleet/deadline_queue.h"
#include "heddle/fleet/reservation.h"
#include "heddle/fleet/scheduler.h"
#include "heddle/fleet/slots.h"
#include "heddle/fleet/turns.h"

namespace heddle {

struct DispatchOptions {
  bool fill_gaps = true;  // false: "busy until" reservations; only a resource's last booking counts
  // Of the first pool's devices, the one whose server can send soonest; false: the one that can begin soonest.
  bool free_links = true;
  bool look_ahead = true;  // false: a pipeline and a batch are chosen by the wait for the first pool alone
  bool least_wait = true;  // false: the model's pipelines take turns by their rates
  // Measured times correct the reservations (section 5.4), and delays are repaired where possible. Ready work
  // passes late work. A late batch chooses the rest of its path again, or is decided on again if it has not
  // begun. With exact times none of this happens.
  bool feedback = true;
  // If above 0: a run that is overdue by this share of its time is a straggler, with unknown remaining time.
  // Its device is used only if all devices of the pool straggle, until the run ends. A batch that leaves the
  // partition before and is booked for such a device chooses its path again. Among devices that can start a
  // batch at the same time, a batch on its way gets the one that is free first, so that less work waits
  // behind a straggler. Needs `feedback`.
  double avoid_stragglers = 0;
  TimeNs guard_ns = 0;  // kept free before each deadline, for runs longer than planned
  // Drop a request whose first decision finds a wait that leaves time only for a batch with less than this share of
  // the planned batch's requests per time of a device. Such batches would make the requests behind them late. 0:
  // Algorithm 1.
  double least_batch_rate = .95;
  bool retry = false;  // requests lost with a device are queued again instead of failing
};

// A path through a pipeline that probe() found. Step 2k runs partition k; step 2k - 1 brings the batch to it.
struct ProbedPath {
  std::array<uint32_t, kMaxPartitions> device = {};
  std::array<TimeNs, 2 * kMaxPartitions - 1> start = {};
  TimeNs finish = kNever;
  TimeNs wait = kNever;  // finish - now - all steps' durations
  bool found() const { return finish < kNever; }
};

class Dispatcher final : public Scheduler {
 public:
  // The deployment must have passed check_deployment() and outlive the dispatcher.
  Dispatcher(const Deployment& deployment, const DispatchOptions& options);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  void submit(uint32_t model, RequestId request, TimeNs deadline, TimeNs now, Actions& actions,
              uint16_t priority = 0) override;
  void wake(uint32_t model, TimeNs now, Actions& actions) override;
  void finished(WorkId work, TimeNs now, Actions& actions) override;
  void overdue(WorkId work, TimeNs now, Actions& actions) override;
  void device_lost(uint32_t device, TimeNs now, Actions& actions) override;
  void device_back(uint32_t device, TimeNs now, Actions& actions) override;
  void batch_lost(WorkId work, TimeNs now, Actions& actions) override;
  std::vector<PendingRequest> drain() override;
  bool idle() const override { return book_.live() == 0; }
  const SchedulerCounters& counters() const override { return counters_; }

  // Algorithm 2's probe(): for each partition the device that finishes first; ties go to the lowest number.
  // Changes nothing. O(devices of the pipeline's pools).
  ProbedPath probe(uint32_t pipeline, uint32_t batch, TimeNs now) const;
  const ReservationBook& book() const { return book_; }
  size_t queued(uint32_t model) const { return queues_[model].size(); }

 private:
  // The fields that every event of a batch reads come first, in one cache line.
  struct alignas(64) Batch {
    uint32_t pipeline = 0;
    uint32_t size = 0;           // number of `requests`
    uint32_t first_request = 0;  // the first of `requests`
    uint16_t steps_done = 0, last_step = 0;
    std::array<uint32_t, kMaxPartitions> device = {};
    std::array<BookingId, 2 * kMaxPartitions - 1> booking = {};
    bool begun = false;  // its first step has started
    bool live = false;
    TimeNs first_deadline = 0;
    TimeNs dispatched = 0;
    std::vector<DeadlineQueue::Entry> requests;
    std::array<TimeNs, 2 * kMaxPartitions - 1> planned = {};  // start times as reserved
  };

  // A probe's data about a pipeline, its pools and their times, kept close together in memory.
  struct Route {
    uint32_t first_pool = 0, partitions = 0;  // first_pool: index into pools_
    uint32_t model = 0, batch = 0;
    uint32_t first_times = 0;  // index into times_: all partitions for a batch of 1, then of 2, ...
    uint32_t first_sum = 0;    // index into sums_: for a batch of 1, 2, ...
    uint32_t least_batch = 1;  // DispatchOptions::least_batch_rate
  };
  struct Pool {
    uint32_t first_device = 0, end = 0;
    uint32_t group = 0;  // group number in book_
  };
  struct StepTimes {
    TimeNs send = 0, run = 0;  // transfer to the partition (0 at the first one), then the run
  };
  const StepTimes* times_of(const Route& route, uint32_t batch) const {
    return &times_[route.first_times + (batch - 1) * route.partitions];
  }
  uint32_t group_of(const DevicePool& pool);
  bool first_hop(const Pool& pool, TimeNs t, TimeNs run, TimeNs limit, bool avoid, ProbedPath& path) const;
  void prefer_free_link(const Pool& pool, TimeNs t, const StepTimes* times, TimeNs limit,
                        ProbedPath& path) const;
  bool next_hop(uint32_t k, const Pool& pool, TimeNs t, StepTimes times, TimeNs limit, bool avoid,
                ProbedPath& path) const;
  bool probe_from(uint32_t pipeline, uint32_t batch, uint32_t partition, TimeNs t, TimeNs most_wait,
                  ProbedPath& path) const;
  uint32_t least_batch(const DeployedPipeline& pipeline) const;
  void decide(uint32_t model, TimeNs now, Actions& actions);
  bool choose(uint32_t model, TimeNs deadline, TimeNs now, uint32_t& pipeline, uint32_t& size);
  void dispatch(uint32_t model, uint32_t pipeline, uint32_t size, const ProbedPath& path, TimeNs now,
                Actions& actions);
  void reserve(uint32_t batch, uint32_t from_partition, const ProbedPath& path, TimeNs now);
  bool will_be_late(const Batch& batch) const;
  void set_straggling(uint32_t device, bool straggles);
  bool comes_too_late(BookingId id, TimeNs now) const;
  void recall(TimeNs now, Actions& actions);
  bool may_pass(BookingId id, TimeNs now) const {
    if (!options_.feedback || id == kNoId) return false;
    const Booking& b = book_[id];
    return !b.running && b.step != 0 && b.step_before == kNoId && passes_late_ones(b, now);
  }
  bool passes_late_ones(const Booking& b, TimeNs now) const;
  TimeNs planned_start(const Booking& b) const {
    return b.moved ? batches_[b.batch].planned[b.step] : b.start;
  }
  void serve(ResourceId r, TimeNs now, Actions& actions);
  bool start_if_ready(BookingId id, TimeNs now, Actions& actions) {
    return id != kNoId && book_.can_start(id) && start(id, now, actions);
  }
  bool start(BookingId id, TimeNs now, Actions& actions);
  void cancel_from(uint32_t batch, uint32_t step, TimeNs now, Actions& actions);
  void release_from(uint32_t batch, uint32_t step, TimeNs now, Actions& actions);
  void rebind(uint32_t batch, uint32_t partition, TimeNs now, Actions& actions);
  void give_up(uint32_t batch, bool requeue, TimeNs now, Actions& actions);
  void go_on(TimeNs now, Actions& actions);
  void lose_batch(uint32_t batch, uint32_t device, TimeNs now, Actions& actions);
  void start_all_ready(TimeNs now, Actions& actions);

  ResourceId uplink(uint32_t device) const { return uplink_[device]; }
  ResourceId downlink(uint32_t device) const { return downlink_[device]; }

  const Deployment& deployment_;
  DispatchOptions options_;
  ReservationBook book_;  // devices, then uplinks, then downlinks
  std::vector<ResourceId> uplink_, downlink_;
  bool spread_ = false;          // true: avoid_stragglers applies
  std::vector<char> straggles_;  // [device]
  uint32_t straggling_ = 0;      // number of straggling devices
  std::vector<DeadlineQueue> queues_;
  std::vector<TimeNs> wake_at_;
  Slots<Batch> batches_;
  std::vector<Route> routes_;  // [pipeline]
  std::vector<Pool> pools_;
  std::vector<StepTimes> times_;
  std::vector<TimeNs> sums_;                             // sum of all steps of a path, if nothing waits
  ProbedPath paths_[2];                                  // used by choose():
  ProbedPath *path_ = &paths_[0], *spare_ = &paths_[1];  // the path found so far, and the path being tried
  std::vector<std::pair<TimeNs, uint32_t>> others_;      // pipelines by wait, in choose()
  std::vector<uint32_t> recalled_;                       // batches to decide on again
  std::vector<ResourceId> freed_;                        // filled by release_from()
  SchedulerCounters counters_;
  bool draining_ = false;
  Turns turns_;
};

}  // namespace heddle
