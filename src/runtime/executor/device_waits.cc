#include <algorithm>

#include "program.h"

namespace heddle {

// Successors of an enqueueing task wait for its event. A blocking task has itself waited for its
// predecessors. An instant task passes on its predecessors' events.
Rows waits_of(const std::vector<Task>& tasks, const std::vector<std::pair<int32_t, int32_t>>& edges) {
  std::vector<std::pair<int32_t, int32_t>> backwards;
  for (const auto& [from, to] : edges) backwards.emplace_back(to, from);
  const Rows before = Rows::from_pairs(tasks.size(), std::move(backwards));
  std::vector<std::vector<int32_t>> handed_on(tasks.size());
  std::vector<std::pair<int32_t, int32_t>> waits;
  for (size_t t = 0; t < tasks.size(); ++t) {
    std::vector<int32_t> own;
    for (const int32_t p : before[t]) {
      if (tasks[static_cast<size_t>(p)].enqueue != Enqueue::kNothing) {
        own.push_back(p);
      } else {
        const auto& further = handed_on[static_cast<size_t>(p)];
        own.insert(own.end(), further.begin(), further.end());
      }
    }
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    for (const int32_t p : own) waits.emplace_back(static_cast<int32_t>(t), p);
    if (tasks[t].enqueue == Enqueue::kNothing && tasks[t].action == Action::kInstant)
      handed_on[t] = std::move(own);
  }
  return Rows::from_pairs(tasks.size(), std::move(waits));
}

}  // namespace heddle
