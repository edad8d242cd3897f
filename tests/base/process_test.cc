// What belongs to the process: children, cores, temporary files; and decimal fractions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>

#include "heddle/base/child_process.h"
#include "heddle/base/decimals.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/own_cores.h"
#include "heddle/base/temporary_file.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

TEST(ChildProcess, BringsBackWhatTheWorkReturns) {
  const auto parent = ::getpid();
  const auto result = run_in_child([&]() -> Result<Json> {
    return Json{{"other", ::getpid() != parent}, {"text", std::string(200'000, 'x')}};
  });
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ((*result)["other"], true);
  EXPECT_EQ((*result)["text"].get<std::string>().size(), 200'000U);
}

TEST(ChildProcess, ReportsErrorsExceptionsAndItsEnd) {
  const auto error = [](const std::function<Result<Json>()>& work) {
    const auto result = run_in_child(work);
    return result.ok() ? Error(Code::kInternal, "no error") : result.error();
  };
  const Error own = error([]() -> Result<Json> { return Error(Code::kUnsupported, "not here"); });
  EXPECT_EQ(own.code(), Code::kUnsupported);
  EXPECT_THAT(own.to_string(), HasSubstr("not here"));
  EXPECT_THAT(error([]() -> Result<Json> { throw std::runtime_error("thrown"); }).to_string(),
              HasSubstr("thrown"));
  EXPECT_THAT(error([]() -> Result<Json> { ::_exit(0); }).to_string(), HasSubstr("ended early"));
  const Error killed = error([]() -> Result<Json> {
    ::raise(SIGKILL);
    return Json();
  });
  EXPECT_EQ(killed.code(), Code::kInfeasible);
  EXPECT_THAT(killed.to_string(), HasSubstr("memory"));
  for (const int signal : {SIGINT, SIGTERM}) {
    const Error interrupted = error([signal]() -> Result<Json> {
      ::raise(signal);
      return Json();
    });
    EXPECT_EQ(interrupted.code(), Code::kCancelled);
  }
}

TEST(OwnCores, AreAscending) {
  const auto cores = own_cores();
  ASSERT_FALSE(cores.empty());
  EXPECT_TRUE(std::ranges::is_sorted(cores));
  EXPECT_GE(cores.front(), 0);
}

TEST(TemporaryFile, GoesWithItsOwner) {
  std::string path;
  {
    const TemporaryFile file("heddle-temporary-file-test");
    path = file.path();
    ASSERT_TRUE(write_file_atomic(path, "x").ok());
    EXPECT_TRUE(file_exists(path));
  }
  EXPECT_FALSE(file_exists(path));
}

TEST(Decimals, FindTheLeastPowerOfTen) {
  const double thirds[] = {1.0 / 3}, tenths[] = {0.1, 2, 3.7}, whole[] = {5, 7},
               thousandths[] = {0.25, 1.125};
  EXPECT_EQ(decimal_scale(whole, 3), 1);
  EXPECT_EQ(decimal_scale(tenths, 3), 10);
  EXPECT_EQ(decimal_scale(thousandths, 3), 1000);
  EXPECT_EQ(decimal_scale(thousandths, 2), std::nullopt);
  EXPECT_EQ(decimal_scale(thirds, kMostDecimals), std::nullopt);
  EXPECT_TRUE(is_whole_at(0.3, 10));
  EXPECT_FALSE(is_whole_at(0.3, 1));
}

}  // namespace
}  // namespace heddle
