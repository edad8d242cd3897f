#include <algorithm>

#include "plane.h"

namespace heddle {

Status Plane::start_remote(std::shared_ptr<RemoteDevices> devices) {
  remote_ = std::move(devices);
  remote_state_.resize(deployment_.devices.size());
  HEDDLE_RETURN_IF_ERROR(start(std::vector<std::shared_ptr<DeviceRunner>>(deployment_.devices.size())));
  update([&](TimeNs now, Deferred& deferred) {
    // News from here on wait for the lock.
    const auto there = remote_->listen(this);
    for (uint32_t v = 0; v < remote_state_.size(); ++v) {
      remote_state_[v].there = v < there.size() && there[v];
      if (!remote_state_[v].there) scheduler_->device_lost(v, now, actions_);
    }
    apply(now, deferred);
  });
  return {};
}

void Plane::begin_remote(Running& r, TimeNs now, Deferred& deferred) {
  const Work& work = r.work;
  RemoteTask task;
  task.attempt = r.attempt = remote_->next_attempt();
  r.due = r.received = false;
  attempts_[r.attempt] = work.id;
  task.transfer = work.transfer;
  task.device = work.device;
  task.source = work.source;
  task.rows = work.batch_size;
  task.expected_ns = work.expected_ns;
  task.device_ns = device_ns(work);
  uint64_t& batch = requests_.batch(work.first_request);
  if (!work.transfer && work.partition == 0) {
    requests_.take_maps(work.first_request, work.batch_size, deferred.released);
    batch = r.attempt;
    requests_.each_of(work.first_request, work.batch_size, [&task](const LiveRequest* request) {
      task.payloads.push_back(request != nullptr ? request->payload : std::vector<RemotePayload>());
    });
  }
  task.batch = batch;
  r.patience =
      work.expected_ns +
      std::max(options_.patience.least_ns,
               static_cast<TimeNs>((options_.patience.factor - 1) * static_cast<double>(work.expected_ns)));
  r.waiting = 0;
  r.reported = 0;
  put(abandoned_at(r), {EventKind::kAbandon, work.id, r.serial}, deferred);
  put(now + work.expected_ns + (work.transfer ? 0 : lateness_tolerance(work.expected_ns)),
      {work.transfer ? EventKind::kEnd : EventKind::kOverdue, work.id, r.serial}, deferred);
  deferred.remote.push_back(std::move(task));
}

void Plane::answered(const RemoteAnswer& answer) {
  update([&](TimeNs now, Deferred& deferred) {
    const auto it = attempts_.find(answer.attempt);
    if (it == attempts_.end()) {
      late_answer(answer.attempt, now, deferred);
    } else {
      Running& r = running_[it->second];
      if (answer.no_map && r.work.transfer) {
        // The devices are well.
        ++counters_.given_up;
        scheduler_->batch_lost(r.work.id, now, actions_);
        apply(now, deferred);
      } else if (!answer.status.ok()) {
        give_up(r, now, deferred, true);
      } else if (r.work.transfer && !r.due) {
        r.received = true;
      } else {
        size_t row = 0;
        requests_.each_of(r.work.first_request, r.work.batch_size, [&answer, &row](LiveRequest* request) {
          if (request != nullptr && row < answer.digests.size()) request->digest = answer.digests[row];
          if (request != nullptr && row < answer.outputs.size()) request->result = answer.outputs[row];
          ++row;
        });
        const RequestId first = r.work.first_request;
        if (!r.work.transfer) {
          requests_.take_map(first, deferred.released);
          const size_t parts = deployment_.pipelines[r.work.pipeline].partitions.size();
          if (r.work.partition + 1 < parts) requests_.set_map(first, r.work.device);
        }
        finish(r, now, r.work.transfer ? 0 : answer.measured_ns, deferred);
      }
    }
  });
}

TimeNs Plane::abandoned_at(const Running& r) {
  return r.start + static_cast<TimeNs>(static_cast<double>(r.patience) / (1 - r.waiting));
}

// A device that is not hung but has to share: the time that others take does not count against its step.
void Plane::still_running(uint64_t attempt, TimeNs elapsed_ns, TimeNs waited_ns) {
  // A device that nearly never has a core is as good as none.
  constexpr double kMostWaiting = .95;
  if (elapsed_ns <= 0) return;
  update([&](TimeNs now, Deferred& deferred) {
    if (const auto it = attempts_.find(attempt); it != attempts_.end()) {
      Running& r = running_[it->second];
      r.waiting =
          std::clamp(static_cast<double>(waited_ns) / static_cast<double>(elapsed_ns), 0., kMostWaiting);
      r.reported = now;
      remote_state_[r.work.device].reports = true;
      if (abandoned_at(r) <= now) give_up(r, now, deferred, false);
    }
  });
}

void Plane::abandon(Running& r, const Event& event, TimeNs now, Deferred& deferred) {
  const TimeNs then = abandoned_at(r);
  if (then > now) return put(then, event, deferred);
  // On a busy machine messages come late, too. Earlier ones say nothing about the time since.
  const TimeNs news = then + options_.patience.least_ns;
  if (remote_state_[r.work.device].reports && r.reported < then && now < news)
    return put(news, event, deferred);
  give_up(r, now, deferred, false);
}

void Plane::late_answer(uint64_t attempt, TimeNs now, Deferred& deferred) {
  ++counters_.late_answers;
  for (uint32_t v = 0; v < remote_state_.size(); ++v)
    if (remote_state_[v].behind == attempt) forgive(v, now, deferred);
}

void Plane::forgive(uint32_t device, TimeNs now, Deferred& deferred) {
  remote_state_[device].behind = 0;
  if (!remote_state_[device].there) return;
  scheduler_->device_back(device, now, actions_);
  apply(now, deferred);
}

void Plane::give_up(Running& r, TimeNs now, Deferred& deferred, bool for_a_time) {
  ++counters_.given_up;
  const uint32_t device = r.work.device;
  remote_state_[device].behind = r.attempt;
  if (for_a_time || r.work.transfer)
    put(now + options_.patience.quarantine_ns, {EventKind::kReturn, device, static_cast<uint32_t>(r.attempt)},
        deferred);
  scheduler_->device_lost(device, now, actions_);
  apply(now, deferred);
}

void Plane::set_there(uint32_t device, bool there) {
  if (device >= remote_state_.size()) return;
  update([&](TimeNs now, Deferred& deferred) {
    auto& state = remote_state_[device];
    // What it was behind with went with the process.
    const bool open = state.there && state.behind == 0;
    counters_.losses += state.there && !there;
    state = {there, 0};
    if (open && !there) scheduler_->device_lost(device, now, actions_);
    if (!open && there) scheduler_->device_back(device, now, actions_);
    apply(now, deferred);
  });
}

}  // namespace heddle
