// What `heddle --version` prints.
#pragma once

#include <string>

namespace heddle::cli {

// Version, commit and build options, a few lines without a last line break.
std::string build_text();

}  // namespace heddle::cli
