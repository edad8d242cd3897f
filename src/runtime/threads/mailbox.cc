#include "mailbox.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "heddle/base/sync.h"

namespace heddle {
namespace {

constexpr int64_t kSimulatedPauseNs = 1000;  // of one relax_cpu(); a simulated clock moves in waits alone

}  // namespace

static_assert(sizeof(std::atomic<int32_t>) == sizeof(int32_t), "a futex is a plain 32-bit word");

int64_t now_ns() { return steady_ns(); }

void relax_cpu() {
  if (internal::simulated != nullptr) [[unlikely]]
    return sleep_ns(kSimulatedPauseNs);
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void Mailbox::wake_slowly() {
  if (auto* s = internal::simulated) [[unlikely]]
    return s->wake(this, true);
  syscall(SYS_futex, reinterpret_cast<int32_t*>(&value_), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

Mailbox::Mail Mailbox::take(int64_t spin_ns, int64_t timeout_ns) {
  if (spin_ns > 0 && !has_mail()) {
    const int64_t until = now_ns() + spin_ns;
    do {
      for (int i = 0; i < 32 && !has_mail(); ++i) relax_cpu();
    } while (!has_mail() && now_ns() < until);
  }
  if (timeout_ns > 0 && !has_mail()) {
    // The sender stores the value, then reads `sleeping_`; the receiver stores `sleeping_`, then reads the
    // value. Both are sequentially consistent, so one of them sees the other's store and no wake-up is lost.
    sleeping_.store(1, std::memory_order_seq_cst);
    if (auto* s = internal::simulated) {
      // It may end early, as the system's may.
      if (!has_mail()) s->wait(this, now_ns() + timeout_ns);
    } else if (value_.load(std::memory_order_seq_cst) == 0) {
      const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                             static_cast<long>(timeout_ns % 1'000'000'000)};
      syscall(SYS_futex, reinterpret_cast<int32_t*>(&value_), FUTEX_WAIT_PRIVATE, 0, &timeout, nullptr, 0);
    }
    sleeping_.store(0, std::memory_order_seq_cst);
  }
  if (!has_mail()) return {};
  const int32_t value = value_.exchange(0, std::memory_order_acq_rel);
  if (value == kNudge) return {kNothing, true};
  return {value - 1, false};
}

}  // namespace heddle
