#include "heddle/serve/worker_processes.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace heddle {
namespace {

constexpr auto kTimeToEnd = std::chrono::seconds(2);

}  // namespace

std::vector<std::map<std::string, int64_t>> divide_devices(const std::map<std::string, int64_t>& devices,
                                                           int64_t workers) {
  std::vector<std::map<std::string, int64_t>> parts(static_cast<size_t>(workers));
  int64_t next = 0;
  for (const auto& [name, count] : devices) {
    for (int64_t w = 0; w < workers; ++w) {
      const bool more = (w - next + workers) % workers < count % workers;
      const int64_t part = count / workers + (more ? 1 : 0);
      if (part > 0) parts[static_cast<size_t>(w)][name] = part;
    }
    next = (next + count) % workers;
  }
  return parts;
}

WorkerProcesses::~WorkerProcesses() {
  for (const pid_t pid : processes_) {
    ::kill(pid, SIGTERM);
    ::kill(pid, SIGCONT);  // one that was stopped cannot end otherwise
  }
  const auto until = std::chrono::steady_clock::now() + kTimeToEnd;
  for (const pid_t pid : processes_) {
    int status = 0;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > until) ::kill(pid, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

Status WorkerProcesses::start(const std::string& name, const std::map<std::string, int64_t>& devices,
                              const std::vector<std::string>& to) {
  std::vector<std::string> arguments = {"heddle", "worker", "--quiet", "--name", name};
  for (const auto& [device_class, count] : devices) {
    arguments.push_back("--devices");
    arguments.push_back(device_class + "=" + std::to_string(count));
  }
  arguments.insert(arguments.end(), to.begin(), to.end());
  // Between fork and exec only what needs no lock is permitted: other threads may hold them.
  std::vector<char*> argv;
  for (auto& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return io_error(std::string("cannot start a worker: ") + std::strerror(errno));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    // Its own group: Ctrl-C is for the server, which drains before it ends its workers.
    ::setpgid(0, 0);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  processes_.push_back(pid);
  return {};
}

}  // namespace heddle
