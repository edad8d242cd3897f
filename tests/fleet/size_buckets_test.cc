// Choosing the sizes that a model is compiled for: the dynamic program against all choices, and refusals.
#include "heddle/fleet/size_buckets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "heddle/base/random.h"

namespace heddle {
namespace {

using Numbers = std::vector<double>;

double expected_time(const Numbers& weight, const Numbers& us, const std::vector<size_t>& chosen) {
  double time = 0, all = 0;
  for (size_t i = 0; i < weight.size(); ++i) {
    const auto bucket = std::lower_bound(chosen.begin(), chosen.end(), i);
    time += weight[i] * us[*bucket];
    all += weight[i];
  }
  return time / all;
}

// Over all sets of sizes that have the largest.
double least_of_all(const Numbers& weight, const Numbers& us, int most) {
  const size_t n = weight.size();
  double least = std::numeric_limits<double>::infinity();
  for (uint32_t set = 0; set < (1U << (n - 1)); ++set) {
    if (std::popcount(set) + 1 > most) continue;
    std::vector<size_t> chosen;
    for (size_t i = 0; i + 1 < n; ++i)
      if ((set >> i & 1) != 0) chosen.push_back(i);
    chosen.push_back(n - 1);
    least = std::min(least, expected_time(weight, us, chosen));
  }
  return least;
}

TEST(SizeBuckets, ByHand) {
  // 90 requests of 10 us, 10 of 100 us. One bucket: 100 us each. Two: 0.9 * 10 + 0.1 * 100.
  const auto one = choose_buckets(Numbers{90, 10}, Numbers{10, 100}, 1);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->sizes, std::vector<size_t>{1});
  EXPECT_DOUBLE_EQ(one->expected_us, 100);
  const auto two = choose_buckets(Numbers{90, 10}, Numbers{10, 100}, 2);
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two->sizes, (std::vector<size_t>{0, 1}));
  EXPECT_DOUBLE_EQ(two->expected_us, 19);
}

TEST(SizeBuckets, AreTheBestOfAllChoices) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    const size_t n = 1 + random.below(9);
    Numbers weight, us;
    double t = 0;
    for (size_t i = 0; i < n; ++i) {
      weight.push_back(static_cast<double>(random.below(20)));
      // Times that grow, as those of sizes do; in every third round any.
      t = round % 3 == 0 ? random.uniform(1, 100) : t + random.uniform(0, 10);
      us.push_back(t);
    }
    if (std::accumulate(weight.begin(), weight.end(), 0.0) == 0) weight[0] = 1;
    for (int most = 1; most <= 5; ++most) {
      const auto choice = choose_buckets(weight, us, most);
      ASSERT_TRUE(choice.ok()) << choice.error().to_string();
      EXPECT_LE(choice->sizes.size(), static_cast<size_t>(most));
      EXPECT_EQ(choice->sizes.back(), n - 1);
      EXPECT_TRUE(std::is_sorted(choice->sizes.begin(), choice->sizes.end()));
      EXPECT_NEAR(choice->expected_us, expected_time(weight, us, choice->sizes), 1e-9);
      EXPECT_NEAR(choice->expected_us, least_of_all(weight, us, most), 1e-9);
    }
  }
}

TEST(SizeBuckets, NoMoreThanHelp) {
  // All sizes take the same time, so one bucket is as good as four.
  const auto choice = choose_buckets(Numbers{1, 2, 3, 4}, Numbers{5, 5, 5, 5}, 4);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->sizes, std::vector<size_t>{3});
}

TEST(SizeBuckets, RefusesWhatIsNoDistribution) {
  const auto refusal = [](const Numbers& weight, const Numbers& us, int most) {
    const auto choice = choose_buckets(weight, us, most);
    return choice.ok() ? std::string("accepted") : choice.error().message();
  };
  EXPECT_EQ(refusal({}, {}, 1),
            "buckets are chosen from 1 to 2048 sizes with a weight and a time each, not from 0");
  EXPECT_NE(refusal({1}, {1, 2}, 1), "accepted");
  EXPECT_NE(refusal(Numbers(kMostBucketSizes + 1, 1), Numbers(kMostBucketSizes + 1, 1), 1), "accepted");
  EXPECT_EQ(refusal({1}, {1}, 0), "expected 1 to 64 buckets, not 0");
  EXPECT_EQ(refusal({1}, {1}, 65), "expected 1 to 64 buckets, not 65");
  EXPECT_EQ(refusal({1, -1}, {1, 1}, 1), "size 1 has a weight or a time that is no number from 0");
  EXPECT_EQ(refusal({1, 1}, {NAN, 1}, 1), "size 0 has a weight or a time that is no number from 0");
  EXPECT_EQ(refusal({0, 0}, {1, 1}, 1), "no size has a weight above 0");
}

TEST(SizeBuckets, TimesBetweenMeasuredSizesLieOnALine) {
  const std::vector<CurvePoint> points = {{10, 100}, {20, 300}};
  EXPECT_DOUBLE_EQ(on_curve(points, 15), 200);
  EXPECT_DOUBLE_EQ(on_curve(points, 10), 100);
  EXPECT_DOUBLE_EQ(on_curve(points, 5), 50);
  EXPECT_DOUBLE_EQ(on_curve(points, 40), 600);
}

}  // namespace
}  // namespace heddle
