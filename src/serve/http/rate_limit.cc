#include "heddle/serve/rate_limit.h"

#include <algorithm>

namespace heddle {

RateLimit::RateLimit(double per_s)
    : per_s_(per_s), most_(std::max(1.0, per_s)), tokens_(most_), at_(std::chrono::steady_clock::now()) {}

bool RateLimit::take() {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  tokens_ = std::min(most_, tokens_ + std::chrono::duration<double>(now - at_).count() * per_s_);
  at_ = now;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

}  // namespace heddle
