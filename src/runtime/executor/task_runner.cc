#include "task_runner.h"

#include <algorithm>

#include "threads/guarded.h"

namespace heddle {
namespace {

constexpr int32_t kTasksPerPoll = 4096;  // tasks that a thread runs between two checks of the deadline

}  // namespace

void TaskRunner::enqueue(RequestSlot& slot, int32_t task, Local& local) {
  const int32_t id = slot.index * stride_ + task;
  const Action action = slot.program->tasks[static_cast<size_t>(task)].action;
  // Another rank waits for what is sent, whatever became of it.
  const bool instant = action == Action::kInstant || (stopped(slot) && action != Action::kSend);
  (instant ? local.instant : local.ready).push_back(id);
}

// Enqueues successors whose last input this was. Release and acquire on the count make all inputs visible to
// their thread.
void TaskRunner::complete(int32_t id, Local& local) {
  RequestSlot& slot = slot_of(id);
  const auto task = static_cast<size_t>(id % stride_);
  const Program& program = *slot.program;
  if (tracks_memory_) {
    for (int32_t residency : program.releases[task]) release_residency(slot, residency);
  }
  if (setup_.transport != nullptr) send_signals(slot, task);
  const auto successors = program.successors[task];
  for (int32_t next : successors) {
    if (slot.pending[static_cast<size_t>(next)].fetch_sub(1, std::memory_order_acq_rel) == 1)
      enqueue(slot, next, local);
  }
  if (successors.empty() && slot.sinks_left.fetch_sub(1, std::memory_order_acq_rel) == 1)
    local.ended.push_back(slot.index);
}

void TaskRunner::run_segment(RequestSlot& slot, const Task& task) {
  const auto segment = static_cast<size_t>(task.segment);
  const auto id = static_cast<int32_t>(&task - slot.program->tasks.data());
  Status status = run_guarded([&]() -> Status {
    if (setup_.issuer != nullptr) HEDDLE_RETURN_IF_ERROR(setup_.issuer->before_run(slot.index, id));
    HEDDLE_RETURN_IF_ERROR(setup_.compiled[segment]->run(slot.instance));
    return setup_.issuer != nullptr ? setup_.issuer->after_run(slot.index, id) : Status();
  });
  if (status.ok()) return;
  const Segment& s = setup_.plan->segments[segment];
  fail(slot, std::move(status).error().with_context("segment '" + s.name + "' on device '" +
                                                    setup_.cluster->device(s.device).name + "'"));
}

void TaskRunner::enqueue_copies(RequestSlot& slot, int32_t task) {
  Status status = run_guarded([&] { return setup_.issuer->enqueue(slot.index, task); });
  if (!status.ok()) fail(slot, std::move(status).error());
}

void TaskRunner::open_gate(int32_t segment) {
  Local local;
  engaged_.fetch_add(1, std::memory_order_acq_rel);
  local.now = now_ns();
  const int32_t task = gate_task_[static_cast<size_t>(segment)];
  RequestSlot& slot = *slots_.front();
  if (slot.pending[static_cast<size_t>(task)].fetch_sub(1, std::memory_order_acq_rel) == 1)
    enqueue(slot, task, local);
  drain(local);
  engaged_.fetch_sub(1, std::memory_order_acq_rel);
}

// After a stop, tasks pass through without work. Every count reaches zero, so the request ends normally.
void TaskRunner::run_instant(int32_t id, Local& local) {
  RequestSlot& slot = slot_of(id);
  const auto index = static_cast<size_t>(id % stride_);
  const Task& task = slot.program->tasks[index];
  slot.start_ns[index] = local.now;
  // Memory is counted even after a failure: what follows gives it back.
  if (take_memory(slot, static_cast<int32_t>(index)) && task.segment >= 0 && !stopped(slot))
    run_segment(slot, task);
  if (!stopped(slot) && task.segment < 0 && task.enqueue != Enqueue::kNothing)
    enqueue_copies(slot, static_cast<int32_t>(index));
  if (task.segment >= 0 || task.enqueue != Enqueue::kNothing) local.now = now_ns();
  slot.finish_ns[index] = local.now;
  complete(id, local);
}

void TaskRunner::run_blocking(int32_t id, Local& local, int64_t previous_finish_ns) {
  RequestSlot& slot = slot_of(id);
  const auto index = static_cast<size_t>(id % stride_);
  const Task& task = slot.program->tasks[index];
  const int64_t start = now_ns();
  slot.start_ns[index] = start;
  // The time of a hand-over includes the delay until this idle worker noticed it.
  for (int32_t transfer : slot.program->handovers[index]) {
    const auto t = static_cast<size_t>(transfer);
    // The segments of a stage may each receive it.
    if (slot.start_ns[t] >= previous_finish_ns)
      std::atomic_ref(slot.finish_ns[t]).store(start, std::memory_order_relaxed);
  }
  if (task.segment >= 0 && take_memory(slot, static_cast<int32_t>(index)) && !stopped(slot))
    run_segment(slot, task);
  else if (task.segment < 0 && !stopped(slot))
    enqueue_copies(slot, static_cast<int32_t>(index));  // the end of a request with others in flight
  local.now = now_ns();
  slot.finish_ns[index] = local.now;
  if (!setup_.ordered) local.finished.push_back(id);
  complete(id, local);
}

// Runs everything that follows from this thread's finished tasks. Other threads are woken only at the end.
void TaskRunner::drain(Local& local) {
  do {
    while (!local.instant.empty()) {
      const int32_t id = local.instant.back();
      local.instant.pop_back();
      run_instant(id, local);
      if (++local.polled >= kTasksPerPoll) {
        local.polled = 0;
        if (&local == &caller_) poll(stream_->deadline);
      }
    }
    while (!local.ended.empty()) {
      const int32_t slot = local.ended.back();
      local.ended.pop_back();
      end_request(*slots_[static_cast<size_t>(slot)], local);
    }
    flush(local);
  } while (!local.instant.empty() || !local.ended.empty());
}

void TaskRunner::flush(Local& local) {
  if (!setup_.ordered) return arbitrate(local);
  for (int32_t id : local.ready) dispatch(id, local.now);
  local.ready.clear();
}

// Pipelined: on each resource the oldest request's task goes first. A task that cannot start yet reserves its
// resources against younger ones, so that a device with many cores is not starved by single-core devices.
void TaskRunner::arbitrate(Local& local) {
  if (local.ready.empty() && local.finished.empty()) return;
  const std::lock_guard lock(arbiter_mutex_);
  for (int32_t id : local.finished) {
    for (int32_t r : slot_of(id).program->resources[static_cast<size_t>(id % stride_)])
      busy_[static_cast<size_t>(r)] = 0;
  }
  for (int32_t id : local.ready) {
    const Waiting w{slot_of(id).request, id % stride_, id};
    waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), w), w);
  }
  local.finished.clear();
  local.ready.clear();
  size_t kept = 0;
  for (const Waiting& w : waiting_) {
    const auto resources = slot_of(w.id).program->resources[static_cast<size_t>(w.task)];
    const bool free = std::all_of(resources.begin(), resources.end(), [&](int32_t r) {
      return busy_[static_cast<size_t>(r)] == 0 && reserved_[static_cast<size_t>(r)] == 0;
    });
    // After a stop another rank still waits for sends, and nothing else is running.
    const bool passes =
        stopped() && slot_of(w.id).program->tasks[static_cast<size_t>(w.task)].action == Action::kSend;
    if (free || passes) {
      for (int32_t r : resources) busy_[static_cast<size_t>(r)] = 1;
      dispatch(w.id, local.now);
      continue;
    }
    for (int32_t r : resources) {
      if (reserved_[static_cast<size_t>(r)] == 0) reserved_list_.push_back(r);
      reserved_[static_cast<size_t>(r)] = 1;
    }
    waiting_[kept++] = w;
  }
  waiting_.resize(kept);
  for (int32_t r : reserved_list_) reserved_[static_cast<size_t>(r)] = 0;
  reserved_list_.clear();
}

