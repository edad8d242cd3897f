#include "heddle/base/quantiles.h"

#include <gtest/gtest.h>

#include <vector>

namespace heddle {
namespace {

TEST(Quantiles, AreInterpolatedBetweenSortedSamples) {
  const std::vector<double> samples = {40, 10, 30, 20};
  EXPECT_EQ(quantile_us(samples, 0), 10);
  EXPECT_EQ(quantile_us(samples, 1), 40);
  EXPECT_EQ(median_us(samples), 25);
  EXPECT_DOUBLE_EQ(quantile_us(samples, .9), 37);
  const std::vector<double> one = {7};
  EXPECT_EQ(quantile_us(one, .99), 7);
  EXPECT_EQ(median_us({}), 0);
}

}  // namespace
}  // namespace heddle
