#include "rank_process.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "heddle/command/command.h"
#include "heddle/runtime/transport.h"

namespace heddle {
namespace {

volatile std::sig_atomic_t g_rank_process = 0;

void pass_on(int signal) {
  if (g_rank_process > 0) kill(static_cast<pid_t>(g_rank_process), signal);
}

[[noreturn]] void wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) _exit(kExitInternal);
  }
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  std::fprintf(stderr, "heddle: rank %d: its process %d was ended by signal %d (%s); this ends the run\n",
               rank_environment().rank, static_cast<int>(child), signal, strsignal(signal));
  _exit(kExitNo);
}

}  // namespace

void supervise_rank() {
  if (rank_environment().size < 2) return;
  // Signals wait until they can be passed to the child.
  sigset_t passed, before;
  sigemptyset(&passed);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) sigaddset(&passed, signal);
  sigprocmask(SIG_BLOCK, &passed, &before);
  const pid_t self = getpid(), child = fork();
  if (child > 0) {
    g_rank_process = static_cast<std::sig_atomic_t>(child);
    struct sigaction action = {};
    action.sa_handler = pass_on;
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) sigaction(signal, &action, nullptr);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    wait_for(child);
  }
  // If the fork failed (child < 0), this process is the rank, without a supervisor.
  if (child == 0) {
    setpgid(0, 0);  // mpirun signals the whole group; the child must not get a signal twice
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self) _exit(kExitNo);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace heddle
