// What `heddle --version` prints, and how logs begin.
#pragma once

#include <string>

#include "heddle/base/log.h"

namespace heddle::cli {

// Version, commit and build options, a few lines without a last line break.
std::string build_text();
// set_log(), and as the first line at level debug the build.
void begin_log(LogLevel least, LogForm form);

}  // namespace heddle::cli
