// A short run of `heddle bench scale`.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "suites.h"

namespace heddle::bench {
namespace {

TEST(ScaleBench, NamesTheFirstBottleneckOfEachSize) {
  BenchOptions options;
  options.time_limit_s = .3;
  std::vector<BenchRow> rows;
  const auto status = bench_scale(options, {}, rows);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  struct Size {
    double least = 0, offered = 0, servers = 0;
    std::string bottleneck, least_part;
  };
  std::map<std::string, Size> sizes;
  for (const BenchRow& row : rows) {
    EXPECT_GT(row.value, 0) << row.instance << ": " << row.metric;
    auto& size = sizes[row.instance];
    const std::string needed = "servers needed; first bottleneck: ";
    if (row.metric.starts_with(needed)) {
      size.servers = row.value;
      size.bottleneck = row.metric.substr(needed.size());
    } else if (row.baseline == "requests at load 0.8") {
      size.offered = *row.baseline_value;
      if (size.least == 0 || row.value < size.least) {
        size.least = row.value;
        size.least_part = row.metric;
      }
    }
  }
  ASSERT_EQ(sizes.size(), 3U);
  for (const auto& [name, size] : sizes) {
    EXPECT_EQ(size.bottleneck, size.least_part) << name;
    EXPECT_GE(size.servers * size.least, size.offered) << name;
    EXPECT_LT((size.servers - 1) * size.least, size.offered) << name;
  }
}

}  // namespace
}  // namespace heddle::bench
