// Threads that solvers run on. A solver that does not stop in time is left behind on its thread, which owns
// all that it needs and ends when the solver next looks up.
#pragma once

#include <chrono>
#include <functional>

namespace heddle {

// How long after a deadline or a cancellation a solver may take to stop by itself.
constexpr std::chrono::milliseconds kSolverPatience{50};

// Runs `work` on a thread of its own that nobody joins.
void run_on_solver_thread(std::function<void()> work);

// Called when a thread is left behind: at the process's end those get a moment (3 s at most) to come back,
// before the solver's static objects are destroyed under them.
void await_solver_threads_at_exit();

}  // namespace heddle
