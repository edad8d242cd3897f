// Threads on which solvers run. A solver that does not stop in time is abandoned: its thread owns everything
// it needs and ends when the solver next polls.
#pragma once

#include <chrono>
#include <functional>

namespace heddle {

// Time that a solver may take to stop by itself after a deadline or a cancellation.
constexpr std::chrono::milliseconds kSolverPatience{50};

// Runs `work` on a detached thread.
void run_on_solver_thread(std::function<void()> work);

// Called when a thread is abandoned: at exit, the process waits up to 3 s for such threads to end, before the
// solver's static objects are destroyed.
void await_solver_threads_at_exit();

}  // namespace heddle
