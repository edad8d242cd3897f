// The process of a rank under mpirun and similar launchers.
#pragma once

namespace heddle {

// A supervisor reports a rank that a signal kills: forks, and returns in the child, which becomes the rank. The
// parent passes signals on, waits, and exits with the child's status; if a signal ended the child, it says so and
// exits with kExitNo, upon which the launcher ends the other ranks. The child does not outlive its parent. Does
// nothing for a single rank. Call it before any thread is started.
void supervise_rank();

}  // namespace heddle
