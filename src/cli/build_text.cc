// Compiled apart from the other sources: a new commit compiles this file alone.
#include "build_text.h"

#include "heddle/base/version.h"

namespace heddle::cli {
namespace {

// "" where there was no git at build time.
constexpr char kCommit[] =
#include "heddle_commit.inc"
    ;

}  // namespace

std::string build_text() {
  const std::string commit = *kCommit == '\0' ? "" : std::string(" (commit ") + kCommit + ")";
  return std::string("heddle ") + kVersion + commit + "\n" + HEDDLE_BUILD_OPTIONS;
}

void begin_log(LogLevel least, LogForm form) {
  set_log(least, form);
  log_debug([] { return build_text(); });
}

}  // namespace heddle::cli
