#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <thread>
#include <type_traits>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/ids.h"
#include "heddle/base/random.h"

namespace heddle {
namespace {

TEST(Deadline, NeverIsNever) {
  const Deadline deadline;
  EXPECT_FALSE(deadline.should_stop());
  EXPECT_TRUE(std::isinf(deadline.seconds_left()));
  EXPECT_FALSE(Deadline::after_seconds(1e300).should_stop());
  EXPECT_FALSE(Deadline::after_seconds(std::numeric_limits<double>::infinity()).expired());
}

TEST(Deadline, ThePastHasExpired) {
  for (const double seconds : {0.0, -1.0}) {
    const Deadline deadline = Deadline::after_seconds(seconds);
    EXPECT_TRUE(deadline.expired());
    EXPECT_TRUE(deadline.should_stop());
    EXPECT_EQ(deadline.seconds_left(), 0);
    EXPECT_FALSE(deadline.cancelled());
  }
}

TEST(Deadline, CopiesShareTheFlagAndOtherTokensDoNot) {
  const CancelToken token;
  const Deadline first = Deadline::never(token), second = Deadline::after_seconds(1000, token), other;
  const Deadline third = first.sooner(1000);
  std::thread([token] { token.cancel(); }).join();
  EXPECT_TRUE(first.should_stop());
  EXPECT_TRUE(second.should_stop());
  EXPECT_TRUE(third.cancelled());
  EXPECT_EQ(second.seconds_left(), 0);
  EXPECT_FALSE(other.should_stop());
}

TEST(Deadline, SoonerNeverPutsTheEndOff) {
  EXPECT_LE(Deadline::after_seconds(10).sooner(1000).seconds_left(), 10);
  EXPECT_LE(Deadline::after_seconds(1000).sooner(10).seconds_left(), 10);
  EXPECT_GT(Deadline().sooner(1000).seconds_left(), 100);
  EXPECT_TRUE(Deadline::after_seconds(0).sooner(1000).expired());
}

TEST(Random, GivesTheSameNumbersEverywhere) {
  // Of the published algorithms, splitmix64 and xoshiro256**: plans that were made with a seed rely on them.
  Random random(0);
  EXPECT_EQ(random.next(), 0x99ec5f36cb75f2b4ULL);
  EXPECT_EQ(random.next(), 0xbf6e1f784956452aULL);
  EXPECT_EQ(random.next(), 0x1a5f849d4933e6e0ULL);
}

TEST(Random, BelowIsInRangeAndReachesEveryValue) {
  Random random(5);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts.at(random.below(7));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(random.below(1), 0u);
}

TEST(Random, BetweenIncludesBothEndsEvenOfTheWholeRange) {
  Random random(6);
  bool low = false, high = false;
  for (int i = 0; i < 200; ++i) {
    const int64_t x = random.between(-1, 1);
    low |= x == -1;
    high |= x == 1;
    EXPECT_TRUE(x >= -1 && x <= 1);
  }
  EXPECT_TRUE(low && high);
  EXPECT_EQ(random.between(INT64_MAX, INT64_MAX), INT64_MAX);
}

TEST(Random, UnitIsBelowOneAndShuffleKeepsTheElements) {
  Random random(7);
  for (int i = 0; i < 10000; ++i) {
    const double x = random.unit();
    EXPECT_TRUE(x >= 0 && x < 1);
  }
  std::vector<int> v = {1, 2, 3, 4, 5, 6, 7, 8};
  auto shuffled = v;
  random.shuffle(shuffled);
  EXPECT_NE(shuffled, v);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, v);
}

TEST(Id, DefaultIsInvalidAndOrderIsThatOfTheIndex) {
  EXPECT_FALSE(OpId().valid());
  EXPECT_TRUE(OpId(size_t{3}).valid());
  EXPECT_EQ(OpId(3).index(), 3u);
  EXPECT_LT(OpId(2), OpId(3));
  static_assert(!std::is_convertible_v<OpId, DeviceId>);
}

}  // namespace
}  // namespace heddle
