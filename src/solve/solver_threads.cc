#include "solver_threads.h"

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

namespace heddle {
namespace {

constexpr std::chrono::seconds kWaitAtExit{3};

struct Running {
  std::mutex mutex;
  std::condition_variable fewer;
  int threads = 0;
  bool awaited_at_exit = false;

  void add(int by) {
    const std::lock_guard lock(mutex);
    threads += by;
    fewer.notify_all();
  }
};

Running& running() {
  static auto* all = new Running;  // never destroyed: threads may outlive main()
  return *all;
}

void wait_for_all() {
  std::unique_lock lock(running().mutex);
  running().fewer.wait_for(lock, kWaitAtExit, [] { return running().threads == 0; });
}

}  // namespace

void start_solver_thread(std::function<void()> work) {
  running().add(1);
  try {
    std::thread([work = std::move(work)]() mutable {
      work();
      work = nullptr;  // release what it owns before the thread counts as ended
      running().add(-1);
    }).detach();
  } catch (...) {
    running().add(-1);
    throw;
  }
}

void await_solver_threads_at_exit() {
  const std::lock_guard lock(running().mutex);
  if (!running().awaited_at_exit) running().awaited_at_exit = std::atexit(wait_for_all) == 0;
}

}  // namespace heddle
