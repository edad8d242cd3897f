#include "heddle/serve/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "heddle/serve/live_plane.h"
#include "heddle/serve/worker.h"
#include "worker_view.h"

namespace heddle {
namespace {

constexpr size_t kInputPieceBytes = size_t{1} << 20;

struct PoolMember {
  WorkerEntry entry;
  std::shared_ptr<ServerSession> session;  // null: none
  bool connected = false;                  // it has been heard of in this session
  std::string reason = "not connected yet";
  uint64_t sessions = 0, losses = 0, runs = 0;
  double busy_s = 0;
  TimeNs heard = 0;
};

class BusWorkerPool;

// What a plane holds of the pool.
class PoolHandle final : public RemoteDevices {
 public:
  PoolHandle(BusWorkerPool& pool, std::shared_ptr<WorkerView> view) : pool_(pool), view_(std::move(view)) {}
  ~PoolHandle() override;
  std::vector<char> listen(RemoteListener* listener) override;
  uint64_t next_attempt() override;
  void begin(RemoteTask task) override;
  void release(uint64_t batch, uint32_t device) override;
  std::string refusal() const override;

 private:
  BusWorkerPool& pool_;
  const std::shared_ptr<WorkerView> view_;
};

class BusWorkerPool final : public WorkerPool {
 public:
  BusWorkerPool(std::shared_ptr<WorkerBus> bus, const WorkerPoolOptions& options)
      : bus_(std::move(bus)), options_(options) {
    thread_ = std::thread([this] { work(); });
    bus_->watch([this](const BusEntry& entry) { post([this, entry] { seen(entry); }); });
  }

  ~BusWorkerPool() override {
    bus_->watch(nullptr);
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_all();
    thread_.join();
    // gRPC still tells of the sessions until each has ended.
    std::vector<std::shared_ptr<ServerSession>> open;
    {
      const std::lock_guard lock(mutex_);
      for (auto& [name, m] : members_)
        if (m.session) open.push_back(m.session);
    }
    for (const auto& s : open) s->end("the server is stopping");
    open.clear();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_sessions_ == 0; });
  }

  std::shared_ptr<RemoteDevices> open(const Fleet& fleet, const Deployment& deployment, double seconds,
                                      bool all, const CancelToken& cancel) override {
    const auto until = live_now() + ns_from_us(seconds * 1e6);
    std::shared_ptr<WorkerView> view;
    {
      const std::lock_guard lock(mutex_);
      view = std::make_shared<WorkerView>(++generations_, fleet, deployment);
      views_[view->generation] = view;
    }
    assign();
    const auto ready = [&view, all] {
      for (size_t v = 0; v < view->loaded.size(); ++v)
        if (!view->loaded[v] && view->refused[v].empty() && (all || view->asked[v] != 0)) return false;
      return true;
    };
    std::unique_lock lock(mutex_);
    while (!ready() && live_now() < until && !cancel.cancelled())
      changed_.wait_for(lock, std::chrono::milliseconds(50));
    lock.unlock();
    return std::make_shared<PoolHandle>(*this, view);
  }

  std::map<std::string, int64_t> missing(const Deployment& deployment) const override {
    DevicePlaces places(deployment);
    const std::lock_guard lock(mutex_);
    places.assign(capacities());
    return places.missing(capacities());
  }

  std::vector<WorkerState> workers() const override {
    std::vector<WorkerState> all;
    const std::lock_guard lock(mutex_);
    const auto* newest = views_.empty() ? nullptr : views_.rbegin()->second.get();
    for (const auto& [name, m] : members_) {
      WorkerState w;
      w.name = name;
      w.address = m.entry.address;
      w.state = m.connected ? "connected" : m.session ? "connecting" : "lost";
      w.reason = m.connected ? "" : m.reason;
      w.devices = m.entry.devices;
      w.pid = m.entry.pid;
      for (uint32_t v = 0; newest != nullptr && v < newest->loaded.size(); ++v) {
        if (newest->places.worker_of(v) != name) continue;
        w.virtual_devices += newest->loaded[v] != 0;
        if (m.connected && w.reason.empty()) w.reason = newest->refused[v];
      }
      w.sessions = m.sessions;
      w.losses = m.losses;
      w.runs = m.runs;
      w.busy_s = m.busy_s;
      w.heard_s = m.heard == 0 ? 0 : seconds_from_ns(live_now() - m.heard);
      all.push_back(std::move(w));
    }
    return all;
  }

