// The interface of data-plane schedulers. The caller passes the time and reports requests, ends of work, loss
// and return of devices; the scheduler answers with what to do now. Simulator and server use the same code.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/fleet/data_plane_time.h"
#include "heddle/fleet/deployment.h"

namespace heddle {

using RequestId = uint32_t;  // the caller's
using WorkId = uint32_t;     // number of running work; reused after it is finished or aborted

// Work to begin now: a batch on a virtual device, or its transfer to that device.
struct Work {
  WorkId id = 0;
  bool transfer = false;
  uint32_t pipeline = 0, partition = 0;  // for a transfer: the destination partition
  uint32_t device = 0;                   // the device that runs or receives
  uint32_t source = 0;                   // the sending device; for a run the device itself
  uint32_t batch_size = 0;
  uint32_t first_request = 0;  // one of the batch's requests, which identifies the batch
  TimeNs expected_ns = 0;      // duration by the plan's times
};

struct PendingRequest {
  uint32_t model = 0;
  RequestId request = 0;
  TimeNs deadline = 0;
};

// Scheduler calls append to these lists; the caller empties them.
struct Actions {
  struct Wake {
    uint32_t model;
    TimeNs at;  // time to call wake(); only the last wake of a model counts
  };
  std::vector<Work> start;
  std::vector<WorkId> abort;       // running work whose device or data is lost; its id is free again
  std::vector<RequestId> done;     // answered now, in time or late
  std::vector<RequestId> dropped;  // dropped, as their deadlines cannot be met
  std::vector<RequestId> failed;   // lost with a device
  std::vector<RequestId> begun;    // left the queue for a batch now
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
  uint64_t decisions = 0;  // iterations of Algorithm 1: batches, drops and waits
  uint64_t probes = 0;
  uint64_t batches = 0;
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // `now` must not decrease from call to call. Among the waiting requests of a model, the smallest `priority`
  // is served first, then the earliest deadline.
  virtual void submit(uint32_t model, RequestId request, TimeNs deadline, TimeNs now, Actions& actions,
                      uint16_t priority = 0) = 0;
  virtual void wake(uint32_t model, TimeNs now, Actions& actions) = 0;
  virtual void finished(WorkId work, TimeNs now, Actions& actions) = 0;
  // The work is still running at its expected end, or overdue_extension() after the previous call.
  virtual void overdue(WorkId work, TimeNs now, Actions& actions) = 0;
  virtual void device_lost(uint32_t device, TimeNs now, Actions& actions) = 0;
  virtual void device_back(uint32_t device, TimeNs now, Actions& actions) = 0;
  // The batch of running work is lost, and no device.
  virtual void batch_lost(WorkId work, TimeNs now, Actions& actions) = 0;
  // Returns all requests that have not begun, and begins no more batches; running work continues (the first
  // half of a migration).
  virtual std::vector<PendingRequest> drain() = 0;
  virtual bool idle() const = 0;  // nothing in flight
  virtual const SchedulerCounters& counters() const = 0;
};

}  // namespace heddle
