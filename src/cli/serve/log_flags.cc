#include "log_flags.h"

#include "build_text.h"
#include "heddle/base/log.h"
#include "heddle/runtime/transport.h"

namespace heddle::cli {

void LogFlags::declare(Command& command) {
  command.option(
      "--log-level", level,
      "log lines of this level and above on stderr: debug, info, warning or error (default info; with "
      "-q warning, with -v debug)");
}

Status LogFlags::begin(const Invocation& invocation) const {
  auto least = invocation.verbose ? LogLevel::kDebug
               : invocation.quiet ? LogLevel::kWarning
                                  : LogLevel::kInfo;
  if (!level.empty()) {
    const auto given = log_level(level);
    if (!given)
      return unknown_name("--log-level", level, {std::begin(kLogLevelNames), std::end(kLogLevelNames)});
    least = *given;
  }
  if (rank_environment().rank > 0) return {};  // of several ranks only the first writes
  begin_log(least, LogForm::kStamped);
  return {};
}

}  // namespace heddle::cli
