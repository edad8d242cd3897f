// The data plane behind LivePlane. live_plane.cc has what all devices share, live_plane_remote.cc those in
// other processes.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device_thread.h"
#include "heddle/base/sync.h"
#include "heddle/fleet/event_queue.h"
#include "heddle/serve/live_plane.h"
#include "request_table.h"

namespace heddle {

// A run is late only by more than what measured times scatter by.
inline constexpr TimeNs kLeastTolerance = 500 * kNsPerUs;
inline TimeNs lateness_tolerance(TimeNs expected) { return std::max(kLeastTolerance, expected / 4); }

class Plane final : public LivePlane, public RemoteListener {
 public:
  Plane(Deployment deployment, const LivePlaneOptions& options, bool remote);

  ~Plane() override;
  Status start(std::vector<std::shared_ptr<DeviceRunner>> runners);
  Status start_remote(std::shared_ptr<RemoteDevices> devices);
  const Deployment& deployment() const override { return deployment_; }

  void submit(LiveRequest& request) override;
  std::vector<LiveRequest*> drain(bool hand_over) override;
  bool idle() const override;
  LiveCounters counters() const override;

  void answered(const RemoteAnswer& answer) override;
  void still_running(uint64_t attempt, TimeNs elapsed_ns, TimeNs waited_ns) override;
  void remote_lost(uint32_t device) override { set_there(device, false); }
  void remote_back(uint32_t device) override { set_there(device, true); }

 private:
  enum class EventKind : uint8_t { kEnd, kOverdue, kWake, kAbandon, kReturn, kGiveUp };
  struct Event {
    EventKind kind;
    uint32_t a;       // work, model, device or request
    uint32_t serial;  // of work or request: an event of an earlier use of the number is void
  };

  struct Running {
    Work work;
    TimeNs start = 0;
    uint32_t serial = 0;
    bool live = false;
    uint64_t attempt = 0;                // on a device in another process
    bool due = false, received = false;  // of a transfer there: both its time and its arrival count
    TimeNs patience = 0;                 // after which it is given up, if it has a core all the time
    double waiting = 0;                  // the share of its time without work, as last reported
    TimeNs reported = 0;                 // when that was; 0: never
  };

  // A device in another process: it gets work while it is there and is not behind with what was given up.
  struct RemoteState {
    bool there = false;
    uint64_t behind = 0;   // the attempt that was given up; 0: none
    bool reports = false;  // it has reported on a run before
  };

  // Work for after the lock is released.
  struct Deferred {
    std::vector<std::pair<uint32_t, DeviceTask>> tasks;  // device
    std::vector<RemoteTask> remote;
    std::vector<std::pair<uint64_t, uint32_t>> released;  // feature maps: batch, device
    RequestTable::Settled settled;
    bool earlier = false;  // the clock's thread has to look again
  };

  // The time, once everything that was due before is done as of when it was due: a thread that comes late
  // does not make timed devices slower. Times never go back for the scheduler, whatever order threads come
  // in.
  TimeNs tick(Deferred& deferred);

  // Lets `change` change what the lock guards, at the present time, and then does the rest without the lock.
  template <class Change>
  void update(const Change& change) {
    Deferred deferred;
    {
      const std::lock_guard lock(mutex_);
      change(tick(deferred), deferred);
    }
    carry_out(deferred);
  }

  // Carries out what the scheduler wants, as far as the lock must be held for it.
  void apply(TimeNs now, Deferred& deferred);
  void put(TimeNs at, const Event& event, Deferred& deferred);
  void begin_work(const Work& work, TimeNs now, Deferred& deferred);
  // What a timed device takes for it.
  TimeNs device_ns(const Work& work) const;
  void count_loss(const Running& r);
  // Tells the rows of its batch that are traced how their step ended.
  void note_step(const Running& r, TimeNs now, TimeNs measured, bool lost);
  void begin_remote(Running& r, TimeNs now, Deferred& deferred);
  // An answer to an attempt that was given up: the device has done it at last and is free again.
  void late_answer(uint64_t attempt, TimeNs now, Deferred& deferred);
  void forgive(uint32_t device, TimeNs now, Deferred& deferred);
  // When a step that is under way is given up, by what is known of it.
  static TimeNs abandoned_at(const Running& r);
  void abandon(Running& r, const Event& event, TimeNs now, Deferred& deferred);
  // The step took too long, or failed. `for_a_time`: nothing more will come of it, so time must do.
  void give_up(Running& r, TimeNs now, Deferred& deferred, bool for_a_time);
  void set_there(uint32_t device, bool there);
  void end_work(Running& r, TimeNs took);

  // Without the lock.
  void carry_out(Deferred& deferred);
  static void notify(const RequestTable::Settled& settled);
  void ended(const DeviceTask& task, const Status& status);
  void finish(Running& r, TimeNs now, TimeNs took, Deferred& deferred);
  void keep_time();
  std::vector<LiveClassCounters> class_counters() const;  // with the lock
  uint32_t lost_of(const DevicePool& pool) const;         // the same
  void handle(const EventQueue<Event>::Event& event, Deferred& deferred);
  const Deployment deployment_;
  const LivePlaneOptions options_;
  std::vector<std::unique_ptr<DeviceThread>> devices_;  // null: timed, or in another process
  std::shared_ptr<RemoteDevices> remote_;               // null: none is in another process
  Thread clock_;
  mutable Mutex mutex_;  // guards what follows
  Condition changed_;
  std::unique_ptr<Scheduler> scheduler_;
  Actions actions_;
  EventQueue<Event> events_;
  std::vector<Running> running_;  // by work
  std::vector<RemoteState> remote_state_;
  std::unordered_map<uint64_t, WorkId> attempts_;  // that are under way in other processes
  LiveCounters counters_;
  RequestTable requests_;
  TimeNs last_ = 0;
  bool draining_ = false, quit_ = false;
  bool traces_ = false;  // a traced row has come so far
};

}  // namespace heddle
