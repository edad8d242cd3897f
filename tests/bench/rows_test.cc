// What all suites of `heddle bench` share: parts, bounds, stops and failures.
#include "rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/temporary_file.h"
#include "plan/workload_support.h"
#include "suites.h"

namespace heddle::bench {
namespace {

const BenchSuite& suite_named(std::string_view name) {
  return *std::ranges::find(bench_suites(), name, &BenchSuite::name);
}

BenchRow some_row(double value) { return bench_row("some", "instance", "", "time", "ms", value); }

// A suite of three instances, of which the second raises `cancel` or fails.
CancelToken* to_cancel = nullptr;
Status three_instances(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  for (int i = 0; i < 3; ++i)
    HEDDLE_RETURN_IF_ERROR(whole_instance(control, rows, [&]() -> Status {
      if (i == 1 && options.seed == 2) return infeasible("no plan fits");
      if (i == 1 && to_cancel != nullptr) to_cancel->cancel();
      rows.push_back(some_row(i));
      return {};
    }));
  return {};
}
std::vector<std::string> one_part() { return {"planning"}; }
constexpr BenchSuite kThree{"three", "", kOnlyFlag | kSeedFlag, one_part, nullptr, three_instances};

Status beyond_bounds(const BenchOptions&, const Control&, std::vector<BenchRow>& rows) {
  for (const double value : {1 + 1e-12, 1 - 1e-12, 1.01, .99}) {
    rows.push_back(some_row(value));
    rows.back().at_least(1);
    rows.push_back(some_row(value));
    rows.back().at_most(1);
  }
  return {};
}
constexpr BenchSuite kBeyond{"beyond", "", 0, one_part, nullptr, beyond_bounds};

TEST(BenchRows, AValueBeyondItsBoundFails) {
  const auto run = run_suite(kBeyond, {}, {});
  EXPECT_EQ(run.status.error().code(), Code::kInternal);
  EXPECT_NE(run.status.error().message().find("beyond the bound of 1"), std::string::npos);
  std::vector<bool> fails;
  for (const auto& row : run.rows) fails.push_back(row.fails);
  EXPECT_EQ(fails, (std::vector<bool>{false, false, false, false, false, true, true, false}));
  const auto json = rows_json(run.rows);
  EXPECT_EQ(json[0]["bound_is"], "lower");
  EXPECT_EQ(json[5]["bound_is"], "upper");
  EXPECT_EQ(json[5]["fails"], true);
  EXPECT_EQ(json[4]["fails"], false);
  EXPECT_NE(rows_text({run.rows[5]}).find("beyond"), std::string::npos);
  EXPECT_NE(rows_text({run.rows[4]}).find("1.0 %"), std::string::npos);
}

TEST(BenchRows, AStopKeepsWholeInstances) {
  CancelToken cancel;
  to_cancel = &cancel;
  const auto run = run_suite(kThree, {}, {.cancel = cancel});
  to_cancel = nullptr;
  EXPECT_TRUE(run.status.ok());
  ASSERT_EQ(run.rows.size(), 1U);
  EXPECT_EQ(run.rows[0].value, 0);
}

TEST(BenchRows, AFailureKeepsTheRowsBeforeIt) {
  BenchOptions options;
  options.seed = 2;
  const auto run = run_suite(kThree, options, {});
  ASSERT_FALSE(run.status.ok());
  EXPECT_EQ(run.status.error().code(), Code::kInfeasible);
  EXPECT_EQ(run.rows.size(), 1U);
}

TEST(BenchRows, MisspeltPartsAreRefusedBesideRightOnes) {
  BenchOptions options;
  options.only = {"planning", "planing"};
  const auto run = run_suite(kThree, options, {});
  ASSERT_FALSE(run.status.ok());
  EXPECT_NE(run.status.error().message().find(
                "--only planing: the suite has no such part (did you mean 'planning'?)"),
            std::string::npos)
      << run.status.error().message();
  for (const auto& suite : bench_suites()) {
    if ((suite.flags & kOnlyFlag) == 0 || suite.further_parts != nullptr) continue;
    BenchOptions unknown;
    unknown.only = {suite.parts()[0] + "x"};
    const auto refused = run_suite(suite, unknown, {});
    EXPECT_FALSE(refused.status.ok()) << suite.name;
    EXPECT_TRUE(refused.rows.empty()) << suite.name;
  }
}

class PpipeSuite : public testing::Test {
 protected:
  void SetUp() override {
    options_.input = test::public_data("ppipe");
    if (!file_exists(options_.input)) GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
  }
  std::string error_of(const std::vector<std::string>& only) {
    options_.only = only;
    const auto run = run_suite(suite_named("ppipe"), options_, {});
    EXPECT_TRUE(run.rows.empty());
    return run.status.ok() ? "" : run.status.error().to_string();
  }
  BenchOptions options_;
};

TEST_F(PpipeSuite, UnknownInstancesAreRefused) {
  EXPECT_NE(error_of({"attainment", "HC1-L/G9"}).find("HC1-L/G9: the suite has no such part"),
            std::string::npos);
  EXPECT_NE(error_of({"attainments", "HC1-L/G1"}).find("did you mean 'attainment'?"), std::string::npos);
  const TemporaryFile picture("bench-picture.svg");
  std::filesystem::remove(picture.path());
  options_.picture = picture.path();
  EXPECT_NE(error_of({"attainment", "HC1-S/G1"}).find("none of the instances"), std::string::npos);
  EXPECT_NE(error_of({"plans"}).find("--picture"), std::string::npos);
  EXPECT_FALSE(file_exists(picture.path()));
}

TEST_F(PpipeSuite, PartsThatPlayPublishedPlansNeedTheirPools) {
  const TemporaryFile copy("bench-ppipe");
  std::filesystem::remove(copy.path());
  std::filesystem::create_directory(copy.path());
  for (const auto& entry : std::filesystem::directory_iterator(options_.input))
    if (entry.path().filename() != "ppipe_reference_pools.csv")
      std::filesystem::copy(entry.path(), std::filesystem::path(copy.path()) / entry.path().filename());
  options_.input = copy.path();
  EXPECT_NE(error_of({"attainment", "HC1-L/G1"}).find("ppipe_reference_pools.csv: there is no such file"),
            std::string::npos);
  options_.only = {"plans", "HC1-L/G1"};
  const auto run = run_suite(suite_named("ppipe"), options_, {});
  EXPECT_TRUE(run.status.ok());
  EXPECT_GE(run.rows.size(), 6U);
  std::filesystem::remove_all(copy.path());
}

}  // namespace
}  // namespace heddle::bench
