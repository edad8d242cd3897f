// A rank that is killed is told of by a process that outlives it.
#pragma once

namespace heddle::cli {

// Under mpirun and its like: forks, and returns in the child, which goes on as the rank. The parent passes
// signals on, waits, and exits with the child's status; where a signal ended the child, it says so and exits
// with kExitNo, upon which the launcher ends the other ranks. The child does not outlive it. Does nothing
// where there is one rank alone. Before any thread is started.
void supervise_rank();

}  // namespace heddle::cli
