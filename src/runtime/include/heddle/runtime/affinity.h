// Binding threads to cores.
#pragma once

#include <sched.h>

#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "heddle/base/status.h"

namespace heddle {

// Fails, naming the core, when the process may not use one of them. Empty: nothing happens.
Status check_cores(std::span<const int> cores, const std::string& device);

// Of the calling thread's cores, dealt into `groups` groups of neighbours (none in two, their sizes differing
// by at most one), group `index`, 0 to groups - 1. Empty when there are fewer cores than groups.
std::vector<int> core_group(int index, int groups);

// Which of two groups the calling thread does not run in just now, 0 or 1.
int other_half();

// A thread that is bound to `cores` before it does anything. Empty: one as any other.
std::jthread start_thread_on(std::span<const int> cores, std::function<void()> work);

// Binds the calling thread to `cores` while it lives (empty: leaves it alone), then gives the former mask
// back. Does nothing when the thread is bound so already.
class AffinityGuard {
 public:
  explicit AffinityGuard(std::span<const int> cores);
  ~AffinityGuard();
  AffinityGuard(const AffinityGuard&) = delete;
  AffinityGuard& operator=(const AffinityGuard&) = delete;

 private:
  cpu_set_t before_;
  bool changed_ = false;
};

}  // namespace heddle
