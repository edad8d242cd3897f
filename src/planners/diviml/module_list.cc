// List schedule and cheap bound of a module.
#include <algorithm>

#include "module_clock.h"

namespace heddle {
namespace {

// Rounds of multiplicative weights for the area bound.
constexpr int kAreaRounds = 100;

double least_time(const ModuleProblem& m, size_t t, size_t d) {
  if (!m.allows(t, d)) return kImpossible;
  double least = kImpossible;
  for (size_t n = 1; n <= m.model.num_requests(); ++n) least = std::min(least, m.model.us(t, d, n));
  return least;
}

// Least time per request: what a device spends on a task when all requests that it has run as one batch.
double least_share(const ModuleProblem& m, size_t t, size_t d) {
  if (!m.allows(t, d)) return kImpossible;
  double least = kImpossible;
  for (size_t n = 1; n <= m.model.num_requests(); ++n)
    least = std::min(least, m.model.us(t, d, n) / static_cast<double>(n));
  return least;
}

// Task x device: from the start there to the end of everything on the best devices, when the task takes
// own(t, d) and at least tail(t, d) follows it.
template <class Own, class Tail>
std::vector<double> rests(const TaskModel& model, const Own& own, const Tail& tail) {
  const size_t k = model.num_devices();
  std::vector<double> rest(model.num_tasks() * k);
  for (size_t t = model.num_tasks(); t-- > 0;) {
    for (size_t d = 0; d < k; ++d) {
      double after = tail(t, d);
      for (const TaskModel::Edge& e : model.out(t))
        after = std::max(after, least_rest(model, d, e.bytes, &rest[e.dst * k]));
      rest[t * k + d] = own(t, d) + after;
    }
  }
  return rest;
}

}  // namespace

double least_rest(const TaskModel& model, size_t device, int64_t bytes, const double* rests) {
  double least = kImpossible;
  for (size_t to = 0; to < model.num_devices(); ++to)
    least = std::min(least, model.transfer_us(device, to, bytes) + rests[to]);
  return least;
}

ModuleAnswer module_by_list(const ModuleProblem& m) {
  const TaskModel& model = m.model;
  const size_t n = model.num_tasks(), k = model.num_devices(), requests = model.num_requests();
  // Priority: mean over devices of the rest of the module and the tail behind it.
  const auto rest = rests(
      model, [&](size_t t, size_t d) { return m.allows(t, d) ? model.us(t, d, requests) : kImpossible; },
      [&](size_t t, size_t d) {
        double tail = 0;
        for (size_t l = 0; l < requests; ++l) tail = std::max(tail, m.tail(t, l, d));
        return tail;
      });
  std::vector<double> rank(n, 0);
  std::vector<uint32_t> missing(n, 0), ready;
  for (uint32_t t = 0; t < n; ++t) {
    size_t possible = 0;
    for (size_t d = 0; d < k; ++d) {
      if (rest[t * k + d] < kImpossible) rank[t] += rest[t * k + d], ++possible;
    }
    if (possible > 0) rank[t] /= static_cast<double>(possible);
    missing[t] = static_cast<uint32_t>(model.in(t).size());
    if (missing[t] == 0) ready.push_back(t);
  }
  ModuleClock clock(m);
  std::vector<Batch> placed;
  std::vector<double> starts(n, 0);  // per task
  while (!ready.empty()) {
    const auto next = std::max_element(ready.begin(), ready.end(), [&](uint32_t a, uint32_t b) {
      return rank[a] != rank[b] ? rank[a] < rank[b] : a > b;
    });
    const uint32_t t = *next;
    ready.erase(next);
    double best = kImpossible;
    Batch batch{t, 0, model.all_requests()}, chosen = batch;
    for (; batch.device < k; ++batch.device) {
      // The end of what follows on the best continuation from here.
      const double value = clock.start(batch) + rest[t * k + batch.device];
      if (value < best) best = value, chosen = batch;
    }
    if (!(best < kImpossible)) return {};
    starts[t] = clock.append(chosen);
    placed.push_back(chosen);
    for (const TaskModel::Edge& e : model.out(t)) {
      if (--missing[e.dst] == 0) ready.push_back(e.dst);
    }
  }
  std::sort(placed.begin(), placed.end(), [&](const Batch& a, const Batch& b) {
    return starts[a.task] != starts[b.task] ? starts[a.task] < starts[b.task] : a.task < b.task;
  });
  ModuleAnswer answer;
  answer.value_us = module_value(m, placed);
  answer.batches = std::move(placed);
  return answer;
}

ModulePaths module_paths(const ModuleProblem& m) {
  const TaskModel& model = m.model;
  const size_t n = model.num_tasks(), k = model.num_devices(), requests = model.num_requests();
  const auto sources = m.sources_by_task();
  ModulePaths paths;
  paths.head.assign(n * k, kImpossible);
  for (size_t t = 0; t < n; ++t) {
    for (size_t d = 0; d < k; ++d) {
      if (!(least_time(m, t, d) < kImpossible)) continue;
      double start = m.free_at(d);
      // Each request reads its own data: the earliest one counts.
      if (!sources[t].empty()) {
        std::vector<double> ready(requests, 0);
        for (const auto* s : sources[t])
          ready[s->request] =
              std::max(ready[s->request], s->at_us + model.transfer_us(s->device, d, s->bytes));
        start = std::max(start, *std::min_element(ready.begin(), ready.end()));
      }
      for (const TaskModel::Edge& e : model.in(t)) {
        double least = kImpossible;
        for (size_t from = 0; from < k; ++from) {
          const double end = paths.head[e.src * k + from] + least_time(m, e.src, from);
          least = std::min(least, end + model.transfer_us(from, d, e.bytes));
        }
        start = std::max(start, least);
      }
      paths.head[t * k + d] = start;
    }
  }
  paths.rest = rests(
      model, [&](size_t t, size_t d) { return least_time(m, t, d); },
      [&](size_t t, size_t d) {
        double tail = kImpossible;
        for (size_t l = 0; l < requests; ++l) tail = std::min(tail, m.tail(t, l, d));
        return tail;
      });
  return paths;
}

double module_bound(const ModuleProblem& m) {
  const TaskModel& model = m.model;
  const size_t n = model.num_tasks(), k = model.num_devices(), requests = model.num_requests();
  const ModulePaths paths = module_paths(m);
  double bound = 0;
  for (size_t t = 0; t < n; ++t) {
    double best = kImpossible;
    for (size_t d = 0; d < k; ++d) best = std::min(best, paths.head[t * k + d] + paths.rest[t * k + d]);
    bound = std::max(bound, best);
  }
  // Area: any weights on devices are a proof. Each device works from when it is free until its tail begins.
  std::vector<double> weight(k, 1.0 / static_cast<double>(k)), load(k);
  for (int round = 0; round < kAreaRounds; ++round) {
    double sum = 0;
    std::fill(load.begin(), load.end(), 0.0);
    for (size_t d = 0; d < k; ++d)
      sum += weight[d] * (m.free_at(d) + (m.device_tail_us.empty() ? 0 : m.device_tail_us[d]));
    for (size_t t = 0; t < n; ++t) {
      double least = kImpossible;
      size_t at = 0;
      for (size_t d = 0; d < k; ++d) {
        const double us = least_share(m, t, d);
        if (us < kImpossible && us * weight[d] < least) least = us * weight[d], at = d;
      }
      if (!(least < kImpossible)) return kImpossible;
      sum += least * static_cast<double>(requests);
      load[at] += least_share(m, t, at) * static_cast<double>(requests);
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
