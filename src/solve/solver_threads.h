// Threads on which solvers run. A solver that does not stop in time is abandoned: its thread owns everything
// it needs and ends when the solver next polls.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"

namespace heddle {

// Time that a solver may take to stop by itself after a deadline or a cancellation, and how often the caller
// looks whether it should stop.
constexpr std::chrono::milliseconds kSolverPatience{50}, kSolverPoll{10};

// Runs `work` on a detached thread.
void start_solver_thread(std::function<void()> work);

// Called when a thread is abandoned: at exit, the process waits up to 3 s for such threads to end, before the
// solver's static objects are destroyed.
void await_solver_threads_at_exit();

// Runs `work`, which must own everything that it uses, on a thread of its own and waits for its answer.
// nullopt: the solver has not stopped within kSolverPatience after the deadline and is abandoned.
template <class T>
std::optional<Result<T>> run_on_solver_thread(std::function<Result<T>()> work, const Deadline& deadline) {
  using Clock = std::chrono::steady_clock;
  auto task = std::make_shared<std::packaged_task<Result<T>()>>(std::move(work));
  std::future<Result<T>> answer = task->get_future();
  start_solver_thread([task = std::move(task)] { (*task)(); });
  std::optional<Clock::time_point> stopped;
  while (answer.wait_for(kSolverPoll) != std::future_status::ready) {
    if (!deadline.should_stop()) continue;
    if (!stopped) stopped = Clock::now();
    if (Clock::now() - *stopped < kSolverPatience) continue;
    await_solver_threads_at_exit();
    return std::nullopt;
  }
  try {
    return answer.get();
  } catch (const std::exception& e) {
    return internal_error(e.what());
  }
}

}  // namespace heddle
