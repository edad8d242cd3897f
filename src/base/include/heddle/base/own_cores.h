// The cores that the calling thread may run on.
#pragma once

#include <vector>

namespace heddle {

// Core numbers, ascending; {0} if the system does not tell.
std::vector<int> own_cores();

}  // namespace heddle
