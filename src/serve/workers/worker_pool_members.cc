// How workers come, are watched and go.
#include <algorithm>
#include <utility>

#include "bus_worker_pool.h"
#include "heddle/base/log.h"

namespace heddle {

void BusWorkerPool::post(std::function<void()> what) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(what));
  }
  changed_.notify_all();
}

void BusWorkerPool::work() {
  const TimeNs step = std::max<TimeNs>(1, ns_from_us(options_.lease_s * 1e6) / 4);
  TimeNs next = live_now() + step;
  std::unique_lock lock(mutex_);
  while (!quit_) {
    if (!queue_.empty()) {
      auto what = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      what();
      what = nullptr;  // a session's end waits for gRPC's threads, which may wait for the lock
      lock.lock();
      continue;
    }
    if (live_now() < next) {
      changed_.wait_until(lock, next);
      continue;
    }
    next = live_now() + step;
    lock.unlock();
    watch_sessions();
    lock.lock();
  }
}

void BusWorkerPool::watch_sessions() {
  std::vector<std::pair<std::string, std::shared_ptr<ServerSession>>> open;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, m] : members_)
      if (m.session) open.emplace_back(name, m.session);
  }
  for (const auto& [name, session] : open) {
    if (session->silent_ns() > ns_from_us(options_.lease_s * 1e6)) {
      const auto reason =
          "no message came from it for " + std::to_string(options_.lease_s).substr(0, 4) + " s";
      session->end(reason);
      // gRPC may take long to report the end of a connection that hangs.
      lost(name, session->id(), reason);
      continue;
    }
    ping(name, *session);
  }
}

void BusWorkerPool::ping(const std::string& name, ServerSession& session) {
  worker::ToWorker message;
  const uint64_t number = ++pings_;
  message.mutable_ping()->set_number(number);
  {
    const std::lock_guard lock(mutex_);
    members_[name].pings.sent(number, live_now());
  }
  session.send(std::move(message));
}

void BusWorkerPool::seen(const BusEntry& event) {
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
    old->end("it restarted");
    lost(event.key, old->id(), "");
  }
  ServerSession::Events events;
  events.heard = [this, name = event.key](ServerSession& s, const worker::FromWorker& message) {
    heard(name, s, message);
  };
  events.ended = [this, name = event.key](std::shared_ptr<ServerSession> s, const std::string& reason) {
    post([this, name, session = std::move(s), reason] { lost(name, session->id(), reason); });
    const std::lock_guard lock(mutex_);
    --open_sessions_;
    changed_.notify_all();
  };
  fresh = std::make_shared<ServerSession>(++sessions_, entry->address, *network_, options_.security,
                                          options_.max_outbox_bytes, std::move(events));
  {
    const std::lock_guard lock(mutex_);
    auto& m = members_[event.key];
    m.session = fresh;
    m.connected = false;
    m.pings = {};
    m.pong.Clear();
    ++m.sessions;
    ++open_sessions_;
  }
  const uint64_t epoch =
      options_.term > 0 ? epoch_of(options_.term, sessions_) : static_cast<uint64_t>(wall_ns());
  fresh->begin(epoch, options_.lease_s);
  ping(event.key, *fresh);
}

void BusWorkerPool::heard(const std::string& name, ServerSession& session,
                          const worker::FromWorker& message) {
  if (message.has_output()) {
    session.keep(message.output());
    return;
  }
  if (message.has_leaving()) {
    worker::ToWorker left;
    left.mutable_left();
    session.send(std::move(left));
  }
  RemoteAnswer answer;
  if (message.has_done()) answer.outputs = session.take_outputs(message.done().attempt());
  std::shared_ptr<WorkerView> view;
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    auto& m = members_[name];
    m.heard = live_now();
    if (m.session.get() == &session && !m.connected) {
      is_new = m.connected = true;
      m.peer = session.peer();
      queue_.push_back([this] { assign(); });
      changed_.notify_all();
    }
    if (message.has_pong() && m.session.get() == &session) {
      m.pong = message.pong();
      m.pings.answered(m.pong.number(), m.heard, wall_ns(), m.pong.wall_ns());
    }
    if (message.has_done()) {
      const auto& d = message.done();
      if (const auto it = views_.find(d.generation()); it != views_.end()) view = it->second;
      answer.attempt = d.attempt();
      answer.measured_ns = std::max<int64_t>(0, d.measured_ns());
      if (!d.error().empty()) answer.status = internal_error("worker '" + name + "': " + d.error());
      answer.no_map = d.no_map();
      answer.digests.assign(d.digests().begin(), d.digests().end());
      m.runs += answer.measured_ns > 0;
      m.busy_s += seconds_from_ns(answer.measured_ns);
    }
  }
  if (is_new) log_line(LogLevel::kInfo, "worker " + name + " is connected");
  if (view) view->forward(answer);
  if (message.has_pong()) running(message.pong());
  if (message.has_loaded()) {
    post([this, which = session.id(), what = message.loaded()] { loaded(which, what); });
  }
}

