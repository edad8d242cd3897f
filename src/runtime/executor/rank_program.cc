#include "rank_program.h"

#include <algorithm>

namespace heddle {

RankPart part_of_rank(const WholeProgram& whole, int self) {
  const auto owner = [&](int32_t task) { return whole.owner[static_cast<size_t>(task)]; };
  std::vector<std::pair<int32_t, int32_t>> notices;  // (task, rank), in the plan's order
  for (const auto& [before, after] : whole.edges) {
    if (owner(before) != owner(after)) notices.emplace_back(before, owner(after));
  }
  for (size_t t = 0; t < whole.tasks.size(); ++t) {
    if (whole.tasks[t].action == Action::kSend)
      notices.emplace_back(static_cast<int32_t>(t), whole.to_rank[t]);
  }
  std::sort(notices.begin(), notices.end());
  notices.erase(std::unique(notices.begin(), notices.end()), notices.end());

  RankPart part;
  part.messages = static_cast<int32_t>(notices.size());
  part.from_whole.assign(whole.tasks.size(), -1);
  std::vector<int32_t> arrival(whole.tasks.size(), -1);
  size_t next = 0;
  for (size_t t = 0; t < whole.tasks.size(); ++t) {
    const Task& task = whole.tasks[t];
    const bool own = whole.owner[t] == self;
    const auto here = static_cast<int32_t>(part.tasks.size());
    if (own) {
      part.from_whole[t] = here;
      part.tasks.push_back(task);
    }
    for (; next < notices.size() && notices[next].first == static_cast<int32_t>(t); ++next) {
      const int32_t to = notices[next].second;
      const bool carries = task.action == Action::kSend && whole.to_rank[t] == to;
      Message message{.number = static_cast<int32_t>(next),
                      .tensor = carries ? whole.carried[t].tensor : -1,
                      .memory = own ? whole.carried[t].from_memory : whole.carried[t].to_memory};
      if (own) {
        message.peer = to;
        message.task = carries ? here : -1;
        const auto index = static_cast<int32_t>(part.sends.size());
        if (carries)
          part.tasks.back().message = index;
        else
          part.signals.emplace_back(here, index);
        part.sends.push_back(message);
      } else if (to == self) {
        message.peer = whole.owner[t];
        message.task = here;
        arrival[t] = here;
        part.receives.push_back(message);
        // The destination records the time of a transfer; other tasks are recorded by their own rank.
        part.tasks.push_back({.plan_step = whole.to_rank[t] == self ? task.plan_step : -1, .arrival = true});
      }
    }
  }
  for (const auto& [before, after] : whole.edges) {
    if (owner(after) != self) continue;
    const auto at = static_cast<size_t>(before);
    part.edges.emplace_back(owner(before) == self ? part.from_whole[at] : arrival[at],
                            part.from_whole[static_cast<size_t>(after)]);
  }
  return part;
}

int64_t message_bytes(const Graph& graph, const Message& message) {
  return message.tensor < 0 ? 0 : graph.tensors()[static_cast<size_t>(message.tensor)].bytes;
}

int64_t widest_message(const Graph& graph, const Program& program) {
  int64_t widest = 0;
  for (const auto* list : {&program.sends, &program.receives}) {
    for (const Message& m : *list) widest = std::max(widest, message_bytes(graph, m));
  }
  return widest;
}

}  // namespace heddle
