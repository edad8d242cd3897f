// What this process may use of the machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// The logical CPUs that this process may use, ordered so that those of one package and one physical core are
// adjacent, and cut to what the cgroup's CPU quota pays for (rounded down, at least one). Never empty.
std::vector<int> usable_cores();
// The least of physical memory and the cgroup's limits.
int64_t usable_memory_bytes();
std::string cpu_model_name();

// For tests: the CPUs that a quota pays for, from the text of "cpu.max" ("200000 100000", "max 100000"); 0:
// no limit.
double cpus_of_cpu_max(std::string_view text);

}  // namespace heddle
