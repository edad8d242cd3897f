// List schedule and cheap bound of a module.
#include <algorithm>
#include <limits>
#include <numeric>

#include "module_clock.h"

namespace heddle {
namespace {

// Rounds of multiplicative weights for the area bound.
constexpr int kAreaRounds = 100;
constexpr uint32_t kNoTask = ModuleClock::kOutside;

std::vector<uint32_t> places_of(const ModuleProblem& m) {
  std::vector<uint32_t> place(m.model->num_tasks(), kNoTask);
  for (uint32_t p = 0; p < m.tasks.size(); ++p) place[m.tasks[p]] = p;
  return place;
}

std::vector<std::vector<const ModuleProblem::Source*>> sources_of(const ModuleProblem& m) {
  std::vector<std::vector<const ModuleProblem::Source*>> of(m.tasks.size());
  for (const auto& s : m.sources) of[s.place].push_back(&s);
  return of;
}

double least_time(const ModuleProblem& m, size_t p, size_t d) {
  if (!m.allows(p, d)) return kImpossible;
  double least = kImpossible;
  for (size_t n = 1; n <= m.model->num_requests(); ++n)
    least = std::min(least, m.model->us(m.tasks[p], d, n));
  return least;
}

// Least time per request: what a device spends on a task when all requests that it has run as one batch.
double least_share(const ModuleProblem& m, size_t p, size_t d) {
  if (!m.allows(p, d)) return kImpossible;
  double least = kImpossible;
  for (size_t n = 1; n <= m.model->num_requests(); ++n)
    least = std::min(least, m.model->us(m.tasks[p], d, n) / static_cast<double>(n));
  return least;
}

}  // namespace

ModuleAnswer module_by_list(const ModuleProblem& m) {
  const TaskModel& model = *m.model;
  const size_t n = m.tasks.size(), k = model.num_devices(), requests = model.num_requests();
  const auto place = places_of(m);
  // Priority: mean over devices of the rest of the module and the tail behind it.
  std::vector<double> rest(n * k, 0), rank(n, 0);
  for (size_t p = n; p-- > 0;) {
    size_t possible = 0;
    for (size_t d = 0; d < k; ++d) {
      double after = 0;
      for (size_t l = 0; l < requests; ++l) after = std::max(after, m.tail(p, l, d));
      for (const TaskModel::Edge& e : model.out(m.tasks[p])) {
        if (place[e.dst] == kNoTask) continue;
        double least = kImpossible;
        for (size_t to = 0; to < k; ++to)
          least = std::min(least, model.transfer_us(d, to, e.bytes) + rest[place[e.dst] * k + to]);
        after = std::max(after, least);
      }
      const double own = m.allows(p, d) ? model.us(m.tasks[p], d, requests) : kImpossible;
      rest[p * k + d] = own + after;
      if (rest[p * k + d] < kImpossible) rank[p] += rest[p * k + d], ++possible;
    }
    if (possible > 0) rank[p] /= static_cast<double>(possible);
  }
  std::vector<uint32_t> missing(n, 0), ready;
  for (size_t p = 0; p < n; ++p) {
    for (const TaskModel::Edge& e : model.in(m.tasks[p])) missing[p] += place[e.src] != kNoTask;
    if (missing[p] == 0) ready.push_back(static_cast<uint32_t>(p));
  }
  ModuleClock clock(m);
  ModuleAnswer answer;
  std::vector<std::pair<double, Batch>> placed;
  while (!ready.empty()) {
    const auto next = std::max_element(ready.begin(), ready.end(), [&](uint32_t a, uint32_t b) {
      return rank[a] != rank[b] ? rank[a] < rank[b] : a > b;
    });
    const uint32_t p = *next;
    ready.erase(next);
    double best = kImpossible, best_start = 0;
    Batch batch{m.tasks[p], 0, model.all_requests()}, chosen = batch;
    for (; batch.device < k; ++batch.device) {
      const double start = clock.start(batch);
      // The end of what follows on the best continuation from here.
      const double value = start + rest[p * k + batch.device];
      if (value < best) best = value, best_start = start, chosen = batch;
    }
    if (!(best < kImpossible)) return {};
    clock.append(chosen);
    placed.push_back({best_start, chosen});
    for (const TaskModel::Edge& e : model.out(m.tasks[p])) {
      const uint32_t q = place[e.dst];
      if (q != kNoTask && --missing[q] == 0) ready.push_back(q);
    }
  }
  std::stable_sort(placed.begin(), placed.end(), [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : place[a.second.task] < place[b.second.task];
  });
  for (const auto& [start, batch] : placed) answer.batches.push_back(batch);
  answer.value_us = module_value(m, answer.batches);
  return answer;
}

ModulePaths module_paths(const ModuleProblem& m) {
  const TaskModel& model = *m.model;
  const size_t n = m.tasks.size(), k = model.num_devices(), requests = model.num_requests();
  const auto place = places_of(m);
  const auto sources = sources_of(m);
  ModulePaths paths;
  paths.head.assign(n * k, kImpossible);
  paths.rest.assign(n * k, kImpossible);
  for (size_t p = 0; p < n; ++p) {
    for (size_t d = 0; d < k; ++d) {
      if (!(least_time(m, p, d) < kImpossible)) continue;
      double start = m.free_at(d);
      // Each request reads its own data: the earliest one counts.
      if (!sources[p].empty()) {
        std::vector<double> ready(requests, 0);
        for (const auto* s : sources[p])
          ready[s->request] =
              std::max(ready[s->request], s->at_us + model.transfer_us(s->device, d, s->bytes));
        start = std::max(start, *std::min_element(ready.begin(), ready.end()));
      }
      for (const TaskModel::Edge& e : model.in(m.tasks[p])) {
        if (place[e.src] == kNoTask) continue;
        double least = kImpossible;
        for (size_t from = 0; from < k; ++from) {
          const double end = paths.head[place[e.src] * k + from] + least_time(m, place[e.src], from);
          least = std::min(least, end + model.transfer_us(from, d, e.bytes));
        }
        start = std::max(start, least);
      }
      paths.head[p * k + d] = start;
    }
  }
  for (size_t p = n; p-- > 0;) {
    for (size_t d = 0; d < k; ++d) {
      const double own = least_time(m, p, d);
      if (!(own < kImpossible)) continue;
      double after = kImpossible;
      for (size_t l = 0; l < requests; ++l) after = std::min(after, m.tail(p, l, d));
      for (const TaskModel::Edge& e : model.out(m.tasks[p])) {
        if (place[e.dst] == kNoTask) continue;
        double least = kImpossible;
        for (size_t to = 0; to < k; ++to)
          least = std::min(least, model.transfer_us(d, to, e.bytes) + paths.rest[place[e.dst] * k + to]);
        after = std::max(after, least);
      }
      paths.rest[p * k + d] = own + after;
    }
  }
  return paths;
}

double module_bound(const ModuleProblem& m) {
  const TaskModel& model = *m.model;
  const size_t n = m.tasks.size(), k = model.num_devices(), requests = model.num_requests();
  const ModulePaths paths = module_paths(m);
  double bound = 0;
  for (size_t p = 0; p < n; ++p) {
    double best = kImpossible;
    for (size_t d = 0; d < k; ++d) best = std::min(best, paths.head[p * k + d] + paths.rest[p * k + d]);
    bound = std::max(bound, best);
  }
  // Area: any weights on devices are a proof. Each device works from when it is free until its tail begins.
  std::vector<double> weight(k, 1.0 / static_cast<double>(k)), load(k);
  for (int round = 0; round < kAreaRounds; ++round) {
    double sum = 0;
    std::fill(load.begin(), load.end(), 0.0);
    for (size_t d = 0; d < k; ++d)
      sum += weight[d] * (m.free_at(d) + (m.device_tail_us.empty() ? 0 : m.device_tail_us[d]));
    for (size_t p = 0; p < n; ++p) {
      double least = kImpossible;
      size_t at = 0;
      for (size_t d = 0; d < k; ++d) {
        const double us = least_share(m, p, d);
        if (us < kImpossible && us * weight[d] < least) least = us * weight[d], at = d;
      }
      if (!(least < kImpossible)) return kImpossible;
      sum += least * static_cast<double>(requests);
      load[at] += least_share(m, p, at) * static_cast<double>(requests);
    }
    bound = std::max(bound, sum * (1 - 1e-12));
    const double most = *std::max_element(load.begin(), load.end());
    if (!(most > 0)) break;
    double total = 0;
    for (size_t d = 0; d < k; ++d) {
      weight[d] *= 1 + load[d] / most / (2.0 + 0.2 * round);
      total += weight[d];
    }
    for (double& w : weight) w /= total;
  }
  return bound;
}

}  // namespace heddle
