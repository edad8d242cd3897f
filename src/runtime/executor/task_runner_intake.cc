// Requests that come one by one, each brought by a thread that waits for its end: what a server needs. They
// share the plan's devices and links as the requests of a stream do.
#include <algorithm>
#include <array>

#include "heddle/runtime/affinity.h"
#include "task_runner.h"

namespace heddle {
namespace {

constexpr int64_t kNoMore = -1;  // in place of a request's number: the slot gets no more requests
// mpirun kills all ranks a second after one of them has ended. Before that, requests in flight must fail.
constexpr int64_t kAnswerNs = 400'000'000;
constexpr int64_t kIdleAnswerNs = 5'000'000'000;  // with no request in flight

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

void TaskRunner::begin_intake() {
  reset_stream(intake_stream_);
  closing_.store(false, std::memory_order_relaxed);
  called_ns_ = 0;
  slots_closed_ = 0;
  for (const auto& slot : slots_) reserve(slot->entry);
  intake_ = true;
}

void TaskRunner::serve_intake() {
  const AffinityGuard bound(home_ >= 0 ? std::span<const int>(workers_[static_cast<size_t>(home_)]->cores)
                                       : std::span<const int>());
  serve(intake_stream_.deadline);
}

Status TaskRunner::run_request(int index) {
  RequestSlot& slot = *slots_[static_cast<size_t>(index)];
  slot.error.reset();
  slot.failed.store(false, std::memory_order_relaxed);
  slot.pending_end.store(1, std::memory_order_relaxed);
  if (setup_.transport != nullptr) {
    post_send(slot, kStarted, -1, -1);
  } else {
    engaged_.fetch_add(1, std::memory_order_acq_rel);
    start_request(slot, slot.entry, taken_in_.fetch_add(1, std::memory_order_relaxed));
    drain(slot.entry);
    engaged_.fetch_sub(1, std::memory_order_acq_rel);
  }
  slot.pending_end.wait(1, std::memory_order_acquire);
  const std::lock_guard lock(stream_mutex_);
  if (slot.error) return *slot.error;
  return error_ ? Status(*error_) : Status();
}

void TaskRunner::end_intake_request(RequestSlot& slot) {
  slot.pending_end.store(0, std::memory_order_release);
  slot.pending_end.notify_one();
}

void TaskRunner::end_intake() {
  if (setup_.transport != nullptr) {
    closing_.store(true, std::memory_order_release);
    return caller_box_.nudge();
  }
  end_stream();
  // A worker may still be giving resources back; the next stream starts clean.
  while (engaged_.load(std::memory_order_acquire) != 0) relax_cpu();
  intake_ = false;
}

// Several ranks. Rank 0 sends each request's number and inputs to the other ranks; these send their outputs
// and a report at its end. A slot is free when all ranks have reported.

int32_t TaskRunner::intake_tag(IntakeTag kind, const RequestSlot& slot) const {
  return end_tag_ + (static_cast<int32_t>(kind) + 1) * slots() + slot.index;
}

// Rank 0. The number's memory must outlive the message.
Status TaskRunner::send_number(const RequestSlot& slot, const int64_t& number) {
  Transport& transport = *setup_.transport;
  for (int to = 1; to < transport.size(); ++to) {
    HEDDLE_RETURN_IF_ERROR(transport.send(to, intake_tag(IntakeTag::kStart, slot),
                                          std::as_bytes(std::span(&number, 1)), Transport::kNoToken));
  }
  return {};
}

Status TaskRunner::await_start(RequestSlot& slot) {
  slot.missing = 1;
  return setup_.transport->receive(0, intake_tag(IntakeTag::kStart, slot), bytes_of(slot.number),
                                   end_token(slot));
}

// Rank 0. The memory of all these messages stays as it is until the other ranks have reported.
Status TaskRunner::start_on_ranks(RequestSlot& slot) {
  Transport& transport = *setup_.transport;
  const auto index = static_cast<size_t>(slot.index);
  slot.number = taken_in_.fetch_add(1, std::memory_order_relaxed);
  HEDDLE_RETURN_IF_ERROR(send_number(slot, slot.number));
  for (const PeerMemory& input : setup_.input_memory[index]) {
    HEDDLE_RETURN_IF_ERROR(
        transport.send(input.peer, intake_tag(IntakeTag::kInput, slot), input.memory, Transport::kNoToken));
  }
  slot.reports.resize(static_cast<size_t>(transport.size()));
  for (int from = 1; from < transport.size(); ++from) {
    HEDDLE_RETURN_IF_ERROR(transport.receive(
        from, end_tag_ + slot.index, bytes_of(slot.reports[static_cast<size_t>(from)]), end_token(slot)));
  }
  for (const PeerMemory& output : setup_.output_memory[index]) {
    HEDDLE_RETURN_IF_ERROR(
        transport.receive(output.peer, intake_tag(IntakeTag::kOutput, slot), output.memory, end_token(slot)));
  }
  // Besides the messages: the request's end on this rank.
  slot.missing = static_cast<size_t>(transport.size()) + setup_.output_memory[index].size();
  start_here(slot);
  return {};
}

void TaskRunner::start_here(RequestSlot& slot) {
  slot.phase = Phase::kRuns;
  ++running_;
  start_request(slot, caller_, slot.number);
  drain(caller_);
}

// The request has ended on this rank.
Status TaskRunner::end_here(RequestSlot& slot) {
  if (first()) {
    slot.ending = true;
    arrived_.push_back(end_token(slot));
    return {};
  }
  Transport& transport = *setup_.transport;
  for (const PeerMemory& output : setup_.output_memory[static_cast<size_t>(slot.index)]) {
    HEDDLE_RETURN_IF_ERROR(
        transport.send(0, intake_tag(IntakeTag::kOutput, slot), output.memory, Transport::kNoToken));
  }
  slot.reports.assign(1, {});
  EndReport& report = slot.reports.front();
  {
    const std::lock_guard lock(stream_mutex_);
    if (slot.error) {
      const std::string text = "rank " + std::to_string(transport.rank()) + " (" + transport.host_name() +
                               "): " + slot.error->to_string();
      report.code = static_cast<int32_t>(slot.error->code());
      size_t length = std::min(text.size(), report.text.size() - 1);
      while (length < text.size() && (text[length] & 0xc0) == 0x80) --length;  // whole characters of UTF-8
      std::copy_n(text.begin(), length, report.text.begin());
    }
  }
  HEDDLE_RETURN_IF_ERROR(transport.send(0, end_tag_ + slot.index, bytes_of(report), Transport::kNoToken));
  end_on_ranks(slot);
  return await_start(slot);
}

// No rank has work for the slot's request any more, or, on ranks other than 0, this one has not.
void TaskRunner::end_on_ranks(RequestSlot& slot) {
  slot.phase = Phase::kWaits;
  slot.ending = false;
  --running_;
  if (!first()) return;
  if (!ranks_lost_) {
    const std::lock_guard lock(stream_mutex_);
    for (const EndReport& report : slot.reports) {
      if (!slot.error && report.text.front() != '\0')
        slot.error.emplace(static_cast<Code>(report.code), report.text.data());
    }
  }
  end_intake_request(slot);
}

Status TaskRunner::take_intake_message(RequestSlot& slot) {
  if (--slot.missing > 0) return {};
  if (slot.phase == Phase::kRuns) {
    end_on_ranks(slot);
    return {};
  }
  if (slot.phase == Phase::kWaits && slot.number == kNoMore) {
    if (++slots_closed_ == slots()) end_stream();
    return {};
  }
  if (slot.phase == Phase::kWaits) {
    slot.phase = Phase::kStarts;
    const auto& inputs = setup_.input_memory[static_cast<size_t>(slot.index)];
    slot.missing = inputs.size();
    for (const PeerMemory& input : inputs) {
      HEDDLE_RETURN_IF_ERROR(
          setup_.transport->receive(0, intake_tag(IntakeTag::kInput, slot), input.memory, end_token(slot)));
    }
    if (slot.missing > 0) return {};
  }
  {
    const std::lock_guard lock(stream_mutex_);
    slot.error.reset();
  }
  slot.failed.store(false, std::memory_order_relaxed);
  start_here(slot);
  return {};
}

// Tokens are the slots' and, behind them, those of calls from each rank.
void TaskRunner::intake_message_arrived(int64_t number) {
  if (ranks_lost_) return;
  const int64_t caller = number - slots();
  Status taken = caller < 0 ? take_intake_message(*slots_[static_cast<size_t>(number)])
                            : call_arrived(static_cast<int>(caller));
  if (!taken.ok()) lose_ranks(std::move(taken).error());
}

// Rank 0 calls the others once, when it is to stop: only their silence shows that they have ended.
Status TaskRunner::call_ranks() {
  called_ns_ = now_ns();
  for (int other = 1; other < setup_.transport->size(); ++other) {
    HEDDLE_RETURN_IF_ERROR(send_call(other));
    HEDDLE_RETURN_IF_ERROR(await_call(other));
  }
  return {};
}

Status TaskRunner::send_call(int to) {
  return setup_.transport->send(to, intake_tag(IntakeTag::kCall, *slots_.front()), {}, Transport::kNoToken);
}

Status TaskRunner::await_call(int from) {
  return setup_.transport->receive(from, intake_tag(IntakeTag::kCall, *slots_.front()), {},
                                   end_token(*slots_.back()) + 1 + from);
}

Status TaskRunner::call_arrived(int from) {
  answered_[static_cast<size_t>(from)] = true;
  return first() ? Status() : send_call(from);
}

Status TaskRunner::watch_ranks() {
  const bool closing = closing_.load(std::memory_order_acquire);
  if (ranks_lost_) {
    if (first() ? closing : running_ == 0) end_stream();
    return {};
  }
  if (setup_.transport->alarm()) return io_error(*setup_.transport->alarm());
  if (!first() || (!closing && !intake_stop_.cancelled())) return {};
  if (called_ns_ == 0) HEDDLE_RETURN_IF_ERROR(call_ranks());
  const auto silent = std::find(answered_.begin() + 1, answered_.end(), false);
  if (silent != answered_.end()) {
    if (now_ns() - called_ns_ < (running_ > 0 ? kAnswerNs : kIdleAnswerNs)) return {};
    return io_error("rank " + std::to_string(silent - answered_.begin()) +
                    " does not answer any more: it has ended, or hangs");
  }
  if (!closing) return {};
  for (const auto& slot : slots_) HEDDLE_RETURN_IF_ERROR(send_number(*slot, kNoMore));
  end_stream();
  return {};
}

Status TaskRunner::serve_rank_intake(const CancelToken& stop) {
  intake_stop_ = stop;
  answered_.assign(static_cast<size_t>(setup_.transport->size()), false);
  Status begun;
  if (!first()) begun = await_call(0);
  for (size_t i = 0; i < slots_.size() && begun.ok() && !first(); ++i) begun = await_start(*slots_[i]);
  if (!begun.ok()) lose_ranks(std::move(begun).error());
  serve_ranks(intake_stream_.deadline);
  while (engaged_.load(std::memory_order_acquire) != 0) relax_cpu();
  intake_ = false;
  const std::lock_guard lock(stream_mutex_);
  return error_ ? Status(*error_) : Status();
}

}  // namespace heddle
