// The cores that the calling thread may run on.
#pragma once

#include <vector>

namespace heddle {

// Their numbers, ascending; core 0 where the system does not tell.
std::vector<int> own_cores();

}  // namespace heddle
