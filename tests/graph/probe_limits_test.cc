// The child process in which an import is tried: however it ends, the caller goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <stdexcept>
#include <vector>

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
  const Stopwatch watch;
  EXPECT_THAT(probe_error(
                  [] {
                    for (std::atomic<uint64_t> i = 0;;) ++i;
                  },
                  {.cpu_s = 1}),
              HasSubstr("within its limits of time and memory"));
  EXPECT_LT(watch.seconds(), 60);
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
struct SharedCounts {
  std::atomic<int> attempts{0}, joined{0}, forked_beside_a_thread{0};
};

// The first child waits for ever, as for a lock of a thread that it does not have.
TEST_F(ProbeLimits, NoChildIsForkedBesideTheCallersThread) {
  void* const memory =
      ::mmap(nullptr, sizeof(SharedCounts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto& counts = *new (memory) SharedCounts();
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
  ::munmap(memory, sizeof(SharedCounts));
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
