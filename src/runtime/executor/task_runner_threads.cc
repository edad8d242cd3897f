// The task runner's threads (workers, the clock, and run()'s thread, which plays one of them) and the stream of
// requests.
#include <algorithm>

#include "heddle/base/sync.h"
#include "heddle/runtime/affinity.h"
#include "task_runner.h"

namespace heddle {
namespace {

constexpr int64_t kPollNs = 20'000'000;     // interval at which a sleeping caller checks its deadline
constexpr int64_t kClockSpinNs = 120'000;   // sleeps overshoot by some 60 us (timer slack); spin the rest
constexpr int64_t kIdleNs = 1'000'000'000;  // longest sleep of a worker; mail ends it

void sleep_until_ns(int64_t when_ns) {
  while (true) {
    const int64_t left = when_ns - now_ns();
    if (left <= 0) return;
    if (left > kClockSpinNs)
      sleep_ns(left - kClockSpinNs);
    else
      relax_cpu();
  }
}

}  // namespace

TaskRunner::TaskRunner(TaskRunnerSetup setup)
    : setup_(std::move(setup)), pool_used_(setup_.pool_limit.size()), pool_peak_(setup_.pool_limit.size()) {
  prepare_slots();
  if (setup_.close_gates) {
    closed_.assign(setup_.compiled.size(), false);
    gate_task_.assign(setup_.compiled.size(), -1);
    const auto& tasks = slots_.front()->program->tasks;
    for (size_t t = 0; t < tasks.size(); ++t) {
      if (tasks[t].segment >= 0) gate_task_[static_cast<size_t>(tasks[t].segment)] = static_cast<int32_t>(t);
    }
  }
  prepare_workers();
  reserve(caller_);
  size_t tasks = 0;
  for (const auto& slot : slots_) tasks += slot->program->tasks.size();
  due_.reserve(tasks);
  waiting_.reserve(tasks);
  int32_t resources = 0;
  for (const Program& program : setup_.programs) {
    for (int32_t r : program.resources.items) resources = std::max(resources, r + 1);
  }
  busy_.assign(static_cast<size_t>(resources), 0);
  reserved_.assign(static_cast<size_t>(resources), 0);
  reserved_list_.reserve(static_cast<size_t>(resources));
}

void TaskRunner::prepare_slots() {
  for (const Program& program : setup_.programs)
    stride_ = std::max(stride_, static_cast<int32_t>(program.tasks.size()));
  int32_t next_tag = 1;
  for (size_t i = 0; i < setup_.slot_lane.size(); ++i) {
    auto slot = std::make_unique<RequestSlot>();
    slot->program = &setup_.programs[static_cast<size_t>(setup_.slot_lane[i])];
    slot->index = static_cast<int>(i);
    slot->instance = setup_.slot_instance[i];
    const size_t n = slot->program->tasks.size();
    slot->pending = std::make_unique<std::atomic<int32_t>[]>(n);
    slot->readers = std::make_unique<std::atomic<int32_t>[]>(slot->program->residencies.size());
    slot->start_ns.resize(n);
    slot->finish_ns.resize(n);
    slot->steps.resize(setup_.plan->steps.size());
    slot->receives_posted = slot->program->receives.size();
    slot->first_tag = next_tag;
    next_tag += slot->program->messages;
    tracks_memory_ |= !slot->program->residencies.empty();
    slots_.push_back(std::move(slot));
  }
  end_tag_ = next_tag;
}

void TaskRunner::prepare_workers() {
  for (const auto& cores : setup_.worker_cores) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->cores = cores;
  }
  int used = 0;
  int64_t last_step = -1;
  for (const Program& program : setup_.programs) {
    for (const Task& task : program.tasks) {
      timed_ |= task.action == Action::kTimed;
      if (task.action != Action::kBlocking) continue;
      Worker& worker = *workers_[static_cast<size_t>(task.worker)];
      used += worker.used ? 0 : 1;
      worker.used = true;
      if (task.plan_step > last_step) {
        last_step = task.plan_step;
        home_ = task.worker;
      }
    }
  }
  // run()'s thread plays the worker that ends a request, which saves the last wake-up. It cannot if it is the
  // clock, or if requests overlap.
  if (!setup_.ordered && used > 1) home_ = -1;
  if (timed_ || setup_.transport != nullptr) home_ = -1;
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = *workers_[i];
    if (!worker.used) continue;
    worker.alone = !worker.cores.empty();
    for (size_t j = 0; j < workers_.size(); ++j) {
      if (j == i || !workers_[j]->used) continue;
      for (int core : workers_[j]->cores) {
        if (std::find(worker.cores.begin(), worker.cores.end(), core) != worker.cores.end())
          worker.alone = false;
      }
    }
    // From the request's start, a core is idle until its first user.
    worker.spin_first = worker.alone;
    if (static_cast<int>(i) != home_) worker.thread = std::thread([this, i] { worker_main(i); });
  }
}

