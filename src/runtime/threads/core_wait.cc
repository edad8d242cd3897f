#include "heddle/runtime/core_wait.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "mailbox.h"

namespace heddle {
namespace {

constexpr const char* kThreads = "/proc/self/task";

int64_t waited(const std::filesystem::path& thread) {
  // Nanoseconds on a core, nanoseconds ready and without one, turns. A thread that has ended has no file.
  std::ifstream file(thread / "schedstat");
  int64_t ran = 0, waited = 0;
  return file >> ran >> waited ? waited : 0;
}

}  // namespace

int64_t waited_for_a_core(pid_t thread) {
  return waited(std::filesystem::path(kThreads) / std::to_string(thread));
}

int64_t waited_for_cores() {
  int64_t sum = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator thread(kThreads, error), end; !error && thread != end;
       thread.increment(error))
    sum += waited(thread->path());
  return sum;
}

void CoreWait::resume() {
  begin_ns_ = now_ns();
  waited_before_ns_ = waited_for_cores();
}

void CoreWait::pause() {
  waited_ns_ += waited_for_cores() - waited_before_ns_;
  elapsed_ns_ += now_ns() - begin_ns_;
}

double CoreWait::share() const {
  return elapsed_ns_ > 0 ? static_cast<double>(waited_ns_) / static_cast<double>(elapsed_ns_) : 0;
}

}  // namespace heddle
