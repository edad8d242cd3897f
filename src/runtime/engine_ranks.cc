// Several ranks: the caller moves messages between them, keeps the clock, and starts what arrives.
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>

#include "engine.h"

namespace heddle {
namespace {

// Receives that are posted ahead, in the plan's order. The earliest message that is missing anywhere is
// always among them, so there is no deadlock; more of them cost time in every look at the transport.
constexpr size_t kPostedAhead = 64;
constexpr int64_t kClockLeadNs =
    20'000;  // a sleep ends this much before something is due; the rest is yielded

// Naps of microseconds would else end 50 us late.
class PreciseNaps {
 public:
  PreciseNaps() : before_(prctl(PR_GET_TIMERSLACK)) { prctl(PR_SET_TIMERSLACK, 1); }
  ~PreciseNaps() {
    if (before_ > 0) prctl(PR_SET_TIMERSLACK, before_);
  }
  PreciseNaps(const PreciseNaps&) = delete;
  PreciseNaps& operator=(const PreciseNaps&) = delete;

 private:
  int before_;
};

}  // namespace

void Engine::post_send(Slot& slot, int32_t message, int32_t id) {
  {
    const std::lock_guard lock(outbox_mutex_);
    outbox_.push_back({slot.index, message, id});
  }
  caller_box_.nudge();
}

void Engine::send_signals(Slot& slot, size_t task) {
  for (const int32_t message : slot.program->signals[task]) post_send(slot, message, -1);
}

void Engine::post_receives(Slot& slot) {
  slot.receives_posted = 0;
  awaited_.clear();
}

// The other ranks are out of reach: nothing is waited for any more, so that the request ends here.
void Engine::lose_ranks(Error error) {
  ranks_lost_ = true;
  fail(std::move(error));
}

void Engine::message_done(int32_t id) {
  Slot& slot = slot_of(id);
  const auto index = static_cast<size_t>(id % stride_);
  caller_.now = now_ns();
  if (slot.program->tasks[index].action == Action::kSend) {
    slot.finish_ns[index] = caller_.now;
    complete(id, caller_);
  } else if (slot.pending[index].fetch_sub(1, std::memory_order_acq_rel) == 1) {
    enqueue(slot, static_cast<int32_t>(index), caller_);
  }
  drain(caller_);
}

Status Engine::move_messages(std::vector<int64_t>& done) {
  Transport& transport = *setup_.transport;
  {
    const std::lock_guard lock(outbox_mutex_);
    sending_.swap(outbox_);
  }
  const int32_t messages = slots_.front()->program->messages;
  const auto tag = [&](const Slot& slot, const Message& m) { return 1 + slot.index * messages + m.number; };
  for (const Outgoing& o : sending_) {
    if (o.id >= 0) sends_under_way_.push_back(o.id);
  }
  for (const Outgoing& o : sending_) {
    const Slot& slot = *slots_[static_cast<size_t>(o.slot)];
    const auto index = static_cast<size_t>(o.message);
    const Message& m = slot.program->sends[index];
    HEDDLE_RETURN_IF_ERROR(transport.send(m.peer, tag(slot, m),
                                          setup_.send_memory[static_cast<size_t>(o.slot)][index],
                                          o.id >= 0 ? o.id : Transport::kNoToken));
  }
  for (const auto& slot : slots_) {
    const auto& receives = slot->program->receives;
    while (slot->receives_posted < receives.size() && awaited_.size() < kPostedAhead) {
      const size_t index = slot->receives_posted++;
      const Message& m = receives[index];
      const int32_t id = slot->index * stride_ + m.task;
      awaited_.push_back(id);
      HEDDLE_RETURN_IF_ERROR(transport.receive(
          m.peer, tag(*slot, m), setup_.receive_memory[static_cast<size_t>(slot->index)][index], id));
    }
  }
  return transport.progress(done);
}

// Counts every message as done.
void Engine::give_up_messages() {
  {
    const std::lock_guard lock(outbox_mutex_);
    for (const Outgoing& o : outbox_) {
      if (o.id >= 0) sends_under_way_.push_back(o.id);
    }
    outbox_.clear();
  }
  for (const auto& slot : slots_) {
    const auto& receives = slot->program->receives;
    for (; slot->receives_posted < receives.size(); ++slot->receives_posted)
      awaited_.push_back(slot->index * stride_ + receives[slot->receives_posted].task);
  }
  for (const auto* list : {&sends_under_way_, &awaited_})
    arrived_.insert(arrived_.end(), list->begin(), list->end());
  sends_under_way_.clear();
  awaited_.clear();
}

// True when there was something.
bool Engine::exchange_messages() {
  arrived_.clear();
  sending_.clear();
  if (!ranks_lost_) {
    Status moved = move_messages(arrived_);
    if (!moved.ok()) lose_ranks(std::move(moved).error());
  }
  if (ranks_lost_) give_up_messages();
  for (const int64_t token : arrived_) {
    const auto id = static_cast<int32_t>(token);
    const size_t task = static_cast<size_t>(id % stride_);
    auto& list = slot_of(id).program->tasks[task].action == Action::kSend ? sends_under_way_ : awaited_;
    const auto found = std::find(list.begin(), list.end(), id);
    if (found != list.end()) {
      *found = list.back();
      list.pop_back();
    }
    message_done(id);
  }
  return !arrived_.empty() || !sending_.empty();
}

void Engine::serve_ranks(const Deadline& deadline) {
  const PreciseNaps precise;
  Transport& transport = *setup_.transport;
  int64_t idle_since = now_ns();
  while (!done_.load(std::memory_order_acquire)) {
    poll(deadline);
    if (!stopped() && transport.alarm()) {
      alarmed_ = true;
      fail(Error(Code::kCancelled, *transport.alarm()));
    }
    if (stopped()) {
      // The others need not compute any more what nobody will read.
      if (!alarmed_ && !ranks_lost_) {
        alarmed_ = true;
        const std::lock_guard lock(stream_mutex_);
        transport.raise_alarm(error_ ? error_->to_string() : "stopped");
      }
      drain_stopped(caller_);
    }
    const int64_t next = serve_due(caller_);
    const bool moved = exchange_messages();
    const int64_t now = now_ns();
    if (moved || caller_box_.has_mail()) {
      caller_box_.take(0, 0);
      idle_since = now;
      continue;
    }
    const int64_t nap = std::min(nap_ns(now - idle_since), next - now - kClockLeadNs);
    if (nap > 0)
      caller_box_.take(0, nap);
    else
      sched_yield();
  }
  // The last tasks of this rank may have left something that others wait for.
  exchange_messages();
}

}  // namespace heddle
