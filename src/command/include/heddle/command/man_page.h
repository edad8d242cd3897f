// The manual page heddle(1).
#pragma once

#include <string>

#include "heddle/command/command_tree.h"

namespace heddle {

std::string man_page(const CommandInfo& program);

}  // namespace heddle
