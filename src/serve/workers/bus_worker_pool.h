// The pool of workers: worker_pool.cc has what planes and users ask of it, worker_pool_members.cc how workers
// come, are watched and go.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "heddle/base/sync.h"
#include "heddle/serve/live_plane.h"
#include "heddle/serve/worker.h"
#include "heddle/serve/worker_pool.h"
#include "ping_times.h"
#include "worker_view.h"

namespace heddle {

struct PoolMember {
  WorkerEntry entry;
  std::shared_ptr<ServerSession> session;  // null: none
  bool connected = false;                  // a message of this session has arrived
  std::string reason = "not connected yet";
  std::string logged;  // the last reason of a session that never was connected, if it is in the log
  uint64_t sessions = 0, losses = 0, runs = 0;
  double busy_s = 0;
  TimeNs heard = 0;
  ServerSession::Peer peer;  // as of its last session that got an answer
  PingTimes pings;           // of this session
  worker::Pong pong;         // the last one of this session
};

class BusWorkerPool final : public WorkerPool {
 public:
  BusWorkerPool(std::shared_ptr<WorkerBus> bus, const WorkerPoolOptions& options);
  ~BusWorkerPool() override;
  std::shared_ptr<RemoteDevices> open(const Fleet& fleet, const Deployment& deployment, double seconds,
                                      WaitFor what, const CancelToken& cancel) override;
  std::map<std::string, int64_t> missing(const Deployment& deployment) const override;
  std::vector<WorkerState> workers() const override;
  uint64_t new_attempt() { return ++attempts_; }

  std::vector<char> there(const WorkerView& view) const;
  std::string owner(const WorkerView& view, uint32_t device) const;
  std::string refusal(const WorkerView& view) const;
  void release(const WorkerView& view, uint64_t batch, uint32_t device);
  void closed(const WorkerView& view);
  void begin(const WorkerView& view, RemoteTask task);

 private:
  using Capacities = DevicePlaces::Capacities;
  void post(std::function<void()> what);

  // Runs on the pool's thread. Only this thread changes members, so losses and returns are reported in order.
  void work();
  void watch_sessions();
  void ping(const std::string& name, ServerSession& session);
  void seen(const BusEntry& event);

  // On gRPC's threads.
  void heard(const std::string& name, ServerSession& session, const worker::FromWorker& message);
  void running(const worker::Pong& pong);
  Capacities capacities() const;
  // With the lock.
  void add_measured(const PoolMember& member, WorkerState& to) const;
  static std::vector<DeviceCores> cores_of(const WorkerView& view, const std::string& name,
                                           const worker::Pong& pong);

  // Assigns devices without a worker to connected workers and sends these their roles.
  void assign();
  void loaded(uint64_t session, const worker::Loaded& what);
  void lost(const std::string& name, uint64_t session, const std::string& reason);

  const std::shared_ptr<WorkerBus> bus_;
  const WorkerPoolOptions options_;
  const std::shared_ptr<WorkerNetwork> network_;
  std::atomic<uint64_t> attempts_{0}, pings_{0};
  mutable Mutex mutex_;  // guards what follows
  Condition changed_;
  std::map<std::string, PoolMember> members_;
  std::map<uint64_t, std::shared_ptr<WorkerView>> views_;  // by generation
  std::deque<std::function<void()>> queue_;
  uint64_t generations_ = 0, sessions_ = 0;
  size_t open_sessions_ = 0;
  bool quit_ = false;
  Thread thread_;
};

}  // namespace heddle
