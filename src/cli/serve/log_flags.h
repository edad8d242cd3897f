// The log of verbs that serve.
#pragma once

#include <string>

#include "heddle/command/command.h"

namespace heddle::cli {

struct LogFlags {
  std::string level;

  void declare(Command& command);
  // From now on each line on standard error has a time stamp and a level.
  Status begin(const Invocation& invocation) const;
};

}  // namespace heddle::cli
