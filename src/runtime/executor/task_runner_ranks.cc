// Several ranks: run()'s thread moves messages between ranks, serves the clock, and starts arrivals.
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>

#include "task_runner.h"

namespace heddle {
namespace {

// Number of receives posted ahead, over all slots, in the plan's order. They always include the earliest
// message that any request is missing, so there is no deadlock. A larger number makes every look at the
// transport slower.
constexpr size_t kPostedAhead = 64;
constexpr int64_t kClockLeadNs =
    20'000;  // a sleep ends this long before a due time; the thread yields for the rest

constexpr int64_t kLongestNapNs = 1'000'000;  // of a server without requests

// Sets the timer slack to 1 ns; naps of microseconds would otherwise end 50 us late.
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

void TaskRunner::post_send(RequestSlot& slot, int32_t message, int32_t id, int32_t task) {
  {
    const std::lock_guard lock(outbox_mutex_);
    outbox_.push_back({slot.index, message, id, task});
  }
  caller_box_.nudge();
}

void TaskRunner::send_signals(RequestSlot& slot, size_t task) {
  for (const int32_t message : slot.program->signals[task])
    post_send(slot, message, -1, static_cast<int32_t>(task));
}

// Constants, since their memory must outlive the request: 0: the slot may take its next request; 1: it stops.
constexpr std::array<std::byte, 2> kEndWords = {std::byte{0}, std::byte{1}};

// Request i uses slot i mod slots on every rank, whichever slot ends first.
bool TaskRunner::goes_on(const RequestSlot& slot) const {
  return slot.request + static_cast<int64_t>(slots_.size()) < stream_->requests;
}

// Message tokens are task ids; the slots' end tokens follow them.
int64_t TaskRunner::end_token(const RequestSlot& slot) const {
  return static_cast<int64_t>(stride_) * static_cast<int64_t>(slots_.size()) + slot.index;
}

void TaskRunner::open_slot(RequestSlot& slot) {
  slot.receives_posted = slot.awaited = 0;
  slot.ends_posted = slot.ending = false;
  slot.ends = 0;
  slot.end_words.assign(static_cast<size_t>(setup_.transport->size()), kEndWords[0]);
}

void TaskRunner::post_end(RequestSlot& slot) { post_send(slot, kEnded, -1, -1); }

// With the last rank's end message the slot is free everywhere. All ranks get the same messages, so that
// either all start the next request or none does.
void TaskRunner::end_arrived(RequestSlot& slot) {
  if (++slot.ends < setup_.transport->size()) return;
  slot.ending = false;
  if (std::find(slot.end_words.begin(), slot.end_words.end(), kEndWords[1]) == slot.end_words.end()) {
    start_request(slot, caller_, slot.request + static_cast<int64_t>(slots_.size()));
    return drain(caller_);
  }
  bool over = false;
  {
    const std::lock_guard lock(stream_mutex_);
    over = --active_ == 0;
  }
  if (over) end_stream();
}

// The other ranks are unreachable: stop waiting for them, so that the request ends here.
void TaskRunner::lose_ranks(Error error) {
  ranks_lost_ = true;
  if (intake_) {
    setup_.transport->raise_alarm(error.to_string());
    setup_.transport->abandon();
    intake_stop_.cancel();
  }
  fail(std::move(error));
}

void TaskRunner::message_done(int32_t id) {
  RequestSlot& slot = slot_of(id);
  const auto index = static_cast<size_t>(id % stride_);
  caller_.now = now_ns();
  if (slot.program->tasks[index].action == Action::kSend) {
    slot.finish_ns[index] = caller_.now;
    if (!setup_.ordered) caller_.finished.push_back(id);
    complete(id, caller_);
  } else if (slot.pending[index].fetch_sub(1, std::memory_order_acq_rel) == 1) {
    enqueue(slot, static_cast<int32_t>(index), caller_);
  }
  drain(caller_);
}

Status TaskRunner::send_message(const Outgoing& o) {
  Transport& transport = *setup_.transport;
  RequestSlot& slot = *slots_[static_cast<size_t>(o.slot)];
  if (o.message == kStarted) return start_on_ranks(slot);
  if (o.message == kEnded && intake_) return end_here(slot);
  if (o.message == kEnded) {
    const std::byte& word = kEndWords[stopped() ? 1 : 0];
    slot.ending = true;
    slot.end_words[static_cast<size_t>(transport.rank())] = word;
    arrived_.push_back(end_token(slot));
    for (int to = 0; to < transport.size(); ++to) {
      if (to == transport.rank()) continue;
      HEDDLE_RETURN_IF_ERROR(transport.send(to, end_tag_ + slot.index, {&word, 1}, Transport::kNoToken));
    }
    return {};
  }
  const auto index = static_cast<size_t>(o.message);
  const Message& m = slot.program->sends[index];
  return transport.send(m.peer, slot.first_tag + m.number,
                        setup_.send_memory[static_cast<size_t>(o.slot)][index],
                        o.id >= 0 ? o.id : Transport::kNoToken);
}

// An accelerator's task counts as done when it is enqueued; other ranks are notified when it has finished. That holds
// after a failure, too: what is sent then is not used, but work in flight still writes it.
bool TaskRunner::may_go(const Outgoing& o) {
  if (setup_.issuer == nullptr || o.message < 0) return true;
  auto reached = setup_.issuer->reached(o.slot, o.task);
  if (reached.ok()) return *reached;
  fail(*slots_[static_cast<size_t>(o.slot)], std::move(reached).error());
  return true;
}

Status TaskRunner::receive_messages(RequestSlot& slot) {
  const auto& receives = slot.program->receives;
  const size_t ahead = std::max<size_t>(kPostedAhead / slots_.size(), 1);
  while (slot.receives_posted < receives.size() && slot.awaited < ahead) {
    const size_t index = slot.receives_posted++;
    const Message& m = receives[index];
    const int32_t id = slot.index * stride_ + m.task;
    awaited_.push_back(id);
    ++slot.awaited;
    HEDDLE_RETURN_IF_ERROR(
        setup_.transport->receive(m.peer, slot.first_tag + m.number,
                                  setup_.receive_memory[static_cast<size_t>(slot.index)][index], id));
  }
  return {};
}

Status TaskRunner::receive_ends(RequestSlot& slot) {
  if (intake_ || slot.ends_posted || slot.end_words.empty() || !goes_on(slot)) return {};
  slot.ends_posted = true;
  Transport& transport = *setup_.transport;
  for (int from = 0; from < transport.size(); ++from) {
    if (from == transport.rank()) continue;
    HEDDLE_RETURN_IF_ERROR(transport.receive(
        from, end_tag_ + slot.index, {&slot.end_words[static_cast<size_t>(from)], 1}, end_token(slot)));
  }
  return {};
}

Status TaskRunner::move_messages(std::vector<int64_t>& done) {
  {
    const std::lock_guard lock(outbox_mutex_);
    sending_.swap(outbox_);
  }
  for (const Outgoing& o : sending_) {
    if (o.id >= 0) sends_under_way_.push_back(o.id);
  }
  if (!held_.empty()) {
    sending_.insert(sending_.begin(), held_.begin(), held_.end());
    held_.clear();
  }
  size_t gone = 0;
  for (const Outgoing& o : sending_) {
    if (!may_go(o)) {
      held_.push_back(o);
      continue;
    }
    ++gone;
    HEDDLE_RETURN_IF_ERROR(send_message(o));
  }
  sending_.resize(gone);  // the number is enough; the order is irrelevant
  for (const auto& slot : slots_) {
    HEDDLE_RETURN_IF_ERROR(receive_messages(*slot));
    HEDDLE_RETURN_IF_ERROR(receive_ends(*slot));
  }
  return setup_.transport->progress(done);
}

// Counts every message as done.
void TaskRunner::give_up_messages() {
  {
    const std::lock_guard lock(outbox_mutex_);
    for (const Outgoing& o : outbox_) {
      if (o.id >= 0) sends_under_way_.push_back(o.id);
    }
    sending_.insert(sending_.end(), outbox_.begin(), outbox_.end());
    outbox_.clear();
    held_.clear();
  }
  // These include what was to be sent when the ranks were lost.
  for (const Outgoing& o : sending_) {
    RequestSlot& slot = *slots_[static_cast<size_t>(o.slot)];
    if (o.message == kEnded) slot.ending = !intake_ || slot.phase == Phase::kRuns;
    if (o.message == kStarted && slot.phase == Phase::kWaits) end_intake_request(slot);
  }
  for (const auto& slot : slots_) {
    if (!slot->ending) continue;
    if (intake_) {
      end_on_ranks(*slot);
      continue;
    }
    // No other rank's end message will come, and there is no next request.
    slot->ends = setup_.transport->size() - 1;
    slot->end_words.front() = kEndWords[1];
    if (std::find(arrived_.begin(), arrived_.end(), end_token(*slot)) == arrived_.end())
      arrived_.push_back(end_token(*slot));
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

void TaskRunner::message_arrived(int32_t id) {
  RequestSlot& slot = slot_of(id);
  const bool sent = slot.program->tasks[static_cast<size_t>(id % stride_)].action == Action::kSend;
  auto& list = sent ? sends_under_way_ : awaited_;
  const auto found = std::find(list.begin(), list.end(), id);
  if (found != list.end()) {
    *found = list.back();
    list.pop_back();
    if (!sent) --slot.awaited;
  }
  message_done(id);
}

// True if any message moved.
bool TaskRunner::exchange_messages() {
  arrived_.clear();
  sending_.clear();
  if (!ranks_lost_) {
    Status moved = move_messages(arrived_);
    if (!moved.ok()) lose_ranks(std::move(moved).error());
  }
  if (ranks_lost_) give_up_messages();
  const int64_t first_end = end_token(*slots_.front());
  for (const int64_t token : arrived_) {
    if (token < first_end)
      message_arrived(static_cast<int32_t>(token));
    else if (intake_)
      intake_message_arrived(token - first_end);
    else
      end_arrived(*slots_[static_cast<size_t>(token - first_end)]);
  }
  return !arrived_.empty() || !sending_.empty();
}

void TaskRunner::serve_ranks(const Deadline& deadline) {
  const PreciseNaps precise;
  Transport& transport = *setup_.transport;
  int64_t idle_since = now_ns();
  while (!done_.load(std::memory_order_acquire)) {
    poll(deadline);
    if (intake_) {
      Status there = watch_ranks();
      if (!there.ok()) lose_ranks(std::move(there).error());
    }
    if (!stopped() && transport.alarm()) {
      alarmed_ = true;
      fail(cancelled_error(*transport.alarm()));
    }
    if (stopped()) {
      // Other ranks can stop computing results that will not be read.
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
    const bool others_compute = engaged_.load(std::memory_order_acquire) > 0;
    const int64_t waited = now - idle_since;
    const bool serves_nobody = intake_ && running_ == 0;
    const int64_t most =
        serves_nobody ? std::min(waited / 16, kLongestNapNs) : nap_ns(waited, others_compute);
    const int64_t nap = std::min(most, next - now - kClockLeadNs);
    if (nap > 0)
      caller_box_.take(0, nap);
    else
      sched_yield();
  }
  // The last tasks may have left messages that other ranks await.
  exchange_messages();
}

}  // namespace heddle
