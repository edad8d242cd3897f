// A thread's inbox for one task. Posting makes no system call while the receiver is awake.
#pragma once

#include <atomic>
#include <cstdint>

namespace heddle {

// Any thread posts, one thread takes. The executor posts a task only after the previous one was taken, since
// a device is exclusive. A nudge carries no task: it wakes the receiver to look for work.
class Mailbox {
 public:
  static constexpr int32_t kNothing = -1;
  struct Mail {
    int32_t task = kNothing;
    bool nudged = false;
  };

  void post(int32_t task) {
    value_.exchange(task + 1, std::memory_order_seq_cst);
    wake();
  }
  void nudge() {
    int32_t empty = 0;
    if (value_.compare_exchange_strong(empty, kNudge, std::memory_order_seq_cst)) wake();
  }
  // Spins for `spin_ns`, then sleeps for up to `timeout_ns` (0: no sleep).
  Mail take(int64_t spin_ns, int64_t timeout_ns);
  bool has_mail() const { return value_.load(std::memory_order_acquire) != 0; }

 private:
  static constexpr int32_t kNudge = -1;
  void wake() {
    if (sleeping_.load(std::memory_order_seq_cst) != 0) wake_slowly();
  }
  void wake_slowly();

  alignas(64) std::atomic<int32_t> value_{0};  // 0: empty, kNudge, or task + 1
  std::atomic<int32_t> sleeping_{0};
};

// CLOCK_MONOTONIC in ns; within a simulation (heddle/base/simulation.h) its clock.
int64_t now_ns();
// CPU hint for busy waiting. Within a simulation, time passes.
void relax_cpu();

}  // namespace heddle
