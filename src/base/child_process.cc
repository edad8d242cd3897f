#include "heddle/base/child_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

namespace heddle {
namespace {

Json answer_of(const std::function<Result<Json>()>& work) {
  try {
    auto result = work();
    if (result.ok()) return {{"result", std::move(result).value()}};
    return {{"code", static_cast<int>(result.error().code())}, {"error", result.error().to_string()}};
  } catch (const std::exception& e) {
    return {{"code", static_cast<int>(Code::kInternal)}, {"error", std::string(e.what())}};
  }
}

[[noreturn]] void be_child(int out, const std::function<Result<Json>()>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string text = json_text(answer_of(work));
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = ::write(out, text.data() + at, text.size() - at);
    if (n < 0 && errno != EINTR) ::_exit(1);
    if (n > 0) at += static_cast<size_t>(n);
  }
  // Destructors of statics belong to the parent.
  ::_exit(0);
}

std::string read_all(int in) {
  std::string text;
  char block[1 << 16];
  while (true) {
    const ssize_t n = ::read(in, block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(block, static_cast<size_t>(n));
  }
}

Error system_error(const std::string& what) {
  return io_error("cannot " + what + ": " + std::strerror(errno));
}

}  // namespace

Result<Json> run_in_child(const std::function<Result<Json>()>& work) {
  std::fflush(nullptr);  // or both would print what is buffered
  int ends[2];
  if (::pipe(ends) != 0) return system_error("make a pipe to a process");
  const pid_t pid = ::fork();
  if (pid < 0) {
    const Error error = system_error("start a process");
    ::close(ends[0]);
    ::close(ends[1]);
    return error;
  }
  if (pid == 0) {
    ::close(ends[0]);
    be_child(ends[1], work);
  }
  ::close(ends[1]);
  const std::string text = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    // A terminal interrupts its whole group of processes, and a service manager ends one.
    if (signal == SIGINT || signal == SIGTERM)
      return cancelled_error("the process that was started for this was interrupted");
    const char* why = signal == SIGKILL  ? "; the system kills so when memory runs out"
                      : signal == SIGBUS ? "; so ends who reads a file that became shorter meanwhile"
                                         : "";
    return Error(*why != '\0' ? Code::kInfeasible : Code::kInternal,
                 "the process that was started for this ended by signal " + std::to_string(signal) + why);
  }
  const Json answer = Json::parse(text, nullptr, false);
  if (!answer.is_object()) return internal_error("the process that was started for this ended early");
  if (answer.contains("result")) return answer["result"];
  return Error(static_cast<Code>(answer.value("code", static_cast<int>(Code::kInternal))),
               answer.value("error", std::string("no reason given")));
}

}  // namespace heddle