  uint64_t new_attempt() { return ++attempts_; }

  std::vector<char> there(const WorkerView& view) const {
    const std::lock_guard lock(mutex_);
    return view.loaded;
  }

  std::string refusal(const WorkerView& view) const {
    const std::lock_guard lock(mutex_);
    for (uint32_t v = 0; v < view.refused.size(); ++v)
      if (!view.refused[v].empty())
        return "worker '" + view.places.worker_of(v) + "' refuses a part: " + view.refused[v];
    return {};
  }

  void release(const WorkerView& view, uint64_t batch, uint32_t device) {
    std::shared_ptr<ServerSession> session;
    {
      const std::lock_guard lock(mutex_);
      if (device >= view.loaded.size() || !view.loaded[device]) return;
      session = members_[view.places.worker_of(device)].session;
    }
    if (!session) return;
    worker::ToWorker message;
    message.mutable_release()->set_batch(batch);
    message.mutable_release()->set_device(device);
    session->send(std::move(message));
  }

  void closed(const WorkerView& view) {
    const std::lock_guard lock(mutex_);
    views_.erase(view.generation);
  }

  void begin(const WorkerView& view, RemoteTask task) {
    std::shared_ptr<ServerSession> session;
    std::string to;
    {
      const std::lock_guard lock(mutex_);
      if (task.device >= view.loaded.size() || !view.loaded[task.device]) return;
      if (task.transfer && (task.source >= view.loaded.size() || !view.loaded[task.source])) return;
      const auto& there = members_[view.places.worker_of(task.device)];
      to = there.entry.address;
      session = task.transfer ? members_[view.places.worker_of(task.source)].session : there.session;
    }
    if (!session) return;
    worker::ToWorker message;
    if (task.transfer) {
      auto& t = *message.mutable_transfer();
      t.set_attempt(task.attempt);
      t.set_batch(task.batch);
      t.set_generation(view.generation);
      t.set_source(task.source);
      t.set_device(task.device);
      t.set_address(to);
      t.set_patience_s(std::max(options_.lease_s, 4 * seconds_from_ns(task.expected_ns)));
      return session->send(std::move(message));
    }
    for (size_t row = 0; row < task.payloads.size(); ++row)
      for (const auto& p : task.payloads[row])
        for (size_t at = 0; at < p.bytes; at += kInputPieceBytes) {
          worker::ToWorker piece;
          auto& in = *piece.mutable_input();
          in.set_attempt(task.attempt);
          in.set_row(static_cast<uint32_t>(row));
          in.set_data(p.data + at, std::min(kInputPieceBytes, p.bytes - at));
          in.set_computed(view.roles[task.device].computes());
          session->send(std::move(piece));
        }
    auto& r = *message.mutable_run();
    r.set_attempt(task.attempt);
    r.set_batch(task.batch);
    r.set_generation(view.generation);
    r.set_device(task.device);
    r.set_rows(task.rows);
    r.set_expected_ns(task.device_ns);
    session->send(std::move(message));
  }

 private:
  using Capacities = std::map<std::string, std::map<std::string, int64_t>>;

