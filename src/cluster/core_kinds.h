// Core sets of one size that take different times: of unequal cores, or of fewer physical ones.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace heddle {

// Where a logical CPU is. Two of one package and core share a physical core.
struct CorePlace {
  int64_t package = 0, core = 0;
  std::string
      kind;  // "core" and "atom" of Intel's hybrid CPUs, "capacity512" of ARM's; empty: the system names none
};
CorePlace core_place(int cpu);

// [set] Empty if all sets of its size have as many physical cores of each kind. Else these numbers, such as "2p" or
// "atom2p+core1p".
std::vector<std::string> core_kinds(const std::vector<std::vector<int>>& sets,
                                    const std::function<CorePlace(int)>& place);

}  // namespace heddle
