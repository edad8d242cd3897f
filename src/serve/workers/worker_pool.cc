#include "heddle/serve/worker_pool.h"

#include <algorithm>

#include "bus_worker_pool.h"
#include "heddle/base/log.h"
#include "lease_table.h"

namespace heddle {
namespace {

constexpr size_t kInputPieceBytes = size_t{1} << 20;
constexpr TimeNs kLook = TimeNs{50'000} * kNsPerUs;  // whether the wait was cancelled

// What a plane holds of the pool.
class PoolHandle final : public RemoteDevices {
 public:
  PoolHandle(BusWorkerPool& pool, std::shared_ptr<WorkerView> view) : pool_(pool), view_(std::move(view)) {}
  ~PoolHandle() override { pool_.closed(*view_); }
  std::vector<char> listen(RemoteListener* listener) override {
    view_->listen(listener);
    return pool_.there(*view_);
  }
  uint64_t next_attempt() override { return pool_.new_attempt(); }
  void begin(RemoteTask task) override { pool_.begin(*view_, std::move(task)); }
  void release(uint64_t batch, uint32_t device) override { pool_.release(*view_, batch, device); }
  std::string owner(uint32_t device) const override { return pool_.owner(*view_, device); }
  std::string refusal() const override { return pool_.refusal(*view_); }

 private:
  BusWorkerPool& pool_;
  const std::shared_ptr<WorkerView> view_;
};

// Each model that has pipelines has one with a device that is there for each of its parts.
bool all_models_run(const Deployment& deployment, const std::vector<char>& there) {
  const auto has_device = [&there](const DevicePool& pool) {
    const auto first = there.begin() + pool.first_device;
    return std::find(first, first + pool.num_devices, char{1}) != first + pool.num_devices;
  };
  const auto runs = [&](uint32_t pipeline) {
    return std::ranges::all_of(deployment.pipelines[pipeline].partitions, has_device);
  };
  return std::ranges::all_of(deployment.models, [&runs](const DeployedModel& m) {
    return m.pipelines.empty() || std::ranges::any_of(m.pipelines, runs);
  });
}

}  // namespace

BusWorkerPool::BusWorkerPool(std::shared_ptr<WorkerBus> bus, const WorkerPoolOptions& options)
    : bus_(std::move(bus)),
      options_(options),
      network_(options.network ? options.network : grpc_worker_network()) {
  thread_ = Thread([this] { work(); });
  bus_->watch([this](const BusEntry& entry) { post([this, entry] { seen(entry); }); });
}

BusWorkerPool::~BusWorkerPool() {
  bus_->watch(nullptr);
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
  // gRPC still calls the sessions until each has ended.
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

std::shared_ptr<RemoteDevices> BusWorkerPool::open(const Fleet& fleet, const Deployment& deployment,
                                                   double seconds, WaitFor what, const CancelToken& cancel) {
  const TimeNs began = live_now(), half_lease = ns_from_us(options_.lease_s * 5e5);
  const TimeNs until = what == WaitFor::kEnough ? kNever : began + ns_from_us(seconds * 1e6);
  std::shared_ptr<WorkerView> view;
  {
    const std::lock_guard lock(mutex_);
    view = std::make_shared<WorkerView>(++generations_, fleet, deployment);
    views_[view->generation] = view;
  }
  assign();
  const auto ready = [&] {
    // Workers announce themselves four times in a lease.
    const bool all = what == WaitFor::kAll || (what == WaitFor::kEnough && live_now() - began < half_lease);
    for (size_t v = 0; v < view->loaded.size(); ++v)
      if (!view->loaded[v] && view->refused[v].empty() && (all || view->asked[v] != 0)) return false;
    return what != WaitFor::kEnough || all_models_run(deployment, view->loaded);
  };
  std::unique_lock lock(mutex_);
  bool waits = false;
  while (!ready() && live_now() < until && !cancel.cancelled()) {
    if (what == WaitFor::kEnough && !waits && live_now() - began > half_lease) {
      waits = true;
      log_line(LogLevel::kWarning, "too few workers for any plan of a model; waiting for more");
    }
    changed_.wait_for(lock, kLook);
  }
  lock.unlock();
  return std::make_shared<PoolHandle>(*this, view);
}

std::map<std::string, int64_t> BusWorkerPool::missing(const Deployment& deployment) const {
  DevicePlaces places(deployment);
  const std::lock_guard lock(mutex_);
  places.assign(capacities());
  return places.missing(capacities());
}

std::vector<WorkerState> BusWorkerPool::workers() const {
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
      if (m.connected && w.reason.empty() && newest->loaded[v]) w.reason = newest->overlap(v, false);
    }
    w.sessions = m.sessions;
    w.losses = m.losses;
    w.runs = m.runs;
    w.busy_s = m.busy_s;
    w.heard_s = m.heard == 0 ? 0 : seconds_from_ns(live_now() - m.heard);
    add_measured(m, w);
    if (newest != nullptr) w.cores = cores_of(*newest, name, m.pong);
    all.push_back(std::move(w));
  }
  return all;
}

void BusWorkerPool::add_measured(const PoolMember& member, WorkerState& to) const {
  to.program = member.peer.program;
  to.protocol = member.peer.protocol;
  const auto trips = member.pings.estimate();
  to.pings = trips.pings;
  to.round_trip_s = seconds_from_ns(trips.least_ns);
  to.median_trip_s = seconds_from_ns(trips.median_ns);
  to.has_clock = trips.has_clock;
  to.clock_ahead_s = seconds_from_ns(trips.offset_ns);
  to.clock_error_s = seconds_from_ns(trips.error_ns);
  to.compute_s = seconds_from_ns(member.pong.run_ns());
  to.waited_s = seconds_from_ns(member.pong.waited_ns());
  for (const auto& link : member.pong.links()) {
    const auto other = std::find_if(members_.begin(), members_.end(), [&link](const auto& m) {
      return m.second.entry.address == link.address();
    });
    to.links.push_back({other == members_.end() ? link.address() : other->first, link.maps(), link.bytes(),
                        link.failed(), seconds_from_ns(link.ns())});
  }
}

std::vector<DeviceCores> BusWorkerPool::cores_of(const WorkerView& view, const std::string& name,
                                                 const worker::Pong& pong) {
  std::vector<DeviceCores> out;
  for (uint32_t v = 0; v < view.loaded.size(); ++v) {
    if (view.places.worker_of(v) != name || (view.place[v].cores_size() == 0 && view.refused[v].empty()))
      continue;
    const auto& place = view.place[v];
    DeviceCores device;
    device.device = v;
    device.model = view.roles[v].model();
    device.device_class = view.roles[v].device_class();
    device.host = place.host();
    device.cores.assign(place.cores().begin(), place.cores().end());
    for (const auto& bound : pong.bound())
      if (bound.device() == v) device.bound.assign(bound.cores().begin(), bound.cores().end());
    device.shared = place.shared();
    device.loaded = view.loaded[v] != 0;
    device.refused = view.refused[v];
    out.push_back(std::move(device));
  }
  return out;
}

std::vector<char> BusWorkerPool::there(const WorkerView& view) const {
  const std::lock_guard lock(mutex_);
  return view.loaded;
}

std::string BusWorkerPool::owner(const WorkerView& view, uint32_t device) const {
  const std::lock_guard lock(mutex_);
  return device < view.loaded.size() ? view.places.worker_of(device) : "";
}

std::string BusWorkerPool::refusal(const WorkerView& view) const {
  const std::lock_guard lock(mutex_);
  for (uint32_t v = 0; v < view.refused.size(); ++v)
    if (!view.refused[v].empty())
      return "worker '" + view.places.worker_of(v) + "' refuses a part: " + view.refused[v];
  return {};
}

void BusWorkerPool::release(const WorkerView& view, uint64_t batch, uint32_t device) {
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

void BusWorkerPool::closed(const WorkerView& view) {
  const std::lock_guard lock(mutex_);
  views_.erase(view.generation);
}

void BusWorkerPool::begin(const WorkerView& view, RemoteTask task) {
  std::shared_ptr<ServerSession> session;
  std::string to;
  {
    const std::lock_guard lock(mutex_);
    // A thread that was held up may bring a step of a session that has ended since.
    const auto takes = [&view, &task](uint32_t device) {
      return device < view.loaded.size() && view.loaded[device] && task.attempt > view.before[device];
    };
    if (!takes(task.device) || (task.transfer && !takes(task.source))) return;
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

Result<std::shared_ptr<WorkerPool>> WorkerPool::create(std::shared_ptr<WorkerBus> bus,
                                                       const WorkerPoolOptions& options) {
  HEDDLE_RETURN_IF_ERROR(check_lease(options.lease_s));
  return std::shared_ptr<WorkerPool>(std::make_shared<BusWorkerPool>(std::move(bus), options));
}

}  // namespace heddle