  void post(std::function<void()> what) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(what));
    }
    changed_.notify_all();
  }

  // All that changes who is there happens on this thread, so that losses and returns are told in order.
  void work() {
    const TimeNs step = std::max<TimeNs>(1, ns_from_us(options_.lease_s * 1e6) / 4);
    TimeNs next = live_now() + step;
    std::unique_lock lock(mutex_);
    while (!quit_) {
      if (!queue_.empty()) {
        const auto what = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        what();
        lock.lock();
        continue;
      }
      if (live_now() < next) {
        changed_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(next)));
        continue;
      }
      next = live_now() + step;
      lock.unlock();
      watch_sessions();
      lock.lock();
    }
  }

  void watch_sessions() {
    std::vector<std::pair<std::string, std::shared_ptr<ServerSession>>> open;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [name, m] : members_)
        if (m.session) open.emplace_back(name, m.session);
    }
    for (const auto& [name, session] : open) {
      if (session->silent_ns() > ns_from_us(options_.lease_s * 1e6)) {
        const auto reason =
            "nothing was heard of it for " + std::to_string(options_.lease_s).substr(0, 4) + " s";
        session->end(reason);
        // gRPC may take its time to tell the end of a connection that hangs.
        lost(name, session->id(), reason);
        continue;
      }
      ping(*session);
    }
  }

  void ping(ServerSession& session) {
    worker::ToWorker message;
    message.mutable_ping()->set_number(++pings_);
    session.send(std::move(message));
  }

  void seen(const BusEntry& event) {
    if (event.gone) return;  // a session that works needs no bus, and one that does not has its own reason
    auto entry = worker_entry_from_text(event.key, event.value);
    if (!entry.ok()) return;  // some other user of the bus
    std::shared_ptr<ServerSession> old, fresh;
    {
      const std::lock_guard lock(mutex_);
      auto& m = members_[event.key];
      if (m.session && m.entry.incarnation != entry->incarnation) old = m.session;
      m.heard = live_now();
      if (!old && m.session) return;
      m.entry = *entry;
    }
    if (old) {
      old->end("it has started again");
      lost(event.key, old->id(), "");
    }
    ServerSession::Events events;
    events.heard = [this, name = event.key](ServerSession& s, const worker::FromWorker& message) {
      heard(name, s, message);
    };
    events.ended = [this, name = event.key](ServerSession& s, const std::string& reason) {
      post([this, name, which = s.id(), reason] { lost(name, which, reason); });
      const std::lock_guard lock(mutex_);
      --open_sessions_;
      changed_.notify_all();
    };
    fresh = std::make_shared<ServerSession>(++sessions_, entry->address, options_.security,
                                            options_.max_outbox_bytes, std::move(events));
    {
      const std::lock_guard lock(mutex_);
      auto& m = members_[event.key];
      m.session = fresh;
      m.connected = false;
      ++m.sessions;
      ++open_sessions_;
    }
    const auto epoch = std::chrono::system_clock::now().time_since_epoch().count();
    fresh->begin(static_cast<uint64_t>(epoch), options_.lease_s);
    ping(*fresh);
  }

  // On gRPC's threads.
  void heard(const std::string& name, ServerSession& session, const worker::FromWorker& message) {
    if (message.has_output()) {
      session.keep(message.output());
      return;
    }
    RemoteAnswer answer;
    if (message.has_done()) answer.outputs = session.take_outputs(message.done().attempt());
    std::shared_ptr<WorkerView> view;
    {
      const std::lock_guard lock(mutex_);
      auto& m = members_[name];
      m.heard = live_now();
      if (m.session.get() == &session && !m.connected) {
        m.connected = true;
        queue_.push_back([this] { assign(); });
        changed_.notify_all();
      }
      if (message.has_done()) {
        const auto& d = message.done();
        if (const auto it = views_.find(d.generation()); it != views_.end()) view = it->second;
        answer.attempt = d.attempt();
        answer.measured_ns = std::max<int64_t>(0, d.measured_ns());
        if (!d.error().empty()) answer.status = Error(Code::kInternal, "worker '" + name + "': " + d.error());
        answer.digests.assign(d.digests().begin(), d.digests().end());
        m.runs += answer.measured_ns > 0;
        m.busy_s += seconds_from_ns(answer.measured_ns);
      }
    }
    if (view) view->tell(answer);
    if (message.has_loaded()) {
      post([this, which = session.id(), what = message.loaded()] { loaded(which, what); });
    }
  }

  Capacities capacities() const {
    Capacities out;
    for (const auto& [name, m] : members_)
      if (m.connected) out[name] = m.entry.devices;
    return out;
  }

  // Gives devices without a worker to those that are there, and has these load them.
  void assign() {
    std::vector<std::pair<std::shared_ptr<ServerSession>, worker::ToWorker>> loads;
    {
      const std::lock_guard lock(mutex_);
      const auto there = capacities();
      for (const auto& [generation, view] : views_) {
        view->places.assign(there);
        std::map<std::string, std::vector<uint32_t>> wanted;
        for (uint32_t v = 0; v < view->loaded.size(); ++v) {
          const auto& owner = view->places.worker_of(v);
          if (!there.contains(owner)) continue;
          const uint64_t session = members_[owner].session->id();
          if (view->asked[v] == session) continue;
          view->asked[v] = session;
          view->refused[v].clear();
          wanted[owner].push_back(v);
        }
        for (const auto& [name, devices] : wanted)
          loads.emplace_back(members_[name].session, view->load_of(devices));
      }
    }
    for (auto& [session, load] : loads) session->send(std::move(load));
  }

  void loaded(uint64_t session, const worker::Loaded& what) {
    std::vector<uint32_t> back;
    std::shared_ptr<WorkerView> view;
    {
      const std::lock_guard lock(mutex_);
      const auto it = views_.find(what.generation());
      if (it == views_.end()) return;
      view = it->second;
      const auto asked = [&view, session](uint32_t v) {
        return v < view->asked.size() && view->asked[v] == session;
      };
      for (const uint32_t v : what.devices()) {
        if (!asked(v) || view->loaded[v]) continue;
        view->loaded[v] = 1;
        back.push_back(v);
      }
      for (const auto& r : what.refused())
        if (asked(r.device())) view->refused[r.device()] = r.reason().empty() ? "no reason" : r.reason();
    }
    changed_.notify_all();
    view->tell(back, true);
  }

  void lost(const std::string& name, uint64_t session, const std::string& reason) {
    std::vector<std::pair<std::shared_ptr<WorkerView>, std::vector<uint32_t>>> told;
    std::shared_ptr<ServerSession> gone;
    {
      const std::lock_guard lock(mutex_);
      auto& m = members_[name];
      if (!m.session || m.session->id() != session) {
        // It was given up before; now it is known why.
        if (!m.session && !reason.empty()) m.reason = reason;
        return;
      }
      m.losses += m.connected;
      m.connected = false;
      gone = std::move(m.session);
      m.session = nullptr;
      m.reason = reason.empty() ? "its session was ended" : reason;
      for (const auto& [generation, view] : views_) {
        std::vector<uint32_t> devices;
        for (uint32_t v = 0; v < view->loaded.size(); ++v) {
          if (view->asked[v] != session) continue;
          view->asked[v] = 0;
          view->refused[v].clear();
          if (view->loaded[v]) devices.push_back(v);
          view->loaded[v] = 0;
        }
        told.emplace_back(view, std::move(devices));
      }
    }
    for (const auto& [view, devices] : told) view->tell(devices, false);
    assign();
  }

  const std::shared_ptr<WorkerBus> bus_;
  const WorkerPoolOptions options_;
  std::atomic<uint64_t> attempts_{0}, pings_{0};
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::string, PoolMember> members_;
  std::map<uint64_t, std::shared_ptr<WorkerView>> views_;  // by generation
  std::deque<std::function<void()>> queue_;
  uint64_t generations_ = 0, sessions_ = 0;
  size_t open_sessions_ = 0;
  bool quit_ = false;
  std::thread thread_;
};

PoolHandle::~PoolHandle() { pool_.closed(*view_); }

std::vector<char> PoolHandle::listen(RemoteListener* listener) {
  view_->listen(listener);
  return pool_.there(*view_);
}

uint64_t PoolHandle::next_attempt() { return pool_.new_attempt(); }

void PoolHandle::release(uint64_t batch, uint32_t device) { pool_.release(*view_, batch, device); }

std::string PoolHandle::refusal() const { return pool_.refusal(*view_); }

void PoolHandle::begin(RemoteTask task) { pool_.begin(*view_, std::move(task)); }

}  // namespace

Result<std::shared_ptr<WorkerPool>> WorkerPool::create(std::shared_ptr<WorkerBus> bus,
                                                       const WorkerPoolOptions& options) {
  if (!(options.lease_s >= .1 && options.lease_s <= 3600))
    return Error(Code::kInvalidInput,
                 "a lease of " + std::to_string(options.lease_s) + " s: expected 0.1 to 3600");
  return std::shared_ptr<WorkerPool>(std::make_shared<BusWorkerPool>(std::move(bus), options));
}

}  // namespace heddle
