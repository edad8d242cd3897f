// Where memory is limited and nothing is really allocated: which tensors stay in it, and until when.
#pragma once

#include <unordered_map>

#include "program.h"

namespace heddle {

// Fills stays, takes, releases and held of a program whose tasks are final. `run_task`: the tasks of segments
// that this rank runs. O(tasks + tensors read).
void account_memory(const ProgramInput& input, const std::unordered_map<int32_t, int32_t>& run_task,
                    Program& program);

}  // namespace heddle
