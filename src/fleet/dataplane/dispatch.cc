#include "heddle/fleet/dispatch.h"

#include <algorithm>
#include <cassert>

namespace heddle {

Dispatcher::Dispatcher(const Deployment& deployment, const DispatchOptions& options)
    : deployment_(deployment),
      options_(options),
      book_(static_cast<uint32_t>(deployment.devices.size()) + 2 * deployment.num_servers, options.fill_gaps,
            options.feedback),
      spread_(options.feedback && options.avoid_stragglers > 0),
      straggles_(deployment.devices.size(), 0),
      queues_(deployment.models.size()),
      wake_at_(deployment.models.size(), kNever),
      turns_(deployment) {
  const auto devices = static_cast<uint32_t>(deployment.devices.size());
  for (const auto& d : deployment.devices) {
    uplink_.push_back(devices + d.server);
    downlink_.push_back(devices + deployment.num_servers + d.server);
  }
  for (const auto& pipeline : deployment.pipelines) {
    Route route{.first_pool = static_cast<uint32_t>(pools_.size()),
                .partitions = static_cast<uint32_t>(pipeline.partitions.size()),
                .model = pipeline.model,
                .batch = pipeline.batch,
                .first_times = static_cast<uint32_t>(times_.size())};
    for (uint32_t b = 0; b < pipeline.batch; ++b) {
      TimeNs sum = 0;
      for (const auto& pool : pipeline.partitions) {
        const StepTimes times{pool.transfer_ns.empty() ? 0 : pool.transfer_ns[b], pool.run_ns[b]};
        times_.push_back(times);
        sum += times.send + times.run;
      }
      sums_.push_back(sum);
    }
    route.first_sum = static_cast<uint32_t>(sums_.size()) - pipeline.batch;
    route.least_batch = least_batch(pipeline);
    routes_.push_back(route);
    for (const auto& pool : pipeline.partitions)
      pools_.push_back({pool.first_device, pool.first_device + pool.num_devices, group_of(pool)});
  }
}

// Pipelines on the same pool of devices share one group.
uint32_t Dispatcher::group_of(const DevicePool& pool) {
  for (const auto& p : pools_)
    if (p.first_device == pool.first_device) return p.group;
  TimeNs least = kNever;
  for (const auto& pipeline : deployment_.pipelines)
    for (const auto& other : pipeline.partitions)
      if (other.first_device == pool.first_device)
        least =
            std::min(least, *std::min_element(other.run_ns.begin(), other.run_ns.begin() + pipeline.batch));
  return book_.add_group(pool.first_device, pool.num_devices, least);
}

// The smallest batch that uses devices nearly as well as the planned one.
uint32_t Dispatcher::least_batch(const DeployedPipeline& pipeline) const {
  const auto rate = [&](uint32_t b) {
    double slowest = 0;  // of the pools, the time in which each of its devices takes one batch
    for (const auto& pool : pipeline.partitions)
      slowest = std::max(slowest, static_cast<double>(pool.run_ns[b - 1]) / pool.num_devices);
    return b / slowest;
  };
  uint32_t b = pipeline.batch;
  while (b > 1 && rate(b - 1) >= options_.least_batch_rate * rate(pipeline.batch)) --b;
  return b;
}

void Dispatcher::decide(uint32_t model, TimeNs now, Actions& actions) {
  auto& queue = queues_[model];
  bool due = wake_at_[model] <= now;  // the last moment to wait has come
  wake_at_[model] = kNever;
  if (queue.mixed())
    queue.expire(now + options_.guard_ns + 1,
                 [&actions](const DeadlineQueue::Entry& e) { actions.dropped.push_back(e.request); });
  while (!queue.empty()) {
    ++counters_.decisions;
    auto& first = queue.front();
    const TimeNs deadline = first.deadline - options_.guard_ns;
    uint32_t pipeline = 0, size = 0;
    const bool served = deadline > now && choose(model, deadline, now, pipeline, size);
    const bool first_look = !first.examined;
    first.examined = true;
    // Not if it was late from the start: then no wait made the batch small.
    const bool too_small = first_look && served && size < routes_[pipeline].least_batch &&
                           deadline - now >= sums_[routes_[pipeline].first_sum + routes_[pipeline].batch - 1];
    if (!served || too_small) {
      actions.dropped.push_back(first.request);
      queue.pop();
      continue;
    }
    if (queue.size() < size) {
      const auto waiting = static_cast<uint32_t>(queue.size());
      probe_from(pipeline, waiting, 0, now, kNever, *path_);
      ++counters_.probes;
      // With mixed priorities, a later request may be due before the first one.
      const TimeNs soonest = queue.earliest(waiting) - options_.guard_ns;
      const TimeNs latest = now + (soonest < path_->finish ? deadline : soonest) - path_->finish;
      if (latest < now) {  // a smaller batch that takes longer than the larger one
        actions.dropped.push_back(first.request);
        queue.pop();
        continue;
      }
      if (!due && latest > now) {
        wake_at_[model] = latest;
        actions.wakes.push_back({model, latest});
        return;
      }
      size = waiting;
    }
    due = false;
    dispatch(model, pipeline, size, *path_, now, actions);
  }
}

void Dispatcher::dispatch(uint32_t model, uint32_t pipeline, uint32_t size, const ProbedPath& path,
                          TimeNs now, Actions& actions) {
  const uint32_t id = batches_.take();
  Batch& batch = batches_[id];
  auto& queue = queues_[model];
  batch.pipeline = pipeline;
  batch.steps_done = 0;
  batch.last_step = static_cast<uint16_t>(2 * routes_[pipeline].partitions - 2);
  batch.begun = false;
  batch.live = true;
  batch.size = size;
  batch.first_request = queue.front().request;
  batch.first_deadline = queue.front().deadline;
  batch.dispatched = now;
  batch.requests.clear();
  for (uint32_t i = 0; i < size; ++i) {
    batch.requests.push_back(queue.front());
    batch.requests.back().examined = true;
    actions.begun.push_back(queue.front().request);
    queue.pop();
  }
  ++counters_.batches;
  if (!options_.least_wait) turns_.take(pipeline, [](uint32_t) { return true; });
  reserve(id, 0, path, now);
  start_if_ready(batch.booking[0], now, actions);
}

// Algorithm 2's reserve(), from partition `from_partition` on.
void Dispatcher::reserve(uint32_t id, uint32_t from_partition, const ProbedPath& path, TimeNs now) {
  Batch& batch = batches_[id];
  const Route& route = routes_[batch.pipeline];
  const StepTimes* times = times_of(route, batch.size);
  for (uint32_t k = from_partition; k < route.partitions; ++k) {
    const uint32_t step = 2 * k;
    BookingId sent = kNoId;
    if (k > 0) {
      const auto before = step - 2 >= batch.steps_done ? batch.booking[step - 2] : kNoId;
      batch.planned[step - 1] = path.start[step - 1];
      batch.booking[step - 1] = sent =
          book_.book(now, id, static_cast<uint16_t>(step - 1), uplink(batch.device[k - 1]),
                     downlink(path.device[k]), path.start[step - 1], times[k].send, before);
    }
    batch.device[k] = path.device[k];
    batch.planned[step] = path.start[step];
    batch.booking[step] = book_.book(now, id, static_cast<uint16_t>(step), path.device[k], kNoId,
                                     path.start[step], times[k].run, sent);
  }
}

// True if the corrected times put the batch's end after its first deadline.
bool Dispatcher::will_be_late(const Batch& batch) const {
  if (book_.undisturbed()) return false;  // a reserved path is in time as long as nothing has moved
  const BookingId last = batch.booking[batch.last_step];
  return options_.feedback && last != kNoId && book_[last].end > batch.first_deadline;
}

void Dispatcher::set_straggling(uint32_t device, bool straggles) {
  if (static_cast<bool>(straggles_[device]) == straggles) return;
  straggles_[device] = straggles ? 1 : 0;
  straggling_ += straggles ? 1 : -1;
}

// True for a batch that has not begun and would be late. Batches that were dispatched at this very moment are
// in time; excluding them ends every chain of recalls.
bool Dispatcher::comes_too_late(BookingId id, TimeNs now) const {
  if (draining_ || book_[id].step != 0 || book_[id].running) return false;
  const Batch& batch = batches_[book_[id].batch];
  return batch.dispatched < now && will_be_late(batch);
}

// Decides again on the recalled batches: fewer requests, another path, or dropped while that saves time.
void Dispatcher::recall(TimeNs now, Actions& actions) {
  while (!recalled_.empty()) {
    const uint32_t id = recalled_.back();
    recalled_.pop_back();
    if (!batches_[id].live || batches_[id].begun || batches_[id].dispatched == now) continue;
    const uint32_t model = routes_[batches_[id].pipeline].model;
    release_from(id, 0, now, actions);
    give_up(id, true, now, actions);
    decide(model, now, actions);
    for (const ResourceId r : freed_) serve(r, now, actions);
  }
}

// Starts a booking that can start, unless its batch is to be recalled.
bool Dispatcher::start(BookingId id, TimeNs now, Actions& actions) {
  if (comes_too_late(id, now)) {
    recalled_.push_back(book_[id].batch);
    return false;
  }
  book_.start(id, now);
  const Booking& b = book_[id];
  Batch& batch = batches_[b.batch];
  batch.begun = true;
  const uint32_t partition = (b.step + 1) / 2;
  actions.start.push_back({.id = id,
                           .transfer = b.step % 2 == 1,
                           .pipeline = batch.pipeline,
                           .partition = partition,
                           .device = batch.device[partition],
                           .source = batch.device[b.step / 2],
                           .batch_size = batch.size,
                           .first_request = batch.first_request,
                           .expected_ns = b.length});
  return true;
}

// True if the booking can begin now by passing all bookings before it, because these are late. Otherwise it
// would wait together with them. A booking gives way if it should have begun by now, or if it will begin
// later than planned and `b` ends by then. With exact times nothing is late, so nothing passes.
bool Dispatcher::passes_late_ones(const Booking& b, TimeNs now) const {
  for (const int side : {0, 1}) {
    const ResourceId r = b.resource[side];
    if (r == kNoId) continue;
    if (book_.is_closed(r)) return false;
    for (BookingId p = b.prev[side]; p != kNoId;) {
      const Booking& before = book_[p];
      if (before.running) return false;
      const TimeNs planned = planned_start(before);
      if (planned >= now && (before.start <= planned || now + b.length > before.start)) return false;
      p = before.prev[before.resource[0] != r];
    }
  }
  return true;
}

// Starts the first booking of a resource that has become free, or else the first one that may pass.
void Dispatcher::serve(ResourceId r, TimeNs now, Actions& actions) {
  BookingId id = book_.head(r);
  if (id == kNoId || start_if_ready(id, now, actions) || !options_.feedback) return;
  while (id != kNoId) {
    const Booking& b = book_[id];
    if (may_pass(id, now)) {
      book_.pass(id, now);
      start_if_ready(id, now, actions);
      return;
    }
    if (b.running) return;
    const TimeNs planned = planned_start(b);
    if (planned >= now && b.start <= planned) return;
    id = b.next[b.resource[0] != r];
  }
}

void Dispatcher::finished(WorkId work, TimeNs now, Actions& actions) {
  const Booking b = book_[work];
  Batch& batch = batches_[b.batch];
  if (b.step % 2 == 0 && straggling_ > 0) set_straggling(b.resource[0], false);
  book_.finish(work, now);
  batch.booking[b.step] = kNoId;
  batch.steps_done = static_cast<uint16_t>(b.step + 1);
  if (b.step == batch.last_step) {
    for (const auto& r : batch.requests) actions.done.push_back(r.request);
    batch.live = false;
    batches_.give_back(b.batch);
  } else if (b.step % 2 == 0 && (b.step_after == kNoId || will_be_late(batch) ||
                                 (straggling_ > 0 && straggles_[batch.device[b.step / 2 + 1]]))) {
    rebind(b.batch, b.step / 2 + 1, now, actions);
  } else if (!start_if_ready(b.step_after, now, actions) && may_pass(b.step_after, now)) {
    book_.pass(b.step_after, now);
    start_if_ready(b.step_after, now, actions);
  }
  serve(b.resource[0], now, actions);
  if (b.resource[1] != kNoId) serve(b.resource[1], now, actions);
  recall(now, actions);
}

void Dispatcher::overdue(WorkId work, TimeNs now, Actions& actions) {
  const Booking& late = book_[work];
  if (spread_ && late.step % 2 == 0 &&
      static_cast<double>(now - late.start - late.length) >=
          options_.avoid_stragglers * static_cast<double>(late.length))
    set_straggling(late.resource[0], true);
  book_.overdue(work, now);
  const Booking b = book_[work];
  // Batches behind it in the first pool that would now be late may do better elsewhere.
  for (BookingId behind = b.next[0]; behind != kNoId && book_[behind].step == 0;
       behind = book_[behind].next[0])
    if (comes_too_late(behind, now)) recalled_.push_back(book_[behind].batch);
  // Bookings that wait behind later steps of this path may pass them.
  for (BookingId after = b.step_after; after != kNoId; after = book_[after].step_after)
    for (const ResourceId r : book_[after].resource)
      if (r != kNoId) serve(r, now, actions);
  recall(now, actions);
}

// cancel_from() for steps that have not begun. Puts their resources, which have new heads, into freed_.
void Dispatcher::release_from(uint32_t id, uint32_t step, TimeNs now, Actions& actions) {
  const Batch& batch = batches_[id];
  freed_.clear();
  for (uint32_t s = step; s <= batch.last_step; ++s) {
    if (batch.booking[s] == kNoId) continue;
    for (const ResourceId r : book_[batch.booking[s]].resource)
      if (r != kNoId) freed_.push_back(r);
  }
  cancel_from(id, step, now, actions);
}

// Chooses the rest of a batch's path again if the batch would otherwise be late or meet a straggler.
void Dispatcher::rebind(uint32_t id, uint32_t partition, TimeNs now, Actions& actions) {
  Batch& batch = batches_[id];
  release_from(id, 2 * partition - 1, now, actions);
  ProbedPath path;
  path.device = batch.device;
  ++counters_.probes;
  if (probe_from(batch.pipeline, batch.size, partition, now, kNever, path)) {
    reserve(id, partition, path, now);
    start_if_ready(batch.booking[2 * partition - 1], now, actions);
  } else {
    give_up(id, options_.retry, now, actions);
    if (!draining_) decide(routes_[batch.pipeline].model, now, actions);
  }
  for (const ResourceId r : freed_) serve(r, now, actions);
}

void Dispatcher::submit(uint32_t model, RequestId request, TimeNs deadline, TimeNs now, Actions& actions,
                        uint16_t priority) {
  // A wake that is due now belongs to the requests that already wait, so handle it first.
  if (wake_at_[model] <= now) decide(model, now, actions);
  queues_[model].push({deadline, request, false, priority});
  if (!draining_) decide(model, now, actions);
}

void Dispatcher::wake(uint32_t model, TimeNs now, Actions& actions) {
  if (wake_at_[model] <= now) decide(model, now, actions);
}

std::vector<PendingRequest> Dispatcher::drain() {
  draining_ = true;
  std::vector<PendingRequest> pending;
  for (uint32_t m = 0; m < queues_.size(); ++m) {
    wake_at_[m] = kNever;
    for (size_t i = 0; i < queues_[m].size(); ++i)
      pending.push_back({m, queues_[m][i].request, queues_[m][i].deadline});
    queues_[m].clear();
  }
  return pending;
}

// Cancels the batch's bookings from `step` on. The last one goes first, so that every remaining booking keeps
// its predecessor.
void Dispatcher::cancel_from(uint32_t id, uint32_t step, TimeNs now, Actions& actions) {
  Batch& batch = batches_[id];
  for (uint32_t s = batch.last_step + 1u; s-- > step;) {
    if (batch.booking[s] == kNoId) continue;
    if (book_[batch.booking[s]].running) {
      actions.abort.push_back(batch.booking[s]);
      if (s % 2 == 0) set_straggling(book_[batch.booking[s]].resource[0], false);
    }
    book_.cancel(batch.booking[s], now);
    batch.booking[s] = kNoId;
  }
}

void Dispatcher::give_up(uint32_t id, bool requeue, TimeNs now, Actions& actions) {
  cancel_from(id, 0, now, actions);
  Batch& batch = batches_[id];
  const uint32_t model = routes_[batch.pipeline].model;
  for (const auto& r : batch.requests) {
    if (requeue && !draining_) {
      queues_[model].push(r);
    } else {
      actions.failed.push_back(r.request);
    }
  }
  batch.live = false;
  batches_.give_back(id);
}

void Dispatcher::lose_batch(uint32_t id, uint32_t device, TimeNs now, Actions& actions) {
  Batch& batch = batches_[id];
  const uint32_t partitions = routes_[batch.pipeline].partitions;
  uint32_t lost = 0;
  while (lost < partitions && batch.device[lost] != device) ++lost;
  if (lost == partitions) return;
  const uint32_t holder = batch.steps_done / 2u;  // the partition whose device has the batch now
  if (lost < holder) return;
  if (!batch.begun) return give_up(id, true, now, actions);
  // A batch in transfer is still at its source: step 2k - 1 can be repeated from partition k - 1.
  if (lost == holder) return give_up(id, options_.retry, now, actions);
  cancel_from(id, 2 * lost - 1, now, actions);
  const BookingId before = batch.booking[2 * lost - 2];
  // An earlier loss has cut the path further up: finished() looks for the rest of it from there.
  if (before == kNoId && batch.steps_done < 2 * lost - 1) return;
  const TimeNs t = before == kNoId ? now : std::max(now, book_[before].end);
  ProbedPath path;
  path.device = batch.device;
  if (probe_from(batch.pipeline, batch.size, lost, t, kNever, path)) return reserve(id, lost, path, now);
  // A device that is at work on the batch is not free before it has ended: finished() looks for a path again.
  const BookingId held = batch.booking[size_t{2} * holder];
  if (held != kNoId && book_[held].running) return cancel_from(id, 2 * holder + 1, now, actions);
  give_up(id, options_.retry, now, actions);
}

void Dispatcher::start_all_ready(TimeNs now, Actions& actions) {
  for (ResourceId r = 0; r < book_.resources(); ++r) start_if_ready(book_.head(r), now, actions);
}

void Dispatcher::device_lost(uint32_t device, TimeNs now, Actions& actions) {
  if (book_.is_closed(device)) return;
  book_.close(device);
  for (uint32_t b = 0; b < batches_.size(); ++b)
    if (batches_[b].live) lose_batch(b, device, now, actions);
  assert(book_.head(device) == kNoId);
  go_on(now, actions);
}

void Dispatcher::batch_lost(WorkId work, TimeNs now, Actions& actions) {
  give_up(book_[work].batch, options_.retry, now, actions);
  go_on(now, actions);
}

// After a loss: what was booked behind it may begin, and what was put back is decided on again.
void Dispatcher::go_on(TimeNs now, Actions& actions) {
  start_all_ready(now, actions);
  recall(now, actions);
  if (draining_) return;
  for (uint32_t m = 0; m < queues_.size(); ++m) decide(m, now, actions);
}

void Dispatcher::device_back(uint32_t device, TimeNs now, Actions& actions) {
  if (!book_.is_closed(device)) return;
  book_.open(device, now);
  if (draining_) return;
  for (uint32_t m = 0; m < queues_.size(); ++m) decide(m, now, actions);
}

}  // namespace heddle
