// How much of the cores that this process may use is used, by itself and by others.
#pragma once

#include <optional>

namespace heddle {

// Seconds of cores since some start that stays the same, by the kernel's count (Linux: /proc/stat, getrusage).
struct CoreUse {
  double all_s = 0;  // by all processes, and taken by the hypervisor for other machines
  double own_s = 0;  // by this process
};
// Of the cores that the calling thread may use. None if the kernel does not say.
std::optional<CoreUse> core_use();

}  // namespace heddle
