// Completion scripts: words for verbs and flags, and file names for values.
#pragma once

#include <string>

#include "command_tree.h"

namespace heddle::cli {

std::string bash_completion(const CommandInfo& program);
std::string zsh_completion(const CommandInfo& program);
std::string fish_completion(const CommandInfo& program);

}  // namespace heddle::cli
