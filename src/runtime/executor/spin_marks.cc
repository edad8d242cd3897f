#include "program.h"

namespace heddle {

void mark_spins(std::vector<Task>& tasks, const std::vector<std::pair<int32_t, int32_t>>& uses,
                int32_t resources, size_t seats) {
  std::vector<int32_t> last(static_cast<size_t>(resources), -1);
  std::vector<int32_t> previous(seats, -1);
  for (size_t i = 0; i < uses.size();) {
    const int32_t id = uses[i].first;
    const Task& task = tasks[static_cast<size_t>(id)];
    const bool worker = task.action == Action::kBlocking;
    const int32_t before = worker ? previous[static_cast<size_t>(task.worker)] : -1;
    bool alone = worker && before >= 0;
    for (; i < uses.size() && uses[i].first == id; ++i) {
      int32_t& holder = last[static_cast<size_t>(uses[i].second)];
      alone = alone && holder == before;
      holder = id;
    }
    if (alone) tasks[static_cast<size_t>(before)].spin_after = true;
    if (worker) previous[static_cast<size_t>(task.worker)] = id;
  }
}

}  // namespace heddle
