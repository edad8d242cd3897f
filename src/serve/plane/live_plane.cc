#include "heddle/serve/live_plane.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "fault.h"
#include "heddle/fleet/reactive.h"
#include "plane.h"

namespace heddle {
namespace {

// The request ends without an answer, through no fault of its own. Null: it was settled before.
void lose(LiveRequest* request, const char* why) {
  if (request == nullptr) return;
  request->error = why;
  request->again = true;
}

}  // namespace

Plane::Plane(Deployment deployment, const LivePlaneOptions& options, bool remote)
    : deployment_(std::move(deployment)), options_(options), requests_(counters_.models) {
  auto dispatch = options.dispatch;
  dispatch.fill_gaps = options.scheduler == SchedulerKind::kReservation;
  dispatch.retry = remote;
  if (options.scheduler == SchedulerKind::kReactive) {
    scheduler_ = std::make_unique<ReactiveScheduler>(deployment_, remote);
  } else {
    scheduler_ = std::make_unique<Dispatcher>(deployment_, dispatch);
  }
  counters_.models.resize(deployment_.models.size());
  for (const auto& p : deployment_.pipelines) counters_.pools.emplace_back(p.partitions.size());
}

Plane::~Plane() {
  if (remote_) remote_->listen(nullptr);
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  if (clock_.joinable()) clock_.join();
  // The end of a run may give work to any other device, so none goes before all have stopped.
  for (const auto& device : devices_)
    if (device) device->stop();
  devices_.clear();
  RequestTable::Settled settled;
  for (const RequestId id : requests_.all()) {
    lose(requests_.at(id), "the server stopped before the request was done");
    requests_.settle(id, Outcome::kFailed, live_now(), settled);
  }
  notify(settled);
}

Status Plane::start(std::vector<std::shared_ptr<DeviceRunner>> runners) {
  if (runners.size() != deployment_.devices.size())
    return internal_error(std::to_string(runners.size()) + " runners for " +
                          std::to_string(deployment_.devices.size()) + " virtual devices");
  devices_.resize(runners.size());
  try {
    for (size_t v = 0; v < runners.size(); ++v) {
      if (!runners[v]) continue;
      devices_[v] = std::make_unique<DeviceThread>(
          std::move(runners[v]),
          [this](const DeviceTask& task, const Status& status) { ended(task, status); });
    }
    clock_ = Thread([this] { keep_time(); });
  } catch (const std::system_error& e) {
    return io_error(std::string("no more threads can be started: ") + e.what());
  }
  return {};
}

void Plane::submit(LiveRequest& request) {
  Deferred deferred;
  const TimeNs came = options_.watch_decisions ? live_now() : 0;
  {
    const std::lock_guard lock(mutex_);
    if (options_.watch_decisions) counters_.lock_wait.add(live_now() - came);
    const TimeNs now = tick(deferred);
    if (request.arrived == 0) request.arrived = now;
    traces_ |= request.steps != nullptr;
    const RequestId id = requests_.add(request);
    if (draining_ || request.model >= deployment_.models.size() || requests_.open() > options_.max_queued ||
        fault_at(FaultPoint::kSubmit)) {
      request.error = draining_ ? "the plan is being changed" : "too many requests wait";
      requests_.settle(id, Outcome::kWithdrawn, now, deferred.settled);
    } else {
      if (remote_)
        put(std::min(request.deadline, kNever) + options_.patience.grace_ns,
            {EventKind::kGiveUp, id, requests_.serial(id)}, deferred);
      const TimeNs began = live_now();
      fault_at(FaultPoint::kDecide);
      scheduler_->submit(request.model, id, request.deadline, now, actions_, request.priority);
      counters_.decision.add(live_now() - began);
      apply(now, deferred);
    }
  }
  carry_out(deferred);
}

std::vector<LiveRequest*> Plane::drain(bool hand_over) {
  std::vector<LiveRequest*> pending;
  update([&](TimeNs now, Deferred& deferred) {
    draining_ = true;
    for (const auto& p : scheduler_->drain()) {
      requests_.take_map(p.request, deferred.released);
      if (!hand_over) {
        if (LiveRequest* r = requests_.at(p.request)) r->error = "the server is stopping";
        requests_.settle(p.request, Outcome::kWithdrawn, now, deferred.settled);
      } else if (LiveRequest* r = requests_.release(p.request)) {
        r->begun = 0;  // of a batch that was recalled
        pending.push_back(r);
      }
    }
    // A scheduler may begin batches that it had already bound to a device.
    apply(now, deferred);
  });
  return pending;
}

bool Plane::idle() const {
  const std::lock_guard lock(mutex_);
  return requests_.open() == 0;
}

LiveCounters Plane::counters() const {
  const std::lock_guard lock(mutex_);
  LiveCounters copy = counters_;
  copy.scheduler = scheduler_->counters();
  const TimeNs now = live_now();
  for (size_t p = 0; p < copy.pools.size(); ++p)
    for (size_t k = 0; k < copy.pools[p].size(); ++k) {
      copy.pools[p][k].pass(now);
      copy.pools[p][k].lost = lost_of(deployment_.pipelines[p].partitions[k]);
    }
  copy.classes = class_counters();
  return copy;
}

uint32_t Plane::lost_of(const DevicePool& pool) const {
  uint32_t lost = 0;
  for (uint32_t v = pool.first_device; v < pool.first_device + pool.num_devices; ++v)
    lost += v < remote_state_.size() && (!remote_state_[v].there || remote_state_[v].behind != 0);
  return lost;
}

std::vector<LiveClassCounters> Plane::class_counters() const {
  uint32_t whole = 0;
  for (const auto& c : deployment_.classes) whole = std::max(whole, c.first_device + c.used);
  for (const auto& d : deployment_.devices) whole = std::max(whole, d.device + 1);
  std::vector<char> busy(whole), lost(whole);
  for (const auto& r : running_)
    if (r.live && !r.work.transfer) busy[deployment_.devices[r.work.device].device] = 1;
  for (size_t v = 0; v < remote_state_.size(); ++v)
    if (!remote_state_[v].there) lost[deployment_.devices[v].device] = 1;
  std::vector<LiveClassCounters> out(deployment_.classes.size());
  for (size_t c = 0; c < out.size(); ++c) {
    const auto& of = deployment_.classes[c];
    for (uint32_t d = of.first_device; d < of.first_device + of.used; ++d) {
      out[c].lost += lost[d];
      out[c].busy += busy[d] && !lost[d];
    }
  }
  return out;
}

void LivePoolCounters::pass(TimeNs now) {
  if (now <= mean_until) return;
  const double kept = std::exp(-seconds_from_ns(now - mean_until) / kUseMemory_s);
  mean_running = running + (mean_running - running) * kept;
  mean_until = now;
}

TimeNs Plane::tick(Deferred& deferred) {
  const TimeNs now = live_now();
  while (!events_.empty() && events_.next_at() <= now) handle(events_.pop(), deferred);
  return last_ = std::max(last_, now);
}

void Plane::apply(TimeNs now, Deferred& deferred) {
  for (const WorkId id : actions_.abort) {
    auto& r = running_[id];
    // A device that is out since a map did not reach it may be at work: it is free once that has ended, too.
    if (remote_ && !r.work.transfer && remote_state_[r.work.device].behind != 0)
      remote_state_[r.work.device].behind = r.attempt;
    count_loss(r);
    if (traces_) note_step(r, now, 0, true);
    end_work(r, now - r.start);
  }
  for (const RequestId id : actions_.begun) requests_.begin(id, now);
  for (const auto& work : actions_.start) begin_work(work, now, deferred);
  for (const RequestId id : actions_.done) {
    const LiveRequest* r = requests_.at(id);
    const Outcome outcome = r == nullptr || !r->error.empty() ? Outcome::kFailed
                            : now <= r->deadline              ? Outcome::kInTime
                                                              : Outcome::kLate;
    requests_.settle(id, outcome, now, deferred.settled);
  }
  for (const RequestId id : actions_.dropped) {
    requests_.take_map(id, deferred.released);
    LiveRequest* r = requests_.at(id);
    const bool lost = r != nullptr && r->losses > 0;
    if (lost) lose(r, "the device that served the request was lost, and no other can serve it in time");
    requests_.settle(id, lost ? Outcome::kFailed : Outcome::kDropped, now, deferred.settled);
  }
  for (const RequestId id : actions_.failed) {
    requests_.take_map(id, deferred.released);
    lose(requests_.at(id), "the device that served the request was lost");
    requests_.settle(id, Outcome::kFailed, now, deferred.settled);
  }
  for (const auto& w : actions_.wakes)
    put(std::max<TimeNs>(0, w.at - options_.wake_early_ns), {EventKind::kWake, w.model, 0}, deferred);
  actions_.clear();
}

void Plane::put(TimeNs at, const Event& event, Deferred& deferred) {
  deferred.earlier |= events_.empty() || at < events_.next_at();
  events_.push(at, event);
}

void Plane::begin_work(const Work& work, TimeNs now, Deferred& deferred) {
  if (work.id >= running_.size()) running_.resize(work.id + 1);
  auto& r = running_[work.id];
  r.work = work;
  r.start = now;
  r.live = true;
  ++r.serial;
  if (!work.transfer) {
    auto& pool = counters_.pools[work.pipeline][work.partition];
    pool.pass(now);
    ++pool.running;
    if (work.partition == 0) {
      auto& sizes = counters_.models[deployment_.pipelines[work.pipeline].model].batch_sizes;
      if (sizes.size() < work.batch_size) sizes.resize(work.batch_size, 0);
      ++sizes[work.batch_size - 1];
      requests_.each_of(work.first_request, work.batch_size, [&work](LiveRequest* request) {
        if (request != nullptr) request->batch = work.batch_size;
      });
    }
  }
  if (remote_) return begin_remote(r, now, deferred);
  const bool timed = work.transfer || !devices_[work.device];
  const TimeNs tolerated = work.expected_ns + lateness_tolerance(work.expected_ns);
  if (timed) put(now + device_ns(work), {EventKind::kEnd, work.id, r.serial}, deferred);
  if (!timed || device_ns(work) > tolerated)
    put(now + tolerated, {EventKind::kOverdue, work.id, r.serial}, deferred);
  if (timed) return;
  DeviceTask task;
  task.work = work.id;
  requests_.each_of(work.first_request, work.batch_size,
                    [&task](LiveRequest* request) { task.batch.push_back(request); });
  deferred.tasks.emplace_back(work.device, std::move(task));
}

TimeNs Plane::device_ns(const Work& work) const {
  const auto& pool = deployment_.pipelines[work.pipeline].partitions[work.partition];
  return work.transfer || pool.timed_ns.empty() ? work.expected_ns : pool.timed_ns[work.batch_size - 1];
}

void Plane::count_loss(const Running& r) {
  if (!remote_) return;
  requests_.each_of(r.work.first_request, r.work.batch_size, [this](LiveRequest* request) {
    if (request == nullptr) return;
    ++request->losses;
    ++counters_.rerun;
  });
}

void Plane::note_step(const Running& r, TimeNs now, TimeNs measured, bool lost) {
  const Work& work = r.work;
  PlaneStep step;
  requests_.each_of(work.first_request, work.batch_size, [&](LiveRequest* request) {
    if (request == nullptr || !request->steps) return;
    if (step.ended == 0) {  // the first one
      step.work = uint64_t{work.id} << 32 | r.serial;
      step.transfer = work.transfer;
      step.lost = lost;
      step.pipeline = work.pipeline;
      step.partition = work.partition;
      step.device = work.device;
      step.source = work.source;
      step.batch = work.batch_size;
      step.device_class = deployment_.pipelines[work.pipeline].partitions[work.partition].role.device_class;
      if (remote_) step.worker = remote_->owner(work.device);
      if (remote_ && work.transfer) step.source_worker = remote_->owner(work.source);
      step.began = r.start;
      step.ended = std::max(now, r.start + 1);
      step.planned_ns = work.expected_ns;
      step.measured_ns = measured;
    }
    request->steps->push_back(step);
  });
}

void Plane::end_work(Running& r, TimeNs took) {
  r.live = false;
  if (r.attempt != 0) attempts_.erase(r.attempt);
  r.attempt = 0;
  if (r.work.transfer) return;
  auto& pool = counters_.pools[r.work.pipeline][r.work.partition];
  pool.pass(r.start + took);
  --pool.running;
  ++pool.runs;
  pool.rows += r.work.batch_size;
  pool.busy_s += seconds_from_ns(took);
  pool.predicted_s += seconds_from_ns(r.work.expected_ns);
}

void Plane::carry_out(Deferred& deferred) {
  for (auto& [device, task] : deferred.tasks) devices_[device]->give(std::move(task));
  for (const auto& [batch, device] : deferred.released) remote_->release(batch, device);
  for (auto& task : deferred.remote) remote_->begin(std::move(task));
  if (deferred.earlier) changed_.notify_one();
  notify(deferred.settled);
}

void Plane::notify(const RequestTable::Settled& settled) {
  for (auto* r : settled) r->settled();
}

void Plane::ended(const DeviceTask& task, const Status& status) {
  update([&](TimeNs now, Deferred& deferred) {
    if (!status.ok())
      for (auto* r : task.batch) r->error = status.error().to_string();
    finish(running_[task.work], now, now - running_[task.work].start, deferred);
  });
}

void Plane::finish(Running& r, TimeNs now, TimeNs took, Deferred& deferred) {
  const WorkId work = r.work.id;
  if (traces_) note_step(r, now, took, false);
  end_work(r, took);
  scheduler_->finished(work, now, actions_);
  apply(now, deferred);
}

void Plane::keep_time() {
  ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);  // 1 us instead of 50
  std::unique_lock lock(mutex_);
  while (!quit_) {
    if (events_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const TimeNs at = events_.next_at();
    if (at > live_now()) {
      changed_.wait_until(lock, at);
      continue;
    }
    Deferred deferred;
    tick(deferred);
    lock.unlock();
    carry_out(deferred);
    fault_at(FaultPoint::kClock);
    lock.lock();
  }
}

void Plane::handle(const EventQueue<Event>::Event& event, Deferred& deferred) {
  const Event e = event.payload;
  TimeNs now = last_ = std::max(last_, event.at);
  if (e.kind == EventKind::kWake) {
    // The batch that waited begins a little early, as of the time that it was to begin at.
    now = last_ = std::max(last_, event.at + options_.wake_early_ns);
    if (!draining_) scheduler_->wake(e.a, now, actions_);
  } else if (e.kind == EventKind::kReturn) {
    if (static_cast<uint32_t>(remote_state_[e.a].behind) == e.serial && e.serial != 0)
      forgive(e.a, now, deferred);
  } else if (e.kind == EventKind::kGiveUp) {
    LiveRequest* r = requests_.at(e.a);
    if (r == nullptr || requests_.serial(e.a) != e.serial) return;
    lose(r, "no device answered by the deadline");
    ++counters_.overdue;
    requests_.settle_early(e.a, Outcome::kFailed, now, deferred.settled);
  } else {
    auto& r = running_[e.a];
    if (!r.live || r.serial != e.serial) return;
    if (e.kind == EventKind::kAbandon) return abandon(r, e, now, deferred);
    if (e.kind == EventKind::kEnd) {
      if (remote_ && !r.received) {
        r.due = true;
        return;
      }
      return finish(r, now, now - r.start, deferred);
    }
    scheduler_->overdue(e.a, now, actions_);
    if (!r.live) return apply(now, deferred);
    // The scheduler now expects that it takes as long again.
    put(now + std::max<TimeNs>(now - r.start, kLeastTolerance), e, deferred);
  }
  apply(now, deferred);
}

Result<std::unique_ptr<LivePlane>> LivePlane::create(Deployment deployment, const LivePlaneOptions& options,
                                                     std::vector<std::shared_ptr<DeviceRunner>> runners) {
  HEDDLE_RETURN_IF_ERROR(check_deployment(deployment));
  auto plane = std::make_unique<Plane>(std::move(deployment), options, false);
  HEDDLE_RETURN_IF_ERROR(plane->start(std::move(runners)));
  return std::unique_ptr<LivePlane>(std::move(plane));
}

Result<std::unique_ptr<LivePlane>> LivePlane::create_remote(Deployment deployment,
                                                            const LivePlaneOptions& options,
                                                            std::shared_ptr<RemoteDevices> devices) {
  HEDDLE_RETURN_IF_ERROR(check_deployment(deployment));
  for (const auto& p : deployment.pipelines)
    if (options.scheduler == SchedulerKind::kReactive && p.partitions.size() > 1)
      return unsupported(
          "the scheduler 'reactive' forms batches anew in every pool, and feature maps go from worker "
          "to worker by batch; use reservation or busy-until");
  auto plane = std::make_unique<Plane>(std::move(deployment), options, true);
  HEDDLE_RETURN_IF_ERROR(plane->start_remote(std::move(devices)));
  return std::unique_ptr<LivePlane>(std::move(plane));
}

}  // namespace heddle
