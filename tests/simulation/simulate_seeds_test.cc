// Seeds in processes of their own, and what is left of them if they are stopped.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "heddle/base/numbers.h"
#include "heddle/serve/simulate_service.h"

namespace heddle {
namespace {

// A child of this process; 0: there is none.
pid_t child_process() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto pid = parse_number<pid_t>(entry.path().filename().string());
    std::string id, name, state;
    pid_t parent = 0;
    if (pid && std::ifstream(entry.path() / "stat") >> id >> name >> state >> parent && parent == ::getpid())
      return *pid;
  }
  return 0;
}

const CancelToken* g_raised = nullptr;

// A handler as the program's, which raises a flag.
class StoppedSeeds : public testing::Test {
 protected:
  void SetUp() override {
#if defined(HEDDLE_THREAD_SANITIZER)
    GTEST_SKIP() << "the thread sanitizer has too little memory for so many fibres";
#endif
    g_raised = &control_.cancel;
    before_ = std::signal(SIGINT, [](int) { g_raised->cancel(); });
  }
  void TearDown() override {
    if (g_raised != nullptr) std::signal(SIGINT, before_);
    g_raised = nullptr;
  }
  // The seeds, during which `then` is called with their process.
  Result<SimulatedSeeds> simulate(int64_t seeds, const std::function<void(pid_t)>& then) {
    std::atomic<bool> over{false};
    std::thread beside([&] {
      pid_t child = 0;
      while (!over && (child = child_process()) == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (child != 0) then(child);
    });
    auto run = simulate_seeds(1, seeds, control_);
    over = true;
    beside.join();
    return run;
  }
  Control control_;
  void (*before_)(int) = SIG_DFL;
};

TEST_F(StoppedSeeds, AnInterruptEndsTheirProcess) {
  const auto run = simulate(50, [](pid_t child) { ::kill(child, SIGINT); });
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code(), Code::kCancelled);
  EXPECT_FALSE(control_.cancel.cancelled());
}

TEST_F(StoppedSeeds, SeedsThatAreCompleteCount) {
  const auto run = simulate(3, [this](pid_t) { control_.cancel.cancel(); });
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  EXPECT_EQ(run->seeds, 3);
  EXPECT_GT(run->requests, 0U);
  EXPECT_FALSE(run->failed);
  control_.cancel.cancel();
  // Nothing is complete before this stop.
  EXPECT_EQ(simulate_seeds(1, 3, control_).error().code(), Code::kCancelled);
}

}  // namespace
}  // namespace heddle
