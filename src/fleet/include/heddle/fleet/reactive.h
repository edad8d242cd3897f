// The reactive, distributed scheduler that serves as PPipe's baseline (ATC'25, section 7.4): every pool
// batches on its own, by its part of the deadline. No component tracks links or later pools.
//
// Requests go to the model's pipelines in turn, in proportion to the planned rates. The first pool has one
// queue. A free device takes the largest batch of the first requests, up to the planned size, that ends early
// enough for the later partitions to run the planned batch without waiting. If the first request would be
// late even alone, it is dropped. A finished batch goes to the device of the next pool with the fewest
// requests on hand; links are first come, first served. That device batches from its own queue by the same
// rule. A pool that models share serves the model whose first request is due first.
#pragma once

#include <span>
#include <vector>

#include "heddle/fleet/deadline_queue.h"
#include "heddle/fleet/reservation.h"
#include "heddle/fleet/scheduler.h"
#include "heddle/fleet/slots.h"
#include "heddle/fleet/turns.h"

namespace heddle {

class ReactiveScheduler final : public Scheduler {
 public:
  // The deployment must have passed check_deployment() and outlive the scheduler. With `retry`, requests lost
  // with a device are queued again instead of failing.
  explicit ReactiveScheduler(const Deployment& deployment, bool retry = false);

  void submit(uint32_t model, RequestId request, TimeNs deadline, TimeNs now, Actions& actions,
              uint16_t priority = 0) override;
  void wake(uint32_t, TimeNs, Actions&) override {}
  void finished(WorkId work, TimeNs now, Actions& actions) override;
  void overdue(WorkId, TimeNs, Actions&) override {}
  void device_lost(uint32_t device, TimeNs now, Actions& actions) override;
  void device_back(uint32_t device, TimeNs now, Actions& actions) override;
  void batch_lost(WorkId work, TimeNs now, Actions& actions) override;
  std::vector<PendingRequest> drain() override;
  bool idle() const override;
  const SchedulerCounters& counters() const override { return counters_; }

 private:
  struct Place {  // position of a virtual device in the deployment
    uint32_t pipeline = 0, partition = 0;
  };
  // A batch that runs or is being transferred.
  struct Batch {
    uint32_t pipeline = 0, partition = 0;  // where it runs, or where it goes
    uint32_t device = kNoId, source = kNoId;
    std::vector<DeadlineQueue::Entry> requests;
    BookingId booking = kNoId;
    bool live = false;
  };
  struct Pipeline {
    DeadlineQueue queue;                // of the first pool
    std::vector<TimeNs> later_ns;       // [partition] time that the later partitions need
    std::vector<uint32_t> next_device;  // [partition] where the search for the least loaded device begins
    uint32_t open_first = 0;            // open devices of the first pool
    std::vector<uint32_t> sharing;      // all pipelines on the first pool; empty: not shared
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
  ReservationBook links_;  // uplinks, then downlinks; first come, first served
  std::vector<Place> place_;
  std::vector<DeadlineQueue> queue_;  // [device], used for devices behind the first pools
  std::vector<uint32_t> on_hand_;     // [device] requests queued at it, running on it or on the way to it
  std::vector<uint32_t> running_;     // [device] batch, or kNoId
  std::vector<char> closed_;
  std::vector<Pipeline> pipelines_;
  Turns turns_;
  Slots<Batch> batches_;
  SchedulerCounters counters_;
};

}  // namespace heddle
