// The log's forms and levels.
#include "heddle/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle {
namespace {

using ::testing::MatchesRegex;

// What `write` writes to standard error.
template <class Write>
std::string logged(const Write& write) {
  ::testing::internal::CaptureStderr();
  write();
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, IsSilentUntilTheProgramBeginsIt) {
  EXPECT_FALSE(logs(LogLevel::kError));
  EXPECT_FALSE(log_is_stamped());
  EXPECT_EQ(logged([] { log_line(LogLevel::kError, "lost"); }), "");
}

TEST(Log, StampsLinesAndLeavesOutLowerLevels) {
  set_log(LogLevel::kWarning, LogForm::kStamped);
  EXPECT_TRUE(log_is_stamped());
  const auto text = logged([] {
    log_line(LogLevel::kInfo, "left out");
    log_debug([]() -> std::string { throw std::runtime_error("a text that nobody sees is not made"); });
    log_line(LogLevel::kWarning, "one");
    log_line(LogLevel::kError, "two");
  });
  constexpr const char* kTime =
      "20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9][0-9][0-9]Z";
  EXPECT_THAT(text, MatchesRegex(std::string(kTime) + " warning one\n" + kTime + " error two\n"));
}

TEST(Log, ShowsSecondsWithVerbose) {
  set_log(LogLevel::kDebug, LogForm::kElapsed);
  EXPECT_FALSE(log_is_stamped());
  EXPECT_THAT(logged([] { log_debug([] { return std::string("a step"); }); }),
              MatchesRegex(" +0\\.[0-9][0-9][0-9] s  a step\n"));
}

TEST(Log, ATextCanNeitherBeginALineNorCommandTheTerminal) {
  set_log(LogLevel::kDebug, LogForm::kStamped);
  EXPECT_THAT(logged([] { log_line(LogLevel::kInfo, "a\nb\r\x1b[2Jc\x7f"); }),
              MatchesRegex(".*Z info a b\\?\\?\\[2Jc\\?\n"));
}

TEST(Log, LevelsHaveNames) {
  EXPECT_EQ(log_level("warning"), LogLevel::kWarning);
  EXPECT_EQ(log_level("error"), LogLevel::kError);
  EXPECT_EQ(log_level("warn"), std::nullopt);
}

}  // namespace
}  // namespace heddle
