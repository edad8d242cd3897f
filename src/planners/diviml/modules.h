// Modules of a network: DiviML, section IV-B. Cutting where few channels lead on gives parts that are
// scheduled one after another.
#pragma once

#include <vector>

#include "task_model.h"

namespace heddle {

struct Modules {
  std::vector<std::vector<uint32_t>> tasks;  // per module, by topological position; modules in order
  // Per module its last task when everything before it is needed for it and everything after it needs it and
  // nothing bypasses it (a single channel); -1 otherwise.
  std::vector<int32_t> last;
  int channels = 1;  // the most that were allowed between two modules
  // All cuts are single channels: a schedule falls apart into those of the modules (for one request).
  bool single_channel() const;
  size_t largest() const;
};

// Tasks that everything passes: those before lead to them, those after depend on them, no edge bypasses them.
// Where the graph has one source and one sink these are both, the articulation points and the ends of
// bridges. O(V + E).
std::vector<uint32_t> passing_tasks(const TaskModel& model);

// Cuts after the passing tasks. Where a module has more than `most_tasks`, it is cut again where at most c
// edges cross: members of a (c+1)-edge-connected component are never parted, for no c edges do. The least c
// (up to 8) that makes all modules small enough, or the largest one smallest.
Modules find_modules(const TaskModel& model, size_t most_tasks);

}  // namespace heddle
