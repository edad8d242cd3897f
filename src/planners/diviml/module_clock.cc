#include "module_clock.h"

#include <algorithm>
#include <numeric>

namespace heddle {

ModuleClock::ModuleClock(const ModuleProblem& module)
    : m_(module),
      requests_(module.model->num_requests()),
      place_(module.model->num_tasks(), kOutside),
      sources_(module.tasks.size()),
      finish_(module.tasks.size() * requests_, kImpossible),
      where_(finish_.size(), 0) {
  for (uint32_t p = 0; p < module.tasks.size(); ++p) place_[module.tasks[p]] = p;
  for (const auto& s : module.sources) sources_[s.place].push_back(&s);
  for (size_t d = 0; d < module.model->num_devices(); ++d) free_.push_back(module.free_at(d));
}

double ModuleClock::start(const Batch& b) const {
  const TaskModel& model = *m_.model;
  double start = free_[b.device];
  for (const auto* s : sources_[place_[b.task]]) {
    if (b.requests >> s->request & 1)
      start = std::max(start, s->at_us + model.transfer_us(s->device, b.device, s->bytes));
  }
  for (const TaskModel::Edge& e : model.in(b.task)) {
    if (place_[e.src] == kOutside) continue;
    for (size_t l = 0; l < requests_; ++l) {
      if ((b.requests >> l & 1) == 0) continue;
      const size_t u = place_[e.src] * requests_ + l;
      start = std::max(start, finish_[u] + model.transfer_us(where_[u], b.device, e.bytes));
    }
  }
  return start;
}

double ModuleClock::append(const Batch& b) {
  const uint32_t p = place_[b.task];
  const double end = start(b) + m_.model->us(b);
  free_[b.device] = end;
  latest_ = std::max(latest_, end);
  for (size_t l = 0; l < requests_; ++l) {
    if ((b.requests >> l & 1) == 0) continue;
    latest_ = std::max(latest_, end + m_.tail(p, l, b.device));
    finish_[p * requests_ + l] = end;
    where_[p * requests_ + l] = b.device;
    ++done_;
  }
  return end;
}

double module_value(const ModuleProblem& m, const std::vector<Batch>& batches, std::vector<double>* starts) {
  ModuleClock clock(m);
  if (starts != nullptr) starts->clear();
  for (const Batch& b : batches) {
    const uint32_t p = clock.place(b.task);
    if (p == ModuleClock::kOutside || !m.allows(p, b.device)) return kImpossible;
    if (starts != nullptr) starts->push_back(clock.start(b));
    clock.append(b);
  }
  return clock.value();
}

ModuleProblem whole_problem(const TaskModel& model) {
  ModuleProblem whole;
  whole.model = &model;
  whole.tasks.assign(model.order().begin(), model.order().end());
  return whole;
}

BatchTimes time_batches(const TaskModel& model, const std::vector<Batch>& batches) {
  const ModuleProblem whole = whole_problem(model);
  ModuleClock clock(whole);
  BatchTimes times;
  for (const Batch& b : batches) {
    times.start.push_back(clock.start(b));
    clock.append(b);
  }
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
