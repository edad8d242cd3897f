// The part of the machine that this process may use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// The logical CPUs that this process may use. CPUs of one package and one physical core are adjacent. The
// list is cut to the cgroup's CPU quota (rounded down, at least one). Never empty.
std::vector<int> usable_cores();
// The minimum of physical memory and the cgroup's limits.
int64_t usable_memory_bytes();
std::string cpu_model_name();

// For tests: the CPUs of a quota, from the text of "cpu.max" ("200000 100000", "max 100000"); 0: no limit.
double cpus_of_cpu_max(std::string_view text);

}  // namespace heddle
