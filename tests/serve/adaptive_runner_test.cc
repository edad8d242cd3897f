// A served model that runs on fewer cores while that is faster, and the line that says why runs are slow.
#include "machine/adaptive_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "heddle/base/simulation.h"
#include "heddle/base/sync.h"
#include "heddle/runtime/affinity.h"
#include "machine/machine_watch.h"

namespace heddle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Takes as long as the test says and counts its runs.
class Paced final : public DeviceRunner {
 public:
  explicit Paced(std::vector<int> cores) : cores_(std::move(cores)) {}
  Status run(std::span<LiveRequest* const>) override {
    ++runs;
    if (fails) return internal_error("the device is gone");
    sleep_ns(ms * int64_t{1'000'000} + 10'000);  // no run takes no time
    return {};
  }
  std::vector<int> cores() const override { return cores_; }

  std::atomic<int> ms = 0, runs = 0;
  std::atomic<bool> fails = false;

 private:
  const std::vector<int> cores_;
};

struct TwoRunners {
  std::shared_ptr<Paced> all = std::make_shared<Paced>(std::vector<int>{});
  std::shared_ptr<Paced> fewer = std::make_shared<Paced>(core_group(0, 1));
  AdaptiveRunner runner{{all, fewer}};

  void run(int times, size_t rows = 1) {
    const std::vector<LiveRequest*> batch(rows);  // which nobody reads
    for (int i = 0; i < times; ++i) ASSERT_TRUE(runner.run(batch).ok());
  }
};

// Otherwise other work on the machine would decide which cores are faster.
void on_simulated_clock(const std::function<void()>& test) {
  Simulation simulation({.seed = 1});
  const auto status = simulation.run(test);
  EXPECT_TRUE(status.ok()) << status.error().to_string();
}

// The next try comes 50 runs after the last.
TEST(AdaptiveRunner, GoesWhereRunsAreFastAndBack) {
  on_simulated_clock([] {
    TwoRunners two;
    const auto run_until = [&two](uint64_t switches) {
      for (int i = 0; i < 1000 && two.runner.switches() < switches; ++i) two.run(1);
      EXPECT_EQ(two.runner.switches(), switches);
    };
    two.fewer->ms = 30;
    two.run(6);
    EXPECT_EQ(two.all->runs, 3);  // each is tried three times at first
    EXPECT_EQ(two.fewer->runs, 3);
    // Other work comes, and fewer cores are used; it goes, and all are.
    two.all->ms = 30;
    two.fewer->ms = 0;
    run_until(1);
    const int before = two.fewer->runs;
    two.run(3);
    EXPECT_EQ(two.fewer->runs, before + 3);
    two.fewer->ms = 30;
    two.all->ms = 0;
    run_until(2);
  });
}

TEST(AdaptiveRunner, ChoosesForEachSizeOfBatch) {
  on_simulated_clock([] {
    TwoRunners two;
    two.fewer->ms = 30;
    two.run(6, 1);
    two.all->ms = 30;
    two.fewer->ms = 0;
    two.run(6, 2);
    const int all = two.all->runs;
    two.run(4, 1);
    EXPECT_EQ(two.all->runs, all + 4);
    two.run(4, 2);
    EXPECT_EQ(two.all->runs, all + 4);
  });
}

TEST(AdaptiveRunner, HasAllCoresAndPassesErrorsOn) {
  TwoRunners two;
  EXPECT_EQ(two.runner.cores(), two.all->cores());
  two.all->fails = true;
  const std::vector<LiveRequest*> batch(1);
  const auto failed = two.runner.run(batch);
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message(), HasSubstr("the device is gone"));
}

WatchReading reading(double now_s, double all_s, double own_s, uint64_t runs, double busy_s,
                     double predicted_s) {
  return {now_s, CoreUse{all_s, own_s}, {{"m", {runs, busy_s, predicted_s}}}};
}

TEST(MachineWatch, NamesTheCauseOnce) {
  MachineWatch watch;
  EXPECT_THAT(watch.look(reading(0, 0, 0, 0, 0, 0)), IsEmpty());
  EXPECT_THAT(watch.look(reading(10, 5, 5, 100, 1, 1)), IsEmpty());
  // Twice as slow, and another process has a core and a half.
  EXPECT_THAT(
      watch.look(reading(20, 25, 10, 200, 3, 2)),
      ElementsAre("m: a run takes 2.00 times what was measured when the model was loaded; the machine: other "
                  "processes use 1.5 cores"));
  EXPECT_THAT(watch.look(reading(30, 45, 15, 300, 5, 3)), IsEmpty());
  // Still slow, and nobody else is there.
  EXPECT_THAT(watch.look(reading(40, 50, 20, 400, 7, 4)), ElementsAre(HasSubstr("2.00 times")));
  EXPECT_THAT(watch.look(reading(50, 55, 25, 500, 8, 5)), ElementsAre(HasSubstr("as planned again")));
  EXPECT_THAT(watch.look(reading(60, 60, 30, 600, 8.5, 6)),
              ElementsAre(AllOf(HasSubstr("0.50 times"), HasSubstr("load the model again"))));
}

TEST(MachineWatch, SaysNothingOfFewRunsAndKnowsANewPlan) {
  MachineWatch watch;
  EXPECT_THAT(watch.look(reading(0, 0, 0, 0, 0, 0)), IsEmpty());
  EXPECT_THAT(watch.look(reading(10, 20, 1, MachineWatch::kLeastRuns - 1, 9, 1)), IsEmpty());
  EXPECT_THAT(watch.look(reading(20, 20, 1, 1000, 1010, 1001)), IsEmpty());
  // The counters of a new plan begin at 0: 30 runs, not 30 less 1000.
  EXPECT_THAT(watch.look(reading(30, 21, 2, 30, 60, 30)), ElementsAre(HasSubstr("2.00 times")));
  // Where the kernel says nothing of the cores, the measurement is blamed.
  WatchReading blind = reading(40, 0, 0, 130, 360, 130);
  blind.cores.reset();
  EXPECT_THAT(watch.look(blind), IsEmpty());
}

TEST(CoreUse, CountsThisProcess) {
  const auto before = core_use();
  ASSERT_TRUE(before);
  const auto own = before->own_s;
  while (core_use()->own_s < own + 0.02) {
  }
  EXPECT_GE(core_use()->all_s, before->all_s);
}

}  // namespace
}  // namespace heddle
