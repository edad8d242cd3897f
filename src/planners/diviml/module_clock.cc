#include "module_clock.h"

#include <algorithm>
#include <numeric>

namespace heddle {

std::vector<std::vector<const ModuleProblem::Source*>> ModuleProblem::sources_by_task() const {
  std::vector<std::vector<const Source*>> of(model.num_tasks());
  for (const Source& s : sources) of[s.task].push_back(&s);
  return of;
}

ModuleClock::ModuleClock(const ModuleProblem& module)
    : m_(module),
      requests_(module.model.num_requests()),
      sources_(module.sources_by_task()),
      ends_(module.model.num_tasks() * requests_) {
  for (size_t d = 0; d < module.model.num_devices(); ++d) free_.push_back(module.free_at(d));
}

double ModuleClock::start(const Batch& b) const {
  const TaskModel& model = m_.model;
  double start = free_[b.device];
  for (const auto* s : sources_[b.task]) {
    if (b.requests >> s->request & 1)
      start = std::max(start, s->at_us + model.transfer_us(s->device, b.device, s->bytes));
  }
  for (const TaskModel::Edge& e : model.in(b.task)) {
    for (size_t l = 0; l < requests_; ++l) {
      if ((b.requests >> l & 1) == 0) continue;
      const End& from = end(e.src, l);
      start = std::max(start, from.at_us + model.transfer_us(from.device, b.device, e.bytes));
    }
  }
  return start;
}

double ModuleClock::append(const Batch& b) {
  const double begin = start(b), end = begin + m_.model.us(b);
  free_[b.device] = end;
  latest_ = std::max(latest_, end);
  for (size_t l = 0; l < requests_; ++l) {
    if ((b.requests >> l & 1) == 0) continue;
    latest_ = std::max(latest_, end + m_.tail(b.task, l, b.device));
    ends_[b.task * requests_ + l] = {end, b.device};
    ++done_;
  }
  return begin;
}

double module_value(const ModuleProblem& m, const std::vector<Batch>& batches, std::vector<double>* starts) {
  ModuleClock clock(m);
  if (starts != nullptr) starts->clear();
  for (const Batch& b : batches) {
    if (!m.allows(b.task, b.device)) return kImpossible;
    const double start = clock.append(b);
    if (starts != nullptr) starts->push_back(start);
  }
  return clock.value();
}

BatchTimes time_batches(const TaskModel& model, const std::vector<Batch>& batches) {
  const ModuleProblem whole = whole_problem(model);
  ModuleClock clock(whole);
  BatchTimes times;
  for (const Batch& b : batches) times.start.push_back(clock.append(b));
  times.makespan = clock.latest();
  return times;
}

std::vector<Batch> by_start(const std::vector<Batch>& batches, std::span<const double> starts) {
  std::vector<size_t> order(batches.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return starts[a] < starts[b]; });
  std::vector<Batch> sorted;
  for (const size_t i : order) sorted.push_back(batches[i]);
  return sorted;
}

}  // namespace heddle
