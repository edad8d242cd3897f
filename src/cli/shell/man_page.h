// The manual page heddle(1).
#pragma once

#include <string>

#include "command_tree.h"

namespace heddle::cli {

std::string man_page(const CommandInfo& program);

}  // namespace heddle::cli
