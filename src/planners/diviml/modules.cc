#include "modules.h"

#include <algorithm>
#include <map>

#include "heddle/graph/analysis.h"

namespace heddle {
namespace {

constexpr int kMostChannels = 8;
// Components by flows are for graphs of up to a few thousand ops.
constexpr size_t kMostForFlows = 2000;

// Unites groups that lie on a cycle of the quotient, and orders groups topologically (ties: least
// member). Returns each task's rank.
class GroupOrder {
 public:
  GroupOrder(const TaskModel& model, std::vector<uint32_t> group) : model_(model), group_(std::move(group)) {
    const size_t n = model.num_tasks();
    next_.resize(n);
    index_.assign(n, -1);
    low_.assign(n, 0);
    component_.assign(n, UINT32_MAX);
    for (size_t t = 0; t < n; ++t) {
      for (const TaskModel::Edge& e : model.out(t)) {
        if (group_[e.src] != group_[e.dst]) next_[group_[e.src]].push_back(group_[e.dst]);
      }
    }
    for (size_t t = 0; t < n; ++t) {
      if (index_[group_[t]] < 0) visit(group_[t]);
    }
    for (uint32_t& g : group_) g = component_[g];
  }

  // Tasks, groups contiguous, groups in topological order.
  std::vector<uint32_t> tasks() const {
    const size_t n = group_.size();
    std::vector<uint32_t> missing(n, 0), first(n, UINT32_MAX);
    std::vector<std::vector<uint32_t>> members(n), after(n);
    for (uint32_t t = 0; t < n; ++t) {
      members[group_[t]].push_back(t);
      first[group_[t]] = std::min(first[group_[t]], t);
      for (const TaskModel::Edge& e : model_.out(t)) {
        if (group_[e.dst] == group_[t]) continue;
        after[group_[t]].push_back(group_[e.dst]);
        ++missing[group_[e.dst]];
      }
    }
    std::map<uint32_t, uint32_t> ready;  // first position -> group
    for (uint32_t g = 0; g < n; ++g) {
      if (!members[g].empty() && missing[g] == 0) ready[first[g]] = g;
    }
    std::vector<uint32_t> order;
    while (!ready.empty()) {
      const uint32_t g = ready.begin()->second;
      ready.erase(ready.begin());
      order.insert(order.end(), members[g].begin(), members[g].end());
      for (const uint32_t h : after[g]) {
        if (--missing[h] == 0) ready[first[h]] = h;
      }
    }
    return order;
  }
  uint32_t group(size_t task) const { return group_[task]; }

 private:
  // Tarjan's strongly connected components (1972), without recursion on the tasks themselves.
  void visit(uint32_t root) {
    std::vector<std::pair<uint32_t, size_t>> path{{root, 0}};
    open(root);
    while (!path.empty()) {
      auto& [g, at] = path.back();
      if (at < next_[g].size()) {
        const uint32_t h = next_[g][at++];
        if (index_[h] < 0) {
          open(h);
          path.push_back({h, 0});
        } else if (component_[h] == UINT32_MAX) {
          low_[g] = std::min(low_[g], index_[h]);
        }
        continue;
      }
      const uint32_t done = g;
      path.pop_back();
      if (!path.empty()) low_[path.back().first] = std::min(low_[path.back().first], low_[done]);
      if (low_[done] != index_[done]) continue;
      for (uint32_t h = UINT32_MAX; h != done;) {
        h = stack_.back();
        stack_.pop_back();
        component_[h] = done;
      }
    }
  }
  void open(uint32_t g) {
    index_[g] = low_[g] = counter_++;
    stack_.push_back(g);
  }

