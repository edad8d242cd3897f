// A small share of `heddle bench solvers`.
#include <gtest/gtest.h>

#include "suites.h"

namespace heddle::bench {
namespace {

double total(const std::vector<BenchRow>& rows, const std::string& metric) {
  double sum = 0;
  for (const BenchRow& row : rows) sum += row.metric == metric ? row.value : 0;
  return sum;
}

TEST(SolversBench, FindsNoContradiction) {
  BenchOptions options;
  options.instances = 60;
  std::vector<BenchRow> rows;
  const auto status = bench_solvers(options, {}, rows);
  if (!status.ok() && status.error().code() == Code::kUnsupported) GTEST_SKIP() << status.error().to_string();
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  for (const BenchRow& row : rows) EXPECT_FALSE(row.fails) << row.instance << ": " << row.metric;
  EXPECT_EQ(total(rows, "models"), 60);
  EXPECT_EQ(total(rows, "contradictions"), 0);
  // Each model has at least both solvers' or both settings' answers, many also the truth.
  EXPECT_GE(total(rows, "answers"), 120);
  EXPECT_GE(total(rows, "models with all solutions tried"), 30);
}

TEST(SolversBench, RunsOnlyTheNamedParts) {
  BenchOptions options;
  options.instances = 4;
  options.only = {"shapes"};
  std::vector<BenchRow> rows;
  const auto status = bench_solvers(options, {}, rows);
  if (!status.ok() && status.error().code() == Code::kUnsupported) GTEST_SKIP() << status.error().to_string();
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_EQ(total(rows, "models"), 4);
  for (const BenchRow& row : rows) EXPECT_EQ(row.instance, "shapes");
}

}  // namespace
}  // namespace heddle::bench