void TaskRunner::dispatch(int32_t id, int64_t now) {
  RequestSlot& slot = slot_of(id);
  const auto index = static_cast<size_t>(id % stride_);
  const Task& task = slot.program->tasks[index];
  if (task.action == Action::kBlocking) {
    workers_[static_cast<size_t>(task.worker)]->box.post(id);
    return;
  }
  slot.start_ns[index] = now;
  if (task.action == Action::kSend) return post_send(slot, task.message, id, static_cast<int32_t>(index));
  if (!take_memory(slot, static_cast<int32_t>(index))) now -= task.duration_ns;  // failed: due at once
  add_due({now + task.duration_ns, id});
}

bool TaskRunner::take_memory(RequestSlot& slot, int32_t task) {
  if (!tracks_memory_) return true;
  bool fits = true;
  for (int32_t s : slot.program->takes[static_cast<size_t>(task)]) {
    const Residency& residency = slot.program->residencies[static_cast<size_t>(s)];
    const auto pool = static_cast<size_t>(residency.pool);
    const int64_t used =
        pool_used_[pool].fetch_add(residency.bytes, std::memory_order_relaxed) + residency.bytes;
    int64_t peak = pool_peak_[pool].load(std::memory_order_relaxed);
    while (used > peak && !pool_peak_[pool].compare_exchange_weak(peak, used, std::memory_order_relaxed)) {
    }
    const int64_t limit = setup_.pool_limit[pool];
    if (limit <= 0 || used <= limit) continue;
    const Step& step =
        setup_.plan->steps[static_cast<size_t>(slot.program->tasks[static_cast<size_t>(task)].plan_step)];
    const Segment& segment = setup_.plan->segments[step.segment.index()];
    fail(slot, infeasible("out of memory: segment '" + segment.name + "' needs " +
                          std::to_string(residency.bytes) + " more bytes on device '" +
                          setup_.cluster->device(step.to).name + "', where tensors would then take " +
                          std::to_string(used) + " of " + std::to_string(limit)));
    fits = false;
  }
  return fits;
}

void TaskRunner::release_residency(RequestSlot& slot, int32_t residency) {
  if (slot.readers[static_cast<size_t>(residency)].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const Residency& s = slot.program->residencies[static_cast<size_t>(residency)];
  pool_used_[static_cast<size_t>(s.pool)].fetch_sub(s.bytes, std::memory_order_relaxed);
}

void TaskRunner::fail(RequestSlot& slot, Error error) {
  if (!intake_) return fail(std::move(error));
  const std::lock_guard lock(stream_mutex_);
  if (!slot.error) slot.error.emplace(std::move(error));
  slot.failed.store(true, std::memory_order_release);
}

void TaskRunner::fail(Error error) {
  {
    const std::lock_guard lock(stream_mutex_);
    if (!error_) error_.emplace(std::move(error));
  }
  stop_.store(true, std::memory_order_release);
  caller_box_.nudge();
  if (home_ >= 0) workers_[static_cast<size_t>(home_)]->box.nudge();
}

}  // namespace heddle
