// The child process in which an import is tried: however it ends, the caller goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "graph/processor_time.h"
#include "heddle/base/stopwatch.h"
#include "onnx/model_impl.h"

namespace heddle {
namespace {

using testing::HasSubstr;

class ProbeLimits : public testing::Test {
 protected:
  void SetUp() override {
    if (!internal::kProbes) GTEST_SKIP() << "a build with the thread sanitizer does not fork";
  }
};

std::string probe_error(const std::function<void()>& work, const internal::ProbeLimits& limits = {}) {
  const auto status = internal::probe(work, limits);
  return status.ok() ? "" : status.error().to_string();
}

TEST_F(ProbeLimits, LetWorkEndThatReturnsOrThrows) {
  EXPECT_EQ(probe_error([] {}), "");
  EXPECT_EQ(probe_error([] { throw std::runtime_error("which the import itself reports"); }), "");
}

TEST_F(ProbeLimits, EndWorkThatNeverStops) {
  const double before = test::processor_seconds();
  EXPECT_THAT(probe_error(
                  [] {
                    for (std::atomic<uint64_t> i = 0;;) ++i;
                  },
                  {.cpu_s = 1}),
              HasSubstr("within its limits of time and memory"));
  EXPECT_LT(test::processor_seconds() - before, 4);
}

TEST_F(ProbeLimits, EndWorkThatTakesTooMuchMemory) {
  EXPECT_THAT(probe_error(
                  [] {
                    for (std::vector<std::vector<char>> all;;) all.emplace_back(size_t{1} << 20, 'x');
                  },
                  {.memory_bytes = int64_t{100} << 20}),
              HasSubstr("needs more than 100"));
}

TEST_F(ProbeLimits, NameTheSignalOrStatusOfACrash) {
  EXPECT_THAT(probe_error([] { ::raise(SIGSEGV); }), HasSubstr("signal 11 (Segmentation fault)"));
  EXPECT_THAT(probe_error([] { ::raise(SIGKILL); }), HasSubstr("within its limits"));
  EXPECT_THAT(probe_error([] { std::abort(); }), HasSubstr("signal 6"));
  EXPECT_THAT(probe_error([] { ::_exit(3); }), HasSubstr("status 3"));
}

// A terminal interrupts its whole group of processes: that is no damage to the model.
TEST_F(ProbeLimits, AnInterruptedTrialIsCancelled) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto status = internal::probe([signal] { ::raise(signal); }, {});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Code::kCancelled);
  }
}

// What the processes of a probe share.
struct Counts {
  std::atomic<int> attempts{0}, joined{0}, forked_beside_a_thread{0};
};
class SharedCounts {
 public:
  SharedCounts()
      : memory_(::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::runtime_error("no memory that processes share");
    counts_ = new (memory_) Counts();
  }
  ~SharedCounts() { ::munmap(memory_, sizeof(Counts)); }
  SharedCounts(const SharedCounts&) = delete;
  SharedCounts& operator=(const SharedCounts&) = delete;
  Counts& operator*() const { return *counts_; }

 private:
  void* const memory_;
  Counts* counts_ = nullptr;
};

// The first child waits for ever, as for a lock of a thread that it does not have.
TEST_F(ProbeLimits, NoChildIsForkedBesideTheCallersThread) {
  const SharedCounts shared;
  Counts& counts = *shared;
  bool running = false;  // a child has its value at the fork
  const auto status = internal::probe(
      [&] {
        if (running) ++counts.forked_beside_a_thread;
        if (++counts.attempts > 1) return;
        for (;;) ::pause();
      },
      {.stall_s = .2},
      {.start = [&running] { running = true; },
       .join =
           [&] {
             running = false;
             ++counts.joined;
           }});
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_GE(counts.attempts, 2);
  EXPECT_GE(counts.joined, 1);
  EXPECT_EQ(counts.forked_beside_a_thread, 0);
}

// What could not be tried is no model to import.
TEST_F(ProbeLimits, WorkThatNeverGetsOnIsRefused) {
  const auto status = internal::probe(
      [] {
        for (;;) ::pause();
      },
      {.stall_s = .05});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kIo);
  EXPECT_THAT(status.error().to_string(), HasSubstr("stood still 3 times"));
}

// On one core with sixteen others it computes far less than a tenth of the time, but was ready all of it.
TEST_F(ProbeLimits, WorkOnABusyCoreGetsOn) {
  if (std::string counts; !(std::ifstream("/proc/self/schedstat") >> counts))
    GTEST_SKIP() << "the kernel does not count time without a core";
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  int core = 0;
  while (!CPU_ISSET(core, &before)) ++core;
  CPU_SET(core, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  std::vector<pid_t> others;
  for (int i = 0; i < 16; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (std::atomic<uint64_t> n = 0;;) ++n;
    }
    others.push_back(pid);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  const SharedCounts shared;
  Counts& counts = *shared;
  const auto status = internal::probe(
      [&] {
        ++counts.attempts;
        ::sched_setaffinity(0, sizeof one, &one);
        const Stopwatch watch;
        while (watch.seconds() < 1) {
        }
      },
      {.stall_s = .3});
  for (const pid_t pid : others) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_EQ(counts.attempts, 1);
}

// Who waits for a process that shares its memory is as uninterruptible as who waits for a disk.
TEST_F(ProbeLimits, WorkThatWaitsForTheDiskGetsOn) {
  const SharedCounts shared;
  Counts& counts = *shared;
  const auto status = internal::probe(
      [&] {
        ++counts.attempts;
        if (::vfork() == 0) {
          ::sleep(1);
          ::_exit(0);
        }
      },
      {.stall_s = .2});
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_EQ(counts.attempts, 1);
}

TEST_F(ProbeLimits, TheChildIsReapedIfTheCallersThreadCannotStart) {
  EXPECT_THROW((void)internal::probe(
                   [] {
                     for (;;) ::pause();
                   },
                   {}, {.start = [] { throw std::runtime_error("no thread"); }, .join = {}}),
               std::runtime_error);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace heddle
