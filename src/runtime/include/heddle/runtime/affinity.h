// Binding threads to cores.
#pragma once

#include <sched.h>

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "heddle/base/status.h"

namespace heddle {

// Fails, naming the core, if the process may not use one of them. An empty list passes.
Status check_cores(std::span<const int> cores, const std::string& device);

// The calling thread's cores are divided into `groups` disjoint groups of neighbours, whose sizes differ by
// at most one. Returns group `index`, 0 to groups - 1; empty if there are fewer cores than groups.
std::vector<int> core_group(int index, int groups);

// The one of two groups, 0 or 1, in which the calling thread is not running at the moment.
int other_half();

// Starts a thread that is bound to `cores` before `work` begins. An empty list binds nothing.
std::jthread start_thread_on(std::span<const int> cores, std::function<void()> work);

// A thread that computes without end, as another process on the machine would: on one of `cores`, or on any if the list
// is empty. It runs when the constructor returns.
class BusyThread {
 public:
  explicit BusyThread(std::span<const int> cores);
  ~BusyThread() { quit_ = true; }
  BusyThread(const BusyThread&) = delete;
  BusyThread& operator=(const BusyThread&) = delete;

 private:
  std::atomic<bool> runs_ = false, quit_ = false;
  std::jthread thread_;
};

// Binds the calling thread to `cores` for the guard's lifetime, then restores the previous mask. It does
// nothing if `cores` is empty or the thread already has this mask.
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
