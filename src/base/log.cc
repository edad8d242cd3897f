#include "heddle/base/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "heddle/base/terminal.h"
#include "heddle/base/utc.h"

namespace heddle {
namespace {

using LogClock = std::chrono::steady_clock;

constexpr int kNothing = 4;  // above all levels
constexpr Ink kLevelInks[] = {Ink::kDim, Ink::kGreen, Ink::kYellow, Ink::kRed};

std::atomic<int> least_level{kNothing};
LogForm log_form = LogForm::kElapsed;
LogClock::time_point log_begin;

}  // namespace

std::optional<LogLevel> log_level(std::string_view name) {
  const auto* at = std::ranges::find(kLogLevelNames, name);
  if (at == std::end(kLogLevelNames)) return std::nullopt;
  return static_cast<LogLevel>(at - std::begin(kLogLevelNames));
}

void set_log(LogLevel least, LogForm form) {
  log_form = form;
  log_begin = LogClock::now();
  least_level = static_cast<int>(least);
}

void stop_log() { least_level = kNothing; }

bool logs(LogLevel level) { return static_cast<int>(level) >= least_level; }

bool log_is_stamped() { return least_level != kNothing && log_form == LogForm::kStamped; }

void log_line(LogLevel level, const std::string& text) {
  if (!logs(level)) return;
  std::string line = one_line(text);
  const auto rank = static_cast<size_t>(level);
  if (log_form == LogForm::kStamped) {
    line = utc_now_ms() + " " + painted_error(kLevelInks[rank], kLogLevelNames[rank]) + " " + line;
  } else {
    const double elapsed = std::chrono::duration<double>(LogClock::now() - log_begin).count();
    line = painted_error(Ink::kDim, fmt::format("{:8.3f} s", elapsed)) + "  " + line;
  }
  // A progress line gives way; its next update draws it again.
  write_stderr((is_terminal(STDERR_FILENO) ? "\r\x1b[K" : "") + line + "\n");
}

}  // namespace heddle
