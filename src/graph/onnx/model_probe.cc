// Runs work that may crash, hang or exhaust memory in a child process first.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "heddle/base/units.h"
#include "model_impl.h"

namespace heddle::internal {
namespace {

using Clock = std::chrono::steady_clock;

// Polling interval of the child's memory: at 10 GB/s it grows by 50 MB in between.
constexpr int kPollMs = 5;
constexpr int kAttempts = 3;

// If memory runs out, the kernel ends this process before others. Without effect if /proc is not there.
void offer_to_oom_killer() {
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY);
  if (file < 0) return;
  (void)!::write(file, "1000", 4);
  ::close(file);
}

[[noreturn]] void run_child(const std::function<void()>& work, double cpu_s) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGINT, SIGTERM, SIGXCPU})
    ::signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  offer_to_oom_killer();
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const auto seconds = static_cast<rlim_t>(cpu_s) + 1;
  const rlimit cpu{seconds, seconds + 1};
  ::setrlimit(RLIMIT_CPU, &cpu);
  const int null = ::open("/dev/null", O_RDWR);
  if (null >= 0) {
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
  }
  try {
    work();
  } catch (...) {
    // The caller gets the same exception from the real import and reports it.
  }
  ::_exit(0);
}

// Private resident memory in bytes; 0 when the process is gone.
int64_t anonymous_bytes(pid_t child) {
  std::ifstream file("/proc/" + std::to_string(child) + "/statm");
  int64_t size = 0, resident = 0, shared = 0;
  if (!(file >> size >> resident >> shared)) return 0;
  return (resident - shared) * ::sysconf(_SC_PAGESIZE);
}

// What the child has computed and, where the kernel counts it, what it was ready to compute without a core. (Linux:
// /proc/PID/schedstat.) Only a child that is not ready does not get on by itself.
double active_seconds(pid_t child) {
  clockid_t clock = 0;
  timespec time{};
  if (::clock_getcpuclockid(child, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  std::ifstream file("/proc/" + std::to_string(child) + "/schedstat");
  int64_t ran_ns = 0, waited_ns = 0;
  if (!(file >> ran_ns >> waited_ns)) waited_ns = 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec + waited_ns);
}

// Swapping, for example, or reading again what memory had no room for. Such time counts as neither above.
bool waits_for_disk(pid_t child) {
  std::ifstream file("/proc/" + std::to_string(child) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');  // of a name that may have any characters
  return name_end != std::string::npos && line.compare(name_end, 3, ") D") == 0;
}

Status crash(const std::string& how) {
  return invalid_input("OpenVINO's process ended with " + how +
                       " while it read the model: it is damaged, or an operator is used in a way that "
                       "OpenVINO does not expect");
}

// Killed at the end if it has not ended by itself.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {
#ifdef SYS_pidfd_open
    handle_ = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
#endif
  }
  ~Child() {
    if (!reaped_) kill();
    if (handle_ >= 0) ::close(handle_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // True if the child ended within `ms`; `status` is then its exit status.
  bool wait(int ms, int* status) {
    if (handle_ >= 0) {
      pollfd p{handle_, POLLIN, 0};
      ::poll(&p, 1, ms);
    } else {
      ::usleep(static_cast<useconds_t>(ms) * 1000);
    }
    pid_t got = 0;
    do got = ::waitpid(pid_, status, WNOHANG);
    while (got < 0 && errno == EINTR);
    if (got < 0) *status = 0;  // reaped elsewhere: status unknown
    reaped_ = got != 0;
    return reaped_;
  }
  pid_t pid() const { return pid_; }

 private:
  void kill() const {
    int status = 0;
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }

  pid_t pid_;
  int handle_ = -1;
  bool reaped_ = false;
};

// The probe's result; nothing when the child waits for a lock that is never released.
std::optional<Status> watch(Child& child, const ProbeLimits& limits) {
  const auto start = Clock::now();
  double looked_s = 0, disk_s = 0;
  int64_t baseline = -1;
  for (int ms = 1;; ms = kPollMs) {
    int status = 0;
    if (child.wait(ms, &status)) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Status();
      if (!WIFSIGNALED(status)) return crash("status " + std::to_string(WEXITSTATUS(status)));
      const int signal = WTERMSIG(status);
      // A terminal interrupts its whole group of processes, and a service manager ends one.
      if (signal == SIGINT || signal == SIGTERM) return cancelled_error("cancelled while the model was read");
      if (signal != SIGXCPU && signal != SIGKILL)
        return crash("signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")");
      return invalid_input("OpenVINO did not finish this model within its limits of time and memory");
    }
    const int64_t used = anonymous_bytes(child.pid());
    if (baseline < 0) baseline = used;
    if (used - baseline > limits.memory_bytes)
      return invalid_input("OpenVINO needs more than " + format_bytes(limits.memory_bytes) +
                           " of memory for this model, probably for its constants");
    const double wall = std::chrono::duration<double>(Clock::now() - start).count();
    if (waits_for_disk(child.pid())) disk_s += wall - looked_s;
    looked_s = wall;
    if (wall > limits.stall_s && active_seconds(child.pid()) + disk_s < wall / 10) return std::nullopt;
  }
}

}  // namespace

Status probe(const std::function<void()>& work, const ProbeLimits& limits, const Meanwhile& meanwhile) {
  if (!kProbes) {
    if (meanwhile.start) meanwhile.start();
    return {};
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0 && meanwhile.join) meanwhile.join();
    const pid_t pid = ::fork();
    if (pid < 0)
      return io_error(std::string("cannot start a process to try the model in: ") + std::strerror(errno));
    if (pid == 0) run_child(work, limits.cpu_s);
    Child child(pid);
    if (attempt == 0 && meanwhile.start) meanwhile.start();
    if (auto result = watch(child, limits)) return std::move(*result);
  }
  return io_error(
      "the process that tries the model stood still " + std::to_string(kAttempts) +
      " times, as one that waits for a lock: another part of the program may import models at this "
      "time; try again");
}

}  // namespace heddle::internal
