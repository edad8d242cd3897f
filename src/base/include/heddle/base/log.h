// Lines about the work of the program on standard error: the log of servers, and the lines of --verbose.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };
inline constexpr const char* kLogLevelNames[] = {"debug", "info", "warning", "error"};
std::optional<LogLevel> log_level(std::string_view name);

enum class LogForm : uint8_t {
  kElapsed,  // "   0.531 s  TEXT": seconds since set_log()
  kStamped,  // "2026-11-25T10:07:07.123Z warning TEXT"
};

// Lines of `least` and above are written from now on; before the first call none are, so that a library is silent. Not
// thread-safe: for the start of a program.
void set_log(LogLevel least, LogForm form);
// No line is written any more, until set_log(). Not thread-safe either.
void stop_log();
bool logs(LogLevel level);
// Whether lines have time stamps, so that all other lines of standard error should go through log_line().
bool log_is_stamped();

// Writes one line by one call, so that lines of several threads do not mix. Thread-safe. Control characters become
// blanks: a client's text can neither begin a line nor command the terminal.
void log_line(LogLevel level, const std::string& text);

// For texts that are costly to make.
template <class MakeText>
void log_debug(const MakeText& text) {
  if (logs(LogLevel::kDebug)) log_line(LogLevel::kDebug, text());
}

}  // namespace heddle
