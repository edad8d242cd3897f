// heddle server status --watch: a served fleet as it goes on.
#pragma once

#include "heddle/command/command.h"
#include "heddle/serve/load.h"

namespace heddle::cli {

// Shows the status each `seconds` until Ctrl-C, on a terminal always in the same place. A server that does not answer
// the first time is an error; later it is waited for.
Result<int> watch_status(const LoadTarget& target, double seconds, const Invocation& invocation);

}  // namespace heddle::cli