  const TaskModel& model_;
  std::vector<uint32_t> group_;
  std::vector<std::vector<uint32_t>> next_;
  std::vector<int> index_, low_;
  std::vector<uint32_t> component_, stack_;
  int counter_ = 0;
};

Modules cut_after(const TaskModel& model, const std::vector<uint32_t>& passing) {
  Modules modules;
  modules.tasks.emplace_back();
  size_t next = 0;
  for (uint32_t t = 0; t < model.num_tasks(); ++t) {
    modules.tasks.back().push_back(t);
    if (next < passing.size() && passing[next] == t) {
      modules.last.push_back(static_cast<int32_t>(t));
      modules.tasks.emplace_back();
      ++next;
    }
  }
  if (modules.tasks.back().empty())
    modules.tasks.pop_back();
  else
    modules.last.push_back(-1);
  return modules;
}

// Refines the single-channel modules where at most `channels` edges cross.
Modules cut_by_channels(const TaskModel& model, const Modules& single, int channels) {
  const size_t n = model.num_tasks();
  const auto components = k_edge_connected_components(*model.flat().problem().graph, channels + 1);
  std::vector<uint32_t> module_of(n, 0), group(n);
  std::map<std::pair<uint32_t, int>, uint32_t> numbers;
  for (uint32_t m = 0; m < single.tasks.size(); ++m) {
    for (const uint32_t t : single.tasks[m]) {
      module_of[t] = m;
      group[t] = numbers.try_emplace({m, components[model.op(t, 0)]}, t).first->second;
    }
  }
  const GroupOrder groups(model, std::move(group));
  const auto order = groups.tasks();
  std::vector<uint32_t> at(n);
  for (uint32_t i = 0; i < n; ++i) at[order[i]] = i;
  Modules modules;
  modules.channels = channels;
  modules.tasks.emplace_back();
  int64_t crossing = 0;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t t = order[i];
    modules.tasks.back().push_back(t);
    crossing += static_cast<int64_t>(model.out(t).size()) - static_cast<int64_t>(model.in(t).size());
    if (i + 1 == n) break;
    const bool passed = single.last[module_of[t]] == static_cast<int32_t>(t);
    if (passed || (groups.group(t) != groups.group(order[i + 1]) && crossing <= channels)) {
      modules.last.push_back(passed ? static_cast<int32_t>(t) : -1);
      modules.tasks.emplace_back();
    }
  }
  const uint32_t end = order[n - 1];
  modules.last.push_back(single.last[module_of[end]] == static_cast<int32_t>(end) ? static_cast<int32_t>(end)
                                                                                  : -1);
  return modules;
}

// Slivers next to each other become one module while it stays small: cuts cost quality, not only time.
void merge_small(Modules& modules, size_t enough) {
  Modules merged;
  merged.channels = modules.channels;
  for (size_t m = 0; m < modules.tasks.size(); ++m) {
    const bool open = !merged.tasks.empty() && merged.last.back() < 0;
    if (open && merged.tasks.back().size() + modules.tasks[m].size() <= enough) {
      auto& to = merged.tasks.back();
      to.insert(to.end(), modules.tasks[m].begin(), modules.tasks[m].end());
      merged.last.back() = modules.last[m];
    } else {
      merged.tasks.push_back(modules.tasks[m]);
      merged.last.push_back(modules.last[m]);
    }
  }
  modules = std::move(merged);
}

}  // namespace

bool Modules::single_channel() const {
  return std::all_of(last.begin(), last.empty() ? last.end() : last.end() - 1,
                     [](int32_t t) { return t >= 0; });
}

size_t Modules::largest() const {
  size_t most = 0;
  for (const auto& m : tasks) most = std::max(most, m.size());
  return most;
}

std::vector<uint32_t> passing_tasks(const TaskModel& model) {
  const size_t n = model.num_tasks();
  size_t last_source = 0, first_sink = n, reach = 0;
  for (size_t i = 0; i < n; ++i) {
    if (model.in(i).empty()) last_source = i;
    if (model.out(i).empty()) first_sink = std::min(first_sink, i);
  }
  std::vector<uint32_t> passing;
  for (uint32_t t = 0; t < n; ++t) {
    if (reach <= t && last_source <= t && first_sink >= t) passing.push_back(t);
    for (const TaskModel::Edge& e : model.out(t)) reach = std::max<size_t>(reach, e.dst);
  }
  return passing;
}

Modules find_modules(const TaskModel& model, size_t most_tasks) {
  const Modules single = cut_after(model, passing_tasks(model));
  Modules best = single;
  if (best.largest() <= most_tasks || model.flat().num_ops() > kMostForFlows) return best;
  for (int c = 2; c <= kMostChannels; ++c) {
    Modules modules = cut_by_channels(model, single, c);
    merge_small(modules, most_tasks / 3);
    if (modules.largest() < best.largest()) best = std::move(modules);
    if (best.largest() <= most_tasks) break;
  }
  for (auto& tasks : best.tasks) std::sort(tasks.begin(), tasks.end());
  return best;
}

}  // namespace heddle
