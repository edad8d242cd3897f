#include "heddle/fleet/reactive.h"

#include <algorithm>

namespace heddle {

ReactiveScheduler::ReactiveScheduler(const Deployment& deployment, bool retry)
    : deployment_(deployment),
      retry_(retry),
      links_(2 * deployment.num_servers, false, true),
      place_(deployment.devices.size()),
      queue_(deployment.devices.size()),
      on_hand_(deployment.devices.size(), 0),
      running_(deployment.devices.size(), kNoId),
      closed_(deployment.devices.size(), 0),
      pipelines_(deployment.pipelines.size()),
      turns_(deployment) {
  for (uint32_t p = 0; p < deployment.pipelines.size(); ++p) {
    const auto& partitions = deployment.pipelines[p].partitions;
    const auto planned = deployment.pipelines[p].batch;
    auto& later = pipelines_[p].later_ns;
    later.assign(partitions.size(), 0);
    for (size_t k = partitions.size(); k-- > 1;)
      later[k - 1] = later[k] + partitions[k].run_ns[planned - 1] + partitions[k].transfer_ns[planned - 1];
    for (uint32_t k = 0; k < partitions.size(); ++k) {
      if (k == 0) pipelines_[p].open_first = partitions[0].num_devices;
      pipelines_[p].next_device.push_back(partitions[k].first_device);
      for (uint32_t i = 0; i < partitions[k].num_devices; ++i)
        place_[partitions[k].first_device + i] = {p, k};
    }
  }
  for (uint32_t p = 0; p < deployment.pipelines.size(); ++p) {
    const auto own = deployment.pipelines[p].partitions[0].first_device;
    auto& sharing = pipelines_[p].sharing;
    for (uint32_t q = 0; q < deployment.pipelines.size(); ++q)
      if (deployment.pipelines[q].partitions[0].first_device == own) sharing.push_back(q);
    if (sharing.size() == 1) sharing.clear();
  }
}

// All pipelines that run on the device; more than one only if models share it.
std::span<const uint32_t> ReactiveScheduler::pipelines_on(uint32_t device) const {
  const auto& sharing = pipelines_[place_[device].pipeline].sharing;
  return sharing.empty() ? std::span(&place_[device].pipeline, 1) : std::span(sharing);
}

// The pipeline whose first request is due first; kNoId if nothing waits.
uint32_t ReactiveScheduler::most_urgent(const std::vector<uint32_t>& pipelines) const {
  uint32_t best = kNoId;
  for (const uint32_t p : pipelines) {
    const auto& queue = pipelines_[p].queue;
    if (!queue.empty() && (best == kNoId || queue.front().deadline < pipelines_[best].queue.front().deadline))
      best = p;
  }
  return best;
}

uint32_t ReactiveScheduler::new_batch() {
  const uint32_t id = batches_.take();
  batches_[id].requests.clear();
  batches_[id].live = true;
  batches_[id].booking = kNoId;
  return id;
}

void ReactiveScheduler::release(uint32_t batch) {
  batches_[batch].live = false;
  batches_.give_back(batch);
}

// The next of the pipelines that have a device in their first pool.
uint32_t ReactiveScheduler::choose_pipeline(uint32_t model) {
  const auto open = [this](uint32_t p) { return pipelines_[p].open_first > 0; };
  const uint32_t p = turns_.next(model, open);
  if (p != kNoId) turns_.take(p, open);
  return p;
}

void ReactiveScheduler::submit(uint32_t model, RequestId request, TimeNs deadline, TimeNs now,
                               Actions& actions, uint16_t priority) {
  const uint32_t p = choose_pipeline(model);
  if (p == kNoId) {
    actions.dropped.push_back(request);
    return;
  }
  pipelines_[p].queue.push({deadline, request, false, priority});
  serve_first_pool(p, now, actions);
}

// Gives waiting requests to the pool's free devices, or to other pipelines if the pool has no device.
void ReactiveScheduler::serve_first_pool(uint32_t p, TimeNs now, Actions& actions) {
  const auto& pool = deployment_.pipelines[p].partitions[0];
  if (pipelines_[p].open_first == 0) {
    const DeadlineQueue waiting = std::move(pipelines_[p].queue);
    pipelines_[p].queue.clear();
    for (size_t i = 0; i < waiting.size(); ++i)
      submit(deployment_.pipelines[p].model, waiting[i].request, waiting[i].deadline, now, actions,
             waiting[i].priority);
    return;
  }
  for (uint32_t d = pool.first_device; d < pool.first_device + pool.num_devices; ++d) {
    if (pipelines_[p].queue.empty()) return;
    if (running_[d] == kNoId && !closed_[d]) serve(d, now, actions);
  }
}

// Begins the next batch of a free device.
void ReactiveScheduler::serve(uint32_t device, TimeNs now, Actions& actions) {
  if (running_[device] != kNoId || closed_[device]) return;
  const Place at = place_[device];
  if (at.partition == 0 && draining_) return;
  const auto& sharing = pipelines_[at.pipeline].sharing;
  if (at.partition > 0 || sharing.empty()) {
    begin_batch(device, at, now, actions);
    return;
  }
  // begin_batch() empties a queue in which every request is too late, so the loop ends.
  for (;;) {
    const uint32_t p = most_urgent(sharing);
    if (p == kNoId || begin_batch(device, {p, 0}, now, actions)) return;
  }
}

// Begins a batch from one pipeline's queue; false if the queue is empty afterwards.
bool ReactiveScheduler::begin_batch(uint32_t device, Place at, TimeNs now, Actions& actions) {
  const uint32_t p = at.pipeline, k = at.partition;
  const auto& pool = deployment_.pipelines[p].partitions[k];
  auto& queue = k == 0 ? pipelines_[p].queue : queue_[device];
  if (queue.mixed())
    queue.expire(now + pool.run_ns[0] + pipelines_[p].later_ns[k], [&](const DeadlineQueue::Entry& e) {
      actions.dropped.push_back(e.request);
      if (k > 0) --on_hand_[device];
    });
  while (!queue.empty()) {
    ++counters_.decisions;
    const TimeNs latest = queue.front().deadline - pipelines_[p].later_ns[k];
    auto size = static_cast<uint32_t>(std::min<size_t>(deployment_.pipelines[p].batch, queue.size()));
    while (size > 0 && now + pool.run_ns[size - 1] > latest) --size;
    if (size == 0) {
      actions.dropped.push_back(queue.front().request);
      queue.pop();
      if (k > 0) --on_hand_[device];
      continue;
    }
    const uint32_t id = new_batch();
    Batch& batch = batches_[id];
    batch.pipeline = p;
    batch.partition = k;
    batch.device = device;
    batch.source = kNoId;
    for (uint32_t i = 0; i < size; ++i) {
      batch.requests.push_back(queue.front());
      if (k == 0) actions.begun.push_back(queue.front().request);
      queue.pop();
    }
    if (k == 0) {
      on_hand_[device] += size;
      ++counters_.batches;
    }
    running_[device] = id;
    actions.start.push_back({.id = id,
                             .transfer = false,
                             .pipeline = p,
                             .partition = k,
                             .device = device,
                             .source = device,
                             .batch_size = size,
                             .first_request = batch.requests.front().request,
                             .expected_ns = pool.run_ns[size - 1]});
    return true;
  }
  return false;
}

// Sends the batch to the device of the next pool with the fewest requests on hand; ties are broken in turn.
void ReactiveScheduler::send(uint32_t id, TimeNs now, Actions& actions) {
  Batch& batch = batches_[id];
  const uint32_t k = batch.partition + 1;
  const auto& pool = deployment_.pipelines[batch.pipeline].partitions[k];
  uint32_t& next = pipelines_[batch.pipeline].next_device[k];
  uint32_t best = kNoId;
  for (uint32_t i = 0; i < pool.num_devices; ++i) {
    const uint32_t d = pool.first_device + (next - pool.first_device + i) % pool.num_devices;
    if (!closed_[d] && (best == kNoId || on_hand_[d] < on_hand_[best])) best = d;
  }
  if (best == kNoId) {
    const uint32_t p = batch.pipeline;
    lose_requests(p, batch.requests, actions);
    release(id);
    serve_first_pool(p, now, actions);
    return;
  }
  next = best + 1 < pool.first_device + pool.num_devices ? best + 1 : pool.first_device;
  batch.source = batch.device;
  batch.device = best;
  batch.partition = k;
  on_hand_[best] += static_cast<uint32_t>(batch.requests.size());
  const ResourceId up = deployment_.devices[batch.source].server;
  const ResourceId down = deployment_.num_servers + deployment_.devices[best].server;
  const TimeNs length = pool.transfer_ns[batch.requests.size() - 1];
  batch.booking =
      links_.book(now, id, 0, up, down, links_.earliest_both(up, down, now, length), length, kNoId);
  start_transfer(batch.booking, now, actions);
}

void ReactiveScheduler::start_transfer(BookingId booking, TimeNs now, Actions& actions) {
  if (booking == kNoId || !links_.can_start(booking)) return;
  links_.start(booking, now);
  const uint32_t id = links_[booking].batch;
  const Batch& batch = batches_[id];
  actions.start.push_back({.id = id,
                           .transfer = true,
                           .pipeline = batch.pipeline,
                           .partition = batch.partition,
                           .device = batch.device,
                           .source = batch.source,
                           .batch_size = static_cast<uint32_t>(batch.requests.size()),
                           .first_request = batch.requests.front().request,
                           .expected_ns = links_[booking].length});
}

// Frees both links and starts the next transfer in each of their queues.
void ReactiveScheduler::end_transfer(uint32_t id, TimeNs now, Actions& actions) {
  const Booking b = links_[batches_[id].booking];
  links_.finish(batches_[id].booking, now);
  batches_[id].booking = kNoId;
  start_transfer(b.next[0], now, actions);
  start_transfer(b.next[1], now, actions);
}

void ReactiveScheduler::finished(WorkId id, TimeNs now, Actions& actions) {
  const uint32_t device = batches_[id].device;
  if (batches_[id].booking != kNoId) {
    end_transfer(id, now, actions);
    for (const auto& r : batches_[id].requests) queue_[device].push(r);
    release(id);
    serve(device, now, actions);
    return;
  }
  running_[device] = kNoId;
  on_hand_[device] -= static_cast<uint32_t>(batches_[id].requests.size());
  if (batches_[id].partition + 1 == deployment_.pipelines[batches_[id].pipeline].partitions.size()) {
    for (const auto& r : batches_[id].requests) actions.done.push_back(r.request);
    release(id);
  } else {
    send(id, now, actions);
  }
  serve(device, now, actions);
}

void ReactiveScheduler::lose_requests(uint32_t pipeline, const std::vector<DeadlineQueue::Entry>& requests,
                                      Actions& actions) {
  for (const auto& r : requests) {
    if (retry_ && !draining_) {
      pipelines_[pipeline].queue.push(r);
    } else {
      actions.failed.push_back(r.request);
    }
  }
}

void ReactiveScheduler::device_lost(uint32_t device, TimeNs now, Actions& actions) {
  if (closed_[device]) return;
  closed_[device] = 1;
  const uint32_t p = place_[device].pipeline;
  if (place_[device].partition == 0)
    for (const uint32_t q : pipelines_on(device)) --pipelines_[q].open_first;
  if (running_[device] != kNoId) {
    const Batch& lost = batches_[running_[device]];
    actions.abort.push_back(running_[device]);
    lose_requests(lost.pipeline, lost.requests, actions);
    release(running_[device]);
    running_[device] = kNoId;
  }
  std::vector<DeadlineQueue::Entry> waiting;
  for (size_t i = 0; i < queue_[device].size(); ++i) waiting.push_back(queue_[device][i]);
  lose_requests(p, waiting, actions);
  queue_[device].clear();
  on_hand_[device] = 0;
  // Batches on their way from the device are lost; batches on their way to it are sent elsewhere.
  std::vector<uint32_t> resend;
  for (uint32_t id = 0; id < batches_.size(); ++id) {
    Batch& batch = batches_[id];
    if (!batch.live || batch.booking == kNoId || (batch.source != device && batch.device != device)) continue;
    if (links_[batch.booking].running) actions.abort.push_back(id);
    links_.cancel(batch.booking, now);
    batch.booking = kNoId;
    if (batch.source == device) {
      on_hand_[batch.device] -= static_cast<uint32_t>(batch.requests.size());
      lose_requests(p, batch.requests, actions);
      release(id);
    } else {
      resend.push_back(id);
    }
  }
  for (const uint32_t id : resend) {
    batches_[id].device = batches_[id].source;
    --batches_[id].partition;
    send(id, now, actions);
  }
  for (ResourceId r = 0; r < links_.resources(); ++r) start_transfer(links_.head(r), now, actions);
  for (const uint32_t q : pipelines_on(device)) serve_first_pool(q, now, actions);
}

void ReactiveScheduler::batch_lost(WorkId work, TimeNs now, Actions& actions) {
  Batch& batch = batches_[work];
  const uint32_t p = batch.pipeline, device = batch.device;
  actions.abort.push_back(work);
  on_hand_[device] -= static_cast<uint32_t>(batch.requests.size());
  lose_requests(p, batch.requests, actions);
  if (batch.booking == kNoId) {
    running_[device] = kNoId;
  } else {
    links_.cancel(batch.booking, now);
  }
  release(work);
  for (ResourceId r = 0; r < links_.resources(); ++r) start_transfer(links_.head(r), now, actions);
  serve(device, now, actions);
  serve_first_pool(p, now, actions);
}

void ReactiveScheduler::device_back(uint32_t device, TimeNs now, Actions& actions) {
  if (!closed_[device]) return;
  closed_[device] = 0;
  if (place_[device].partition == 0) {
    for (const uint32_t q : pipelines_on(device)) ++pipelines_[q].open_first;
    for (const uint32_t q : pipelines_on(device)) serve_first_pool(q, now, actions);
  } else {
    serve(device, now, actions);
  }
}

std::vector<PendingRequest> ReactiveScheduler::drain() {
  draining_ = true;
  std::vector<PendingRequest> pending;
  for (uint32_t p = 0; p < pipelines_.size(); ++p) {
    auto& queue = pipelines_[p].queue;
    for (size_t i = 0; i < queue.size(); ++i)
      pending.push_back({deployment_.pipelines[p].model, queue[i].request, queue[i].deadline});
    queue.clear();
  }
  return pending;
}

bool ReactiveScheduler::idle() const { return batches_.taken() == 0; }

}  // namespace heddle