void TaskRunner::reserve(Local& local) const {
  const size_t tasks = static_cast<size_t>(stride_) * slots_.size();
  local.instant.reserve(tasks);
  local.ready.reserve(tasks);
  local.finished.reserve(tasks);
  local.ended.reserve(slots_.size());
}

TaskRunner::~TaskRunner() {
  quit_.store(true, std::memory_order_release);
  for (const auto& worker : workers_) {
    if (!worker->thread.joinable()) continue;
    worker->box.nudge();
    worker->thread.join();
  }
}

int64_t TaskRunner::spin_ns(const Worker& worker, const Task* last) const {
  const bool free = setup_.ordered ? (last != nullptr ? last->spin_after : worker.spin_first) : worker.alone;
  if (!free || done_.load(std::memory_order_acquire)) return 0;
  return static_cast<int64_t>(setup_.spin_us * 1000);
}

void TaskRunner::worker_main(size_t index) {
  Worker& worker = *workers_[index];
  const AffinityGuard bound(worker.cores);
  Local local;
  reserve(local);
  const Task* last = nullptr;
  while (!quit_.load(std::memory_order_acquire)) {
    auto mail = worker.box.take(last != nullptr ? spin_ns(worker, last) : 0, kIdleNs);
    // A nudge announces a request: spin, so as to be awake for the first task.
    if (mail.nudged) mail = worker.box.take(spin_ns(worker, nullptr), 0);
    const int64_t previous = local.now;
    last = nullptr;
    if (mail.task == Mailbox::kNothing) continue;
    engaged_.fetch_add(1, std::memory_order_acq_rel);
    last = &slot_of(mail.task).program->tasks[static_cast<size_t>(mail.task % stride_)];
    run_blocking(mail.task, local, previous);
    drain(local);
    engaged_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

void TaskRunner::poll(const Deadline& deadline) {
  if (stopped() || !deadline.should_stop()) return;
  fail(cancelled_error(deadline.cancelled() ? "the run was cancelled"
                                            : "the run's deadline passed before it was done"));
}

void TaskRunner::serve(const Deadline& deadline) {
  if (setup_.transport != nullptr) return serve_ranks(deadline);
  if (home_ >= 0) return serve_as_worker(*workers_[static_cast<size_t>(home_)], deadline);
  serve_clock(deadline);
}

void TaskRunner::serve_as_worker(Worker& worker, const Deadline& deadline) {
  const Task* last = nullptr;
  while (!done_.load(std::memory_order_acquire)) {
    poll(deadline);
    if (stopped()) drain_stopped(caller_);
    const auto mail = worker.box.take(spin_ns(worker, last), kPollNs);
    if (mail.task == Mailbox::kNothing) continue;
    const int64_t previous = last == nullptr ? 0 : caller_.now;
    last = &slot_of(mail.task).program->tasks[static_cast<size_t>(mail.task % stride_)];
    run_blocking(mail.task, caller_, previous);
    drain(caller_);
  }
}

void TaskRunner::serve_clock(const Deadline& deadline) {
  while (!done_.load(std::memory_order_acquire)) {
    poll(deadline);
    if (stopped()) drain_stopped(caller_);
    const int64_t next = serve_due(caller_);
    if (done_.load(std::memory_order_acquire)) return;
    const int64_t left = next - now_ns();
    if (left > kClockSpinNs) {
      caller_box_.take(0, std::min(kPollNs, left - kClockSpinNs));
      continue;
    }
    // Spin: no other thread needs this core for so short a time. Mail means an earlier due time or the end.
    while (now_ns() < next && !caller_box_.has_mail()) relax_cpu();
    caller_box_.take(0, 0);
  }
}

// Finishes due tasks; returns the next due time, or one far in the future.
int64_t TaskRunner::serve_due(Local& local) {
  while (true) {
    Due due{};
    {
      const std::lock_guard lock(clock_mutex_);
      if (due_.empty()) return now_ns() + kPollNs * 2;
      due = due_.front();
      if (due.at_ns > now_ns() && !stopped()) return due.at_ns;
      std::pop_heap(due_.begin(), due_.end());
      due_.pop_back();
    }
    RequestSlot& slot = slot_of(due.id);
    const auto index = static_cast<size_t>(due.id % stride_);
    const Task& task = slot.program->tasks[index];
    if (!stopped(slot) && task.segment >= 0) run_segment(slot, task);
    local.now = now_ns();
    slot.finish_ns[index] = local.now;
    if (!setup_.ordered) local.finished.push_back(due.id);
    complete(due.id, local);
    drain(local);
  }
}

void TaskRunner::add_due(Due due) {
  bool first = false;
  {
    const std::lock_guard lock(clock_mutex_);
    due_.push_back(due);
    std::push_heap(due_.begin(), due_.end());
    first = due_.front().id == due.id;
  }
  if (first) caller_box_.nudge();
}

// After a stop, tasks that wait for resources pass through.
void TaskRunner::drain_stopped(Local& local) {
  {
    const std::lock_guard lock(arbiter_mutex_);
    local.now = now_ns();
    for (const Waiting& w : waiting_) {
      const Task& task = slot_of(w.id).program->tasks[static_cast<size_t>(w.task)];
      if (task.action == Action::kSend)
        dispatch(w.id, local.now);  // another rank waits for it
      else
        local.instant.push_back(w.id);
    }
    waiting_.clear();
  }
  drain(local);
}

void TaskRunner::start_request(RequestSlot& slot, Local& local, int64_t request) {
  const Program& program = *slot.program;
  slot.request = request;
  if (stream_->fill) stream_->fill(request, slot.index);
  for (size_t i = 0; i < program.pending.size(); ++i)
    slot.pending[i].store(program.pending[i], std::memory_order_relaxed);
  for (size_t i = 0; i < program.residencies.size(); ++i)
    slot.readers[i].store(program.residencies[i].readers, std::memory_order_relaxed);
  slot.sinks_left.store(program.sinks, std::memory_order_relaxed);
  if (setup_.close_gates) {
    setup_.close_gates(closed_);
    for (size_t s = 0; s < closed_.size(); ++s) {
      if (closed_[s])
        slot.pending[static_cast<size_t>(gate_task_[s])].fetch_add(1, std::memory_order_relaxed);
    }
  }
  if (setup_.transport != nullptr) open_slot(slot);
  const int64_t start = request == 0 ? stream_->start_at_ns : 0;
  if (start > 0) sleep_until_ns(start);
  slot.begin_ns = local.now = start > 0 ? start : now_ns();
  if (setup_.issuer != nullptr) {
    Status begun = setup_.issuer->begin_request(slot.index, slot.begin_ns);
    if (!begun.ok()) fail(slot, std::move(begun).error());
  }
  // In reverse, so that the stack serves them in the plan's order.
  for (size_t i = program.roots.size(); i-- > 0;) {
    const int32_t segment = program.tasks[static_cast<size_t>(program.roots[i])].segment;
    if (segment < 0 || closed_.empty() || !closed_[static_cast<size_t>(segment)])
      enqueue(slot, program.roots[i], local);
  }
  if (setup_.gates_closed) setup_.gates_closed(slot.begin_ns);
  if (program.tasks.empty()) local.ended.push_back(slot.index);
}

void TaskRunner::end_request(RequestSlot& slot, Local& local) {
  const Program& program = *slot.program;
  for (int32_t residency : program.held) release_residency(slot, residency);
  if (setup_.issuer != nullptr) {
    Status ended = setup_.issuer->end_request(slot.index, stopped(slot), slot.start_ns, slot.finish_ns);
    if (!ended.ok()) fail(slot, std::move(ended).error());
  }
  const auto us = [&](int64_t ns) { return static_cast<double>(ns - slot.begin_ns) / 1000; };
  int64_t last = slot.begin_ns;
  for (size_t i = 0; i < program.tasks.size(); ++i) {
    const Task& task = program.tasks[i];
    last = std::max(last, slot.finish_ns[i]);
    if (task.plan_step < 0) continue;
    // Only the sending rank knows when an arriving transfer began.
    slot.steps[static_cast<size_t>(task.plan_step)] = {task.arrival ? -1 : us(slot.start_ns[i]),
                                                       us(slot.finish_ns[i])};
  }
  slot.timing = {.request = slot.request,
                 .slot = slot.index,
                 .lane = program.lane,
                 .start_us = static_cast<double>(slot.begin_ns - stream_begin_ns_) / 1000,
                 .latency_us = us(last),
                 .steps = slot.steps};
  if (intake_) return setup_.transport != nullptr ? post_end(slot) : end_intake_request(slot);
  if (!stopped() && stream_->done) stream_->done(slot.timing);
  int64_t next = -1;
  bool over = false;
  // With several ranks, a slot's next request starts after all ranks have ended this one.
  const bool together = setup_.transport != nullptr && goes_on(slot);
  {
    const std::lock_guard lock(stream_mutex_);
    latencies_us_[static_cast<size_t>(slot.request)] = slot.timing.latency_us;
    if (setup_.transport == nullptr && issued_ < stream_->requests && !error_)
      next = issued_++;
    else if (!together)
      over = --active_ == 0;
  }
  if (together) post_end(slot);
  if (next >= 0) start_request(slot, local, next);
  if (over) end_stream();
}

void TaskRunner::end_stream() {
  done_.store(true, std::memory_order_release);
  caller_box_.nudge();
  if (home_ >= 0) workers_[static_cast<size_t>(home_)]->box.nudge();
}

// The first requests go to the slots in order, which follows the lanes' shares.
void TaskRunner::begin_stream(Local& local) {
  int64_t first = 0;
  {
    const std::lock_guard lock(stream_mutex_);
    active_ = static_cast<int>(std::min<int64_t>(stream_->requests, static_cast<int64_t>(slots_.size())));
    issued_ = active_;
    first = active_;
  }
  nudge_spinners();
  for (int64_t i = 0; i < first; ++i) start_request(*slots_[static_cast<size_t>(i)], local, i);
  drain(local);
}

void TaskRunner::nudge_spinners() {
  if (setup_.spin_us <= 0) return;
  for (const auto& worker : workers_) {
    if (worker->thread.joinable() && worker->spin_first) worker->box.nudge();
  }
}

void TaskRunner::reset_stream(const StreamOptions& options) {
  stream_ = &options;
  error_.reset();
  for (auto& used : pool_used_) used.store(0, std::memory_order_relaxed);
  std::fill(busy_.begin(), busy_.end(), 0);
  stop_.store(false, std::memory_order_release);
  done_.store(false, std::memory_order_release);
  sends_under_way_.clear();
  held_.clear();
  awaited_.clear();
}

Result<StreamResult> TaskRunner::run(const StreamOptions& options) {
  if (options.requests < 1)
    return invalid_input("a stream needs at least one request, not " + std::to_string(options.requests));
  reset_stream(options);
  latencies_us_.assign(static_cast<size_t>(options.requests), 0);
  // The other ranks of a request must learn why this one does not take part: it starts, and stops at once.
  if (setup_.transport == nullptr) poll(options.deadline);
  if (error_) {
    done_.store(true, std::memory_order_release);
    return *error_;
  }
  {
    const AffinityGuard bound(home_ >= 0 ? std::span<const int>(workers_[static_cast<size_t>(home_)]->cores)
                                         : std::span<const int>());
    stream_begin_ns_ = options.start_at_ns > 0 ? options.start_at_ns : now_ns();
    begin_stream(caller_);
    serve(options.deadline);
    // Workers may still be giving resources back; wait, so that the next stream finds them free.
    while (engaged_.load(std::memory_order_acquire) != 0) relax_cpu();
  }
  const std::lock_guard lock(stream_mutex_);
  if (error_) return *error_;
  return StreamResult{latencies_us_};
}

}  // namespace heddle
