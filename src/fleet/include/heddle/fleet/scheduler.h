// What a data plane decides, with time passed in: requests come, work begins and ends, devices go and return;
// the scheduler answers with what is to be done now. A simulator and a server drive the same object.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/fleet/data_plane_time.h"
#include "heddle/fleet/deployment.h"

namespace heddle {

using RequestId = uint32_t;  // the caller's
using WorkId = uint32_t;     // of running work; used again once it is finished or aborted

// To begin now: a batch on a virtual device, or its transfer to that device.
struct Work {
  WorkId id = 0;
  bool transfer = false;
  uint32_t pipeline = 0, partition = 0;  // for a transfer the partition that it goes to
  uint32_t device = 0;                   // that runs, or receives
  uint32_t source = 0;                   // that sends; of a run the device itself
  uint32_t batch_size = 0;
  uint32_t first_request = 0;  // one of the batch's, to tell batches apart
  TimeNs expected_ns = 0;      // duration by the plan's times
};

struct PendingRequest {
  uint32_t model = 0;
  RequestId request = 0;
  TimeNs deadline = 0;
};

// Filled by the scheduler's calls, which only append; the caller empties it.
struct Actions {
  struct Wake {
    uint32_t model;
    TimeNs at;  // call wake() then; only the last one of a model counts
  };
  std::vector<Work> start;
  std::vector<WorkId> abort;       // running work whose device or data is lost; its id is free again
  std::vector<RequestId> done;     // answered now, in time or late
  std::vector<RequestId> dropped;  // will not be served: their deadlines cannot be met
  std::vector<RequestId> failed;   // lost with a device
  std::vector<RequestId> begun;    // left the queue now
  std::vector<Wake> wakes;

  void clear() {
    start.clear();
    abort.clear();
    done.clear();
    dropped.clear();
    failed.clear();
    begun.clear();
    wakes.clear();
  }
};

struct SchedulerCounters {
  uint64_t decisions = 0;  // turns of Algorithm 1: batches, drops and waits
  uint64_t probes = 0;
  uint64_t batches = 0;
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Every call's `now` is at least that of the call before.
  // Of what waits for one model the least `priority` is served first, then the earliest deadline.
  virtual void submit(uint32_t model, RequestId request, TimeNs deadline, TimeNs now, Actions& actions,
                      uint16_t priority = 0) = 0;
  virtual void wake(uint32_t model, TimeNs now, Actions& actions) = 0;
  virtual void finished(WorkId work, TimeNs now, Actions& actions) = 0;
  // The work has not finished when it was expected to, or overdue_extension() after the last such call.
  virtual void overdue(WorkId work, TimeNs now, Actions& actions) = 0;
  virtual void device_lost(uint32_t device, TimeNs now, Actions& actions) = 0;
  virtual void device_back(uint32_t device, TimeNs now, Actions& actions) = 0;
  // Hands over what has not begun and begins nothing more: what runs is drained (the first half of a
  // migration).
  virtual std::vector<PendingRequest> drain() = 0;
  virtual bool idle() const = 0;  // nothing in flight
  virtual const SchedulerCounters& counters() const = 0;
};

}  // namespace heddle
