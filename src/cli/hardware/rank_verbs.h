// What verbs do when mpirun started them on several ranks.
#pragma once

#include <string>

#include "command.h"

namespace heddle::cli {

// heddle devices: this machine of every rank, one after the other, and the links between them.
Result<int> run_devices_on_ranks(const std::string& output, const Invocation& invocation);

}  // namespace heddle::cli
