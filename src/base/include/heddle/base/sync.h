// Threads, locks and clocks for code that also runs in a simulation (heddle/base/simulation.h). Outside a
// simulation each is a thin wrapper around the standard library's. Within one, a seeded scheduler decides who goes
// on at every lock, wait, notification and sleep, and the clocks are simulated.
//
// A lock is not fair, and a wait may end without a notification: wait in a loop that checks its condition.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>

namespace heddle {

namespace internal {

// What a simulation offers to the code that it runs.
class SimulatedSystem {
 public:
  virtual ~SimulatedSystem() = default;
  virtual void pass() = 0;  // another thread may go on here
  // Until wake() with the same place, or `until` (ns). May also end early.
  virtual void wait(const void* place, int64_t until_ns) = 0;
  virtual void wake(const void* place, bool all) = 0;
  virtual int64_t now_ns() = 0;
  virtual int64_t wall_ns() = 0;
  virtual uint64_t start(std::function<void()> run) = 0;  // a thread; its number, not 0
  virtual void join(uint64_t thread) = 0;
};

// Of the simulation that runs on this thread of the system; null: none.
extern constinit thread_local SimulatedSystem* simulated;

inline constexpr int64_t kEver = INT64_MAX;

}  // namespace internal

// The steady clock, in ns.
inline int64_t steady_ns() {
  if (auto* s = internal::simulated) [[unlikely]]
    return s->now_ns();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The system's clock, in ns since 1970. It may jump.
inline int64_t wall_ns() {
  if (auto* s = internal::simulated) [[unlikely]]
    return s->wall_ns();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

inline void sleep_ns(int64_t ns) {
  if (auto* s = internal::simulated) [[unlikely]] {
    const int64_t until = s->now_ns() + ns;
    while (s->now_ns() < until) s->wait(&until, until);
    return;
  }
  std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

namespace internal {

template <class Real>
class Lock {
 public:
  void lock() {
    take([this] { real_.lock(); }, [this] { return real_.try_lock(); });
  }
  void unlock() {
    real_.unlock();
    wake();
  }

 protected:
  template <class Take, class TryTake>
  void take(const Take& real_lock, const TryTake& try_lock) {
    auto* s = simulated;
    if (s == nullptr) [[likely]]
      return real_lock();
    s->pass();
    while (!try_lock()) s->wait(this, kEver);
  }
  void wake() {
    if (auto* s = simulated) [[unlikely]]
      s->wake(this, true);
  }
  Real real_;
};

}  // namespace internal

class Mutex : public internal::Lock<std::mutex> {
  friend class Condition;
};

class SharedMutex : public internal::Lock<std::shared_mutex> {
 public:
  void lock_shared() {
    take([this] { real_.lock_shared(); }, [this] { return real_.try_lock_shared(); });
  }
  void unlock_shared() {
    real_.unlock_shared();
    wake();
  }
};

class Condition {
 public:
  void wait(std::unique_lock<Mutex>& lock) {
    if (auto* s = internal::simulated) [[unlikely]]
      return simulated_wait(*s, lock, internal::kEver);
    std::unique_lock<std::mutex> real(lock.mutex()->real_, std::adopt_lock);
    real_.wait(real);
    real.release();
  }
  template <class Ready>
  void wait(std::unique_lock<Mutex>& lock, const Ready& ready) {
    while (!ready()) wait(lock);
  }
  // Until this time of the steady clock.
  void wait_until(std::unique_lock<Mutex>& lock, int64_t until_ns) {
    if (auto* s = internal::simulated) [[unlikely]]
      return simulated_wait(*s, lock, until_ns);
    std::unique_lock<std::mutex> real(lock.mutex()->real_, std::adopt_lock);
    real_.wait_until(real, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(until_ns)));
    real.release();
  }
  void wait_for(std::unique_lock<Mutex>& lock, int64_t ns) { wait_until(lock, steady_ns() + ns); }
  void notify_one() { notify(false); }
  void notify_all() { notify(true); }

 private:
  void notify(bool all) {
    auto* s = internal::simulated;
    if (s == nullptr) [[likely]]
      return all ? real_.notify_all() : real_.notify_one();
    s->pass();
    s->wake(this, all);
  }
  void simulated_wait(internal::SimulatedSystem& s, std::unique_lock<Mutex>& lock, int64_t until_ns) {
    lock.unlock();  // nobody else goes on between this and the wait
    s.wait(this, until_ns);
    lock.lock();
  }
  std::condition_variable real_;
};

// To be joined before it is destroyed, as std::thread. Throws std::system_error when none can be started.
class Thread {
 public:
  Thread() = default;
  explicit Thread(std::function<void()> run) {
    if (auto* s = internal::simulated) [[unlikely]] {
      simulated_ = s->start(std::move(run));
    } else {
      real_ = std::thread(std::move(run));
    }
  }
  Thread(Thread&& other) noexcept { *this = std::move(other); }
  Thread& operator=(Thread&& other) noexcept {
    real_ = std::move(other.real_);
    simulated_ = std::exchange(other.simulated_, 0);
    return *this;
  }
  bool joinable() const { return simulated_ != 0 || real_.joinable(); }
  void join() {
    if (simulated_ == 0) return real_.join();
    internal::simulated->join(std::exchange(simulated_, 0));
  }

 private:
  std::thread real_;
  uint64_t simulated_ = 0;
};

}  // namespace heddle