void BusWorkerPool::running(const worker::Pong& pong) {
  std::vector<std::shared_ptr<WorkerView>> views;
  if (pong.running_size() > 0) {
    const std::lock_guard lock(mutex_);
    for (const auto& [generation, view] : views_) views.push_back(view);
  }
  // Attempts are numbered over all plans: each is known to one of them at most.
  for (const auto& view : views)
    for (const auto& r : pong.running()) view->report_running(r.attempt(), r.elapsed_ns(), r.waited_ns());
}

BusWorkerPool::Capacities BusWorkerPool::capacities() const {
  Capacities out;
  for (const auto& [name, m] : members_)
    if (m.connected) out[name] = m.entry.devices;
  return out;
}

void BusWorkerPool::assign() {
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
        view->place[v].Clear();
        wanted[owner].push_back(v);
      }
      for (const auto& [name, devices] : wanted) {
        auto load = view->load_of(devices);
        for (const auto& [open, other] : views_) load.mutable_load()->add_open(open);
        loads.emplace_back(members_[name].session, std::move(load));
      }
    }
  }
  for (auto& [session, load] : loads) session->send(std::move(load));
}

void BusWorkerPool::loaded(uint64_t session, const worker::Loaded& what) {
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
      const auto place = std::find_if(what.places().begin(), what.places().end(),
                                      [v](const worker::Place& p) { return p.device() == v; });
      view->place[v] = place == what.places().end() ? worker::Place() : *place;
      if (const auto other = view->overlap(v, true); !other.empty()) {
        view->refused[v] = other + ", and the plan takes them for two; name each worker's own by --devices " +
                           view->roles[v].device_class() + "=cpu0, or give both workers --share-cores";
        continue;
      }
      view->loaded[v] = 1;
      view->before[v] = attempts_;
      back.push_back(v);
    }
    for (const auto& r : what.refused())
      if (asked(r.device())) view->refused[r.device()] = r.reason().empty() ? "no reason" : r.reason();
  }
  changed_.notify_all();
  view->forward(back, true);
}

void BusWorkerPool::lost(const std::string& name, uint64_t session, const std::string& reason) {
  std::vector<std::pair<std::shared_ptr<WorkerView>, std::vector<uint32_t>>> lost;
  std::shared_ptr<ServerSession> gone;
  std::string why, refused;
  {
    const std::lock_guard lock(mutex_);
    auto& m = members_[name];
    if (!m.session || m.session->id() != session) {
      // It was given up before; now it is known why.
      if (!m.session && !reason.empty()) m.reason = reason;
      return;
    }
    const bool was_connected = std::exchange(m.connected, false);
    m.losses += was_connected;
    gone = std::move(m.session);
    m.session = nullptr;
    m.reason = reason.empty() ? "its session was ended" : reason;
    if (was_connected) why = m.reason;
    if (gone->versions_differ() && gone->peer().protocol != 0) m.peer = gone->peer();
    if (gone->versions_differ() && m.logged != m.reason) refused = m.logged = m.reason;
    for (const auto& [generation, view] : views_) {
      std::vector<uint32_t> devices;
      for (uint32_t v = 0; v < view->loaded.size(); ++v) {
        if (view->asked[v] != session) continue;
        view->asked[v] = 0;
        view->refused[v].clear();
        if (view->loaded[v]) devices.push_back(v);
        view->loaded[v] = 0;
      }
      // Whose cores those of the lost one were, too, may now have them.
      for (uint32_t v = 0; v < view->loaded.size() && !devices.empty(); ++v) {
        if (view->loaded[v] || view->place[v].cores_size() == 0) continue;
        view->asked[v] = 0;
        view->refused[v].clear();
      }
      lost.emplace_back(view, std::move(devices));
    }
  }
  if (!refused.empty()) log_line(LogLevel::kError, "worker " + name + " cannot be used: " + refused);
  if (!why.empty()) log_line(LogLevel::kWarning, "worker " + name + " is lost: " + why);
  for (const auto& [view, devices] : lost) view->forward(devices, false);
  assign();
}

}  // namespace heddle
