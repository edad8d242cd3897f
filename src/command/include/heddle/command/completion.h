// Completion scripts: words for verbs and flags, and file names for values.
#pragma once

#include <string>

#include "heddle/command/command_tree.h"

namespace heddle {

std::string bash_completion(const CommandInfo& program);
std::string zsh_completion(const CommandInfo& program);
std::string fish_completion(const CommandInfo& program);

}  // namespace heddle
