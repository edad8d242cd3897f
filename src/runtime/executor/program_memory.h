// Accounts for tensors in limited memory that is not really allocated.
#pragma once

#include <unordered_map>

#include "program.h"

namespace heddle {

// Fills stays, takes, releases and held of a program with final tasks. `run_task`: this rank's tasks by
// segment. O(tasks + tensors read).
void account_memory(const ProgramInput& input, const std::unordered_map<int32_t, int32_t>& run_task,
                    Program& program);

}  // namespace heddle
