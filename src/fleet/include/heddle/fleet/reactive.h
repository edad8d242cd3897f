// The reactive, distributed scheduler that PPipe (ATC'25, section 7.4) compares itself with: every pool
// batches on its own, by its part of the deadline, and nobody keeps track of links or of later pools.
//
// A request goes to the model's pipelines in turn, in proportion to their planned rates. The first pool has
// one queue; a device that is free takes the largest batch of the first requests, at most the planned one,
// that ends early enough for the later partitions to do theirs at the planned batch without waiting; a first
// request that is too late even alone is dropped. A finished batch is sent to the device of the next pool
// with the fewest requests on hand, links serve first come first served, and that device batches from its own
// queue by the same rule. A pool that models share begins with the model whose first request is due first.
#pragma once

#include <span>
#include <vector>

#include "heddle/fleet/deadline_queue.h"
#include "heddle/fleet/reservation.h"
#include "heddle/fleet/scheduler.h"
#include "heddle/fleet/slots.h"

namespace heddle {

class ReactiveScheduler final : public Scheduler {
 public:
  // The deployment must have passed check_deployment() and outlive the scheduler. With `retry` the requests
  // that are lost with a device are queued again instead of failing.
  explicit ReactiveScheduler(const Deployment& deployment, bool retry = false);

  void submit(uint32_t model, RequestId request, TimeNs deadline, TimeNs now, Actions& actions,
              uint16_t priority = 0) override;
  void wake(uint32_t, TimeNs, Actions&) override {}
  void finished(WorkId work, TimeNs now, Actions& actions) override;
  void overdue(WorkId, TimeNs, Actions&) override {}
  void device_lost(uint32_t device, TimeNs now, Actions& actions) override;
  void device_back(uint32_t device, TimeNs now, Actions& actions) override;
  std::vector<PendingRequest> drain() override;
  bool idle() const override;
  const SchedulerCounters& counters() const override { return counters_; }

 private:
  struct Place {  // of a virtual device in the deployment
    uint32_t pipeline = 0, partition = 0;
  };
  // A batch in work or on its way.
  struct Batch {
    uint32_t pipeline = 0, partition = 0;  // where it runs, or goes to
    uint32_t device = kNoId, source = kNoId;
    std::vector<DeadlineQueue::Entry> requests;
    BookingId booking = kNoId;
    bool live = false;
  };
  struct Pipeline {
    DeadlineQueue queue;                // of the first pool
    std::vector<TimeNs> later_ns;       // [partition] what the partitions behind it need
    std::vector<uint32_t> next_device;  // [partition] where the search for the least loaded begins
    double credit = 0;                  // of the turns between pipelines
    uint32_t open_first = 0;            // devices of the first pool that are there
    std::vector<uint32_t> sharing;  // pipelines that share the first pool, itself included; none: it alone
  };

  uint32_t new_batch();
  void release(uint32_t batch);
  void serve(uint32_t device, TimeNs now, Actions& actions);
  bool begin_batch(uint32_t device, Place at, TimeNs now, Actions& actions);
  uint32_t most_urgent(const std::vector<uint32_t>& pipelines) const;
  std::span<const uint32_t> pipelines_on(uint32_t device) const;
  void serve_first_pool(uint32_t pipeline, TimeNs now, Actions& actions);
  void send(uint32_t batch, TimeNs now, Actions& actions);
  void start_transfer(BookingId booking, TimeNs now, Actions& actions);
  void end_transfer(uint32_t batch, TimeNs now, Actions& actions);
  void lose_requests(uint32_t pipeline, const std::vector<DeadlineQueue::Entry>& requests, Actions& actions);
  uint32_t choose_pipeline(uint32_t model);

  const Deployment& deployment_;
  bool retry_, draining_ = false;
  ReservationBook links_;  // uplinks, then downlinks, first come first served
  std::vector<Place> place_;
  std::vector<DeadlineQueue> queue_;  // of each device behind a first pool
  std::vector<uint32_t> on_hand_;     // requests queued at, running on or on the way to a device
  std::vector<uint32_t> running_;     // batch, or kNoId
  std::vector<char> closed_;
  std::vector<Pipeline> pipelines_;
  Slots<Batch> batches_;
  SchedulerCounters counters_;
};

}  // namespace heddle
