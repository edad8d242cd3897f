// A transport between ranks that are threads of one process.
#pragma once

#include <memory>
#include <vector>

#include "heddle/runtime/transport.h"

namespace heddle::test {

// `ranks` endpoints; a message is copied once. Each endpoint belongs to one thread, as Transport demands.
// With `device_memory`, messages may lie in the memory of the host's stream runtimes.
std::vector<std::unique_ptr<Transport>> make_local_transports(int ranks, bool device_memory = false);

}  // namespace heddle::test
