#include "solver_threads.h"

#include <atomic>
#include <cstdlib>
#include <thread>
#include <utility>

namespace heddle {
namespace {

constexpr std::chrono::seconds kWaitAtExit{3};

std::atomic<int> running = 0;  // threads, which may outlive main()

void wait_for_all() {
  const auto end = std::chrono::steady_clock::now() + kWaitAtExit;
  while (running > 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kSolverPoll);
}

}  // namespace

void start_solver_thread(std::function<void()> work) {
  ++running;
  try {
    std::thread([work = std::move(work)]() mutable {
      work();
      work = nullptr;  // release what it owns before the thread counts as ended
      --running;
    }).detach();
  } catch (...) {
    --running;
    throw;
  }
}

void await_solver_threads_at_exit() {
  [[maybe_unused]] static const bool registered = std::atexit(wait_for_all) == 0;
}

}  // namespace heddle
