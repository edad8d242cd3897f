#include "string_search.h"

#include <algorithm>

#include "configurations.h"
#include "construction.h"
#include "portfolio.h"

namespace heddle {

StringSearch::StringSearch(const TaskModel& model, uint64_t seed) : model_(model), random_(seed) {
  const size_t n = model.num_tasks();
  std::vector<int> level(n, 0);
  for (const uint32_t t : model.order()) {
    for (const TaskModel::Edge& e : model.out(t)) level[e.dst] = std::max(level[e.dst], level[t] + 1);
  }
  order_.assign(model.order().begin(), model.order().end());
  std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return level[a] < level[b]; });
  string_.assign(n * model.num_requests(), 0);
  finish_.resize(string_.size());
  place_.resize(string_.size());
  free_.resize(model.num_devices());
  start_fastest();
}

void StringSearch::start_fastest() {
  const size_t requests = model_.num_requests();
  for (size_t i = 0; i < order_.size(); ++i) {
    size_t best = 0;
    for (size_t d = 1; d < model_.num_devices(); ++d) {
      if (model_.us(order_[i], d, 1) < model_.us(order_[i], best, 1)) best = d;
    }
    std::fill_n(string_.begin() + static_cast<long>(i * requests), requests, static_cast<uint32_t>(best));
  }
  changed_.clear();
}

void StringSearch::start_random() {
  start_fastest();
  for (size_t g = 0; g < string_.size(); ++g) {
    if (random_.chance(1 - 1.0 / static_cast<double>(model_.num_devices()))) mutate(g);
  }
  changed_.clear();
}

bool StringSearch::mutate(size_t gene) {
  const uint32_t task = order_[gene / model_.num_requests()];
  std::vector<uint32_t> others;
  for (uint32_t d = 0; d < model_.num_devices(); ++d) {
    if (d != string_[gene] && model_.us(task, d, 1) < kImpossible) others.push_back(d);
  }
  if (others.empty()) return false;
  changed_.push_back({gene, string_[gene]});
  string_[gene] = others[random_.below(others.size())];
  return true;
}

void StringSearch::undo() {
  for (size_t i = changed_.size(); i-- > 0;) string_[changed_[i].first] = changed_[i].second;
  changed_.clear();
}

double StringSearch::fitness() {
  const size_t requests = model_.num_requests();
  std::fill(free_.begin(), free_.end(), 0.0);
  double makespan = 0;
  for (size_t i = 0; i < order_.size(); ++i) {
    const uint32_t task = order_[i];
    uint32_t done = 0;
    for (size_t l = 0; l < requests; ++l) {
      if (done >> l & 1) continue;
      const uint32_t d = string_[i * requests + l];
      double start = free_[d];
      size_t count = 0;
      uint32_t members = 0;
      for (size_t r = l; r < requests; ++r) {
        if (string_[i * requests + r] != d) continue;
        ++count;
        members |= uint32_t{1} << r;
        for (const TaskModel::Edge& e : model_.in(task)) {
          const size_t u = e.src * requests + r;
          start = std::max(start, finish_[u] + model_.transfer_us(place_[u], d, e.bytes));
        }
      }
      const double end = start + model_.us(task, d, count);
      free_[d] = end;
      makespan = std::max(makespan, end);
      for (size_t r = l; r < requests; ++r) {
        if ((members >> r & 1) == 0) continue;
        finish_[task * requests + r] = end;
        place_[task * requests + r] = d;
      }
      done |= members;
    }
  }
  return makespan;
}

std::vector<Batch> StringSearch::batches() const {
  const size_t requests = model_.num_requests();
  std::vector<Batch> batches;
  for (size_t i = 0; i < order_.size(); ++i) {
    const size_t first = batches.size();
    for (size_t l = 0; l < requests; ++l) {
      const uint32_t d = string_[i * requests + l];
      size_t b = first;
      while (b < batches.size() && batches[b].device != d) ++b;
      if (b == batches.size()) batches.push_back({order_[i], d, 0});
      batches[b].requests |= uint32_t{1} << l;
    }
  }
  return batches;
}

Result<PlannerOutput> plan_by_strings(const Problem& problem, const PlannerOptions& options,
                                      const std::string& name, const RunStrings& run) {
  Candidates candidates(problem);
  const auto sets = configurations(problem);
  for (size_t s = 0; s < sets.size() && !options.deadline.cancelled(); ++s) {
    if (options.deadline.expired() && !candidates.empty()) break;
    const FlatProblem flat(problem, sets[s]);
    const TaskModel model(flat);
    StringSearch search(model, options.seed);
    candidates.offer(to_assignment(model, search.batches()), name);
    run(search,
        options.deadline.sooner(options.deadline.seconds_left() / static_cast<double>(sets.size() - s)));
    candidates.offer(to_assignment(model, search.batches()), name);
    report_progress(options, "planner " + name, static_cast<double>(s + 1), static_cast<double>(sets.size()),
                    candidates.empty() ? std::nullopt : std::optional<double>(candidates.value_us()));
  }
  if (candidates.empty() && !options.deadline.cancelled()) {
    // The strings do not see memory limits: where none fits, the best constructive plan stands in.
    run_portfolio(problem, options, constructive_planners(problem.objective), candidates);
  }
  const bool late = options.deadline.should_stop();
  return candidates.output(late ? StopReason::kTimeLimit : StopReason::kFinished, options.deadline);
}

}  // namespace heddle
