// A limit of requests per second over all protocols.
#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>

namespace heddle {

// A bucket of one second's tokens. Thread-safe.
class RateLimit {
 public:
  explicit RateLimit(double per_s) : per_s_(per_s), most_(std::max(1.0, per_s)), tokens_(most_) {}
  // Takes a token; false: none is left, so the request must be refused.
  bool take() {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    tokens_ = std::min(most_, tokens_ + std::chrono::duration<double>(now - at_).count() * per_s_);
    at_ = now;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  const double per_s_, most_;
  std::mutex mutex_;  // guards what follows
  double tokens_;
  std::chrono::steady_clock::time_point at_ = std::chrono::steady_clock::now();
};

}  // namespace heddle
