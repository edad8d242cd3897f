#include "stage_hint.h"

namespace heddle {

StageHint::StageHint(const StageTicks& ticks, const Problem& problem, const std::vector<ListedStage>& stages)
    : position(ticks.n), device(ticks.n, UINT32_MAX), stage(ticks.n, 0) {
  const auto order = problem.graph->topological_order();
  for (size_t i = 0; i < order.size(); ++i) position[order[i].index()] = static_cast<uint32_t>(i);
  const auto& devices = ticks.r.devices;
  for (size_t s = 0; s < stages.size(); ++s) {
    const auto at = std::find(devices.begin(), devices.end(), stages[s].device);
    for (const auto& group : stages[s].groups) {
      for (const OpId v : group) {
        if (at != devices.end()) device[v.index()] = static_cast<uint32_t>(at - devices.begin());
        stage[v.index()] = static_cast<uint32_t>(s);
      }
    }
  }
  fits = time(ticks, stages.size());
}

// Stage by stage in their order.
bool StageHint::time(const StageTicks& t, size_t stages) {
  std::vector<std::vector<uint32_t>> members(stages);
  for (uint32_t v = 0; v < t.n; ++v) {
    if (device[v] == UINT32_MAX || !t.possible(v, device[v])) return false;
    members[stage[v]].push_back(v);
  }
  begin.assign(t.n, 0), own.assign(t.n, 0), piece.assign(t.n, 0), finish.assign(t.n, 0);
  std::vector<int64_t> free(t.k, 0);
  for (auto& ops : members) {
    if (ops.empty()) continue;
    std::sort(ops.begin(), ops.end(), [&](uint32_t a, uint32_t b) { return position[a] < position[b]; });
    const size_t i = device[ops[0]];
    int64_t start = 0, total = 0, end = 0;
    for (const auto& set : t.r.exclusive) {
      if (std::find(set.begin(), set.end(), i) == set.end()) continue;
      for (const uint32_t j : set) start = std::max(start, free[j]);
    }
    for (const uint32_t v : ops) {
      t.for_reads(v, [&](size_t u, int64_t bytes) {
        if (stage[u] == stage[v]) return;
        start = std::max(start, finish[u] + t.way(device[u], i, bytes));
      });
      total += t.serial(v, i);
    }
    int64_t laid = start;
    for (const uint32_t v : ops) {
      own[v] = std::max(start, t.head(v, i));
      t.for_reads(v, [&](size_t u, int64_t) {
        if (stage[u] == stage[v]) own[v] = std::max(own[v], own[u] + t.time(u, i));
      });
      piece[v] = laid;
      laid += t.work(v, i);
      end =
          std::max({end, own[v] + t.time(v, i), laid, t.shares_pay(i) ? start + total + t.overlap(v, i) : 0});
    }
    for (const uint32_t v : ops) {
      begin[v] = start, finish[v] = end;
      horizon = std::max({horizon, end, own[v] + t.tail(v, i)});
    }
    free[i] = end;
  }
  return horizon < kMostTicks;
}

}  // namespace heddle
