// Requests that come one by one, each brought by a thread that waits for its end: what a server needs. They
// share the plan's devices and links as the requests of a stream do.
#include <algorithm>

#include "engine.h"
#include "heddle/runtime/affinity.h"

namespace heddle {

void Engine::begin_intake() {
  reset_stream(intake_stream_);
  for (const auto& slot : slots_) reserve(slot->entry);
  intake_ = true;
}

void Engine::serve_intake() {
  const AffinityGuard bound(home_ >= 0 ? std::span<const int>(workers_[static_cast<size_t>(home_)]->cores)
                                       : std::span<const int>());
  serve(intake_stream_.deadline);
}

Status Engine::run_request(int index) {
  Slot& slot = *slots_[static_cast<size_t>(index)];
  slot.error.reset();
  slot.failed.store(false, std::memory_order_relaxed);
  slot.pending_end.store(1, std::memory_order_relaxed);
  engaged_.fetch_add(1, std::memory_order_acq_rel);
  start_request(slot, slot.entry, taken_in_.fetch_add(1, std::memory_order_relaxed));
  drain(slot.entry);
  engaged_.fetch_sub(1, std::memory_order_acq_rel);
  slot.pending_end.wait(1, std::memory_order_acquire);
  const std::lock_guard lock(stream_mutex_);
  return slot.error ? Status(*slot.error) : Status();
}

void Engine::end_intake_request(Slot& slot) {
  slot.pending_end.store(0, std::memory_order_release);
  slot.pending_end.notify_one();
}

void Engine::end_intake() {
  end_stream();
  // A worker may still be giving resources back; the next stream starts clean.
  while (engaged_.load(std::memory_order_acquire) != 0) relax_cpu();
  intake_ = false;
}

}  // namespace heddle
