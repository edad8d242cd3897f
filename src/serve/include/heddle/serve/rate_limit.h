// At most so many requests a second, whatever they come by.
#pragma once

#include <chrono>
#include <mutex>

namespace heddle {

// A bucket of one second's tokens. Thread-safe.
class RateLimit {
 public:
  explicit RateLimit(double per_s);
  // Takes a token; false: there is none, the request is to be refused.
  bool take();

 private:
  const double per_s_, most_;
  std::mutex mutex_;  // guards what follows
  double tokens_;
  std::chrono::steady_clock::time_point at_;
};

}  // namespace heddle
