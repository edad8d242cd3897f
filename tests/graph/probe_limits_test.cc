// The child process in which an import is tried: however it ends, the caller goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
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

}  // namespace
}  // namespace heddle
