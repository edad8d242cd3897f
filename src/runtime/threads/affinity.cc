#include "heddle/runtime/affinity.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <latch>
#include <memory>
#include <utility>

#include "heddle/base/own_cores.h"

namespace heddle {
namespace {

cpu_set_t mask_of(std::span<const int> cores) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int core : cores) CPU_SET(core, &mask);
  return mask;
}

}  // namespace

Status check_cores(std::span<const int> cores, const std::string& device) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // The calling thread may be bound to fewer cores than the process may use, and so may its first thread.
  cpu_set_t of_first, of_caller;
  if (sched_getaffinity(getpid(), sizeof of_first, &of_first) != 0 ||
      sched_getaffinity(0, sizeof of_caller, &of_caller) != 0)
    return {};
  CPU_OR(&mask, &of_first, &of_caller);
  for (int core : cores) {
    if (core >= 0 && core < CPU_SETSIZE && CPU_ISSET(core, &mask)) continue;
    return invalid_input(
        "device '" + device + "' needs core " + std::to_string(core) +
        ", which this process may not use; change the cluster's core set or the process's affinity");
  }
  return {};
}

std::vector<int> core_group(int index, int groups) {
  const auto cores = own_cores();
  const int count = static_cast<int>(cores.size());
  if (count < groups) return {};
  return {cores.begin() + index * count / groups, cores.begin() + (index + 1) * count / groups};
}

int other_half() {
  const auto upper = core_group(1, 2);
  return std::find(upper.begin(), upper.end(), sched_getcpu()) == upper.end() ? 1 : 0;
}

std::jthread start_thread_on(std::span<const int> cores, std::function<void()> work) {
  if (cores.empty()) return std::jthread(std::move(work));
  // The caller binds the thread while the latch holds it: left alone, it might wait behind the caller for a
  // core. The latch also keeps it alive, as binding an ended thread binds the caller.
  auto bound = std::make_shared<std::latch>(1);
  std::jthread thread([bound, work = std::move(work)] {
    bound->wait();
    work();
  });
  const cpu_set_t mask = mask_of(cores);
  pthread_setaffinity_np(thread.native_handle(), sizeof mask, &mask);
  bound->count_down();
  return thread;
}

BusyThread::BusyThread(std::span<const int> cores)
    : thread_(start_thread_on(cores, [this] {
        runs_ = true;
        runs_.notify_one();
        std::atomic<uint64_t> sum = 0;
        while (!quit_.load(std::memory_order_relaxed)) sum.fetch_add(1, std::memory_order_relaxed);
      })) {
  runs_.wait(false);
}

AffinityGuard::AffinityGuard(std::span<const int> cores) {
  if (cores.empty()) return;
  const cpu_set_t wanted = mask_of(cores);
  if (pthread_getaffinity_np(pthread_self(), sizeof before_, &before_) != 0 || CPU_EQUAL(&wanted, &before_))
    return;
  changed_ = pthread_setaffinity_np(pthread_self(), sizeof wanted, &wanted) == 0;
}

AffinityGuard::~AffinityGuard() {
  if (changed_) pthread_setaffinity_np(pthread_self(), sizeof before_, &before_);
}

}  // namespace heddle
