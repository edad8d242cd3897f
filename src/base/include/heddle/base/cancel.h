// Cooperative cancellation and deadlines. Long work polls should_stop() and returns the best it has.
#pragma once

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>

namespace heddle {

// A flag that any thread (or a signal handler) may raise. Copies share it.
class CancelToken {
 public:
  CancelToken() : flag_(std::make_shared<std::atomic<bool>>(false)) {}
  // A flag of its own that also counts as raised once this one is, which has to be the outermost.
  CancelToken inner() const {
    CancelToken made;
    made.outer_ = flag_;
    return made;
  }
  void cancel() const { flag_->store(true, std::memory_order_relaxed); }
  bool cancelled() const {
    return flag_->load(std::memory_order_relaxed) || (outer_ && outer_->load(std::memory_order_relaxed));
  }

 private:
  std::shared_ptr<std::atomic<bool>> flag_, outer_;
};

// When to stop: a point in time and/or a cancel flag. Cheap to copy; safe to poll from any thread.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  Deadline() = default;  // never, unless cancelled
  static Deadline after_seconds(double seconds, CancelToken token = {}) {
    Deadline d;
    d.token_ = std::move(token);
    // More than ten years is "never", so that the clock's arithmetic cannot overflow.
    if (seconds < 3e8)
      d.when_ =
          Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    return d;
  }
  static Deadline never(CancelToken token = {}) {
    Deadline d;
    d.token_ = std::move(token);
    return d;
  }

  bool cancelled() const { return token_.cancelled(); }
  bool expired() const { return when_ != Clock::time_point::max() && Clock::now() >= when_; }
  bool should_stop() const { return cancelled() || expired(); }
  // Infinity when there is no deadline; never negative.
  double seconds_left() const {
    if (cancelled()) return 0;
    if (when_ == Clock::time_point::max()) return std::numeric_limits<double>::infinity();
    const double s = std::chrono::duration<double>(when_ - Clock::now()).count();
    return s > 0 ? s : 0;
  }
  // The same flag, expiring at most `seconds` from now.
  Deadline sooner(double seconds) const {
    Deadline d = after_seconds(seconds, token_);
    if (when_ < d.when_) d.when_ = when_;
    return d;
  }
  const CancelToken& token() const { return token_; }

 private:
  Clock::time_point when_ = Clock::time_point::max();
  CancelToken token_;
};

}  // namespace heddle
