#include "string_search.h"

#include <algorithm>

#include "core/configurations.h"
#include "core/portfolio.h"
#include "lists/construction.h"

namespace heddle {
namespace {

// Sums of the same times in another order differ by less.
constexpr double kSumRounding = 1 + 1e-9;

}  // namespace

StringSearch::StringSearch(const TaskModel& model, uint64_t seed) : model_(model), random_(seed) {
  const size_t n = model.num_tasks();
  std::vector<int> level(n, 0);
  for (const uint32_t t : model.order()) {
    for (const TaskModel::Edge& e : model.out(t)) level[e.dst] = std::max(level[e.dst], level[t] + 1);
  }
  order_.assign(model.order().begin(), model.order().end());
  std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return level[a] < level[b]; });
  string_.assign(n * model.num_requests(), 0);
  position_.resize(n);
  rest_ = model.least_rest();
  for (Times* times : {&kept_, &trial_}) {
    times->finish.resize(string_.size());
    times->place.resize(string_.size());
    times->free.resize((n + 1) * model.num_devices());
    times->span.resize(n + 1);
  }
  start_fastest();
}

// After any change that undo() cannot take back.
void StringSearch::forget() {
  for (uint32_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
  changed_.clear();
  timed_ = false;
}

void StringSearch::set_genes(const std::vector<uint32_t>& genes) {
  string_ = genes;
  forget();
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
  forget();
}

void StringSearch::start_from(std::span<const Batch> batches) {
  const size_t requests = model_.num_requests();
  std::vector<size_t> place(order_.size(), SIZE_MAX);
  order_.clear();
  for (const Batch& b : batches) {
    if (place[b.task] == SIZE_MAX) {
      place[b.task] = order_.size();
      order_.push_back(b.task);
    }
    for (size_t r = 0; r < requests; ++r) {
      if (b.requests >> r & 1) string_[place[b.task] * requests + r] = b.device;
    }
  }
  forget();
  has_start_ = true;
}

void StringSearch::start_random() {
  start_fastest();
  for (size_t g = 0; g < string_.size(); ++g) {
    if (random_.chance(1 - 1.0 / static_cast<double>(model_.num_devices()))) mutate(g);
  }
  forget();
}

bool StringSearch::mutate(size_t gene) {
  const uint32_t task = order_[gene / model_.num_requests()];
  const auto other = [&](uint32_t d) { return d != string_[gene] && model_.us(task, d, 1) < kImpossible; };
  const auto devices = static_cast<uint32_t>(model_.num_devices());
  uint64_t others = 0;
  for (uint32_t d = 0; d < devices; ++d) others += other(d) ? 1 : 0;
  if (others == 0) return false;
  uint64_t skip = random_.below(others);
  uint32_t choice = 0;
  while (!other(choice) || skip-- > 0) ++choice;
  changed_.push_back({gene, string_[gene]});
  string_[gene] = choice;
  return true;
}

void StringSearch::undo() {
  for (size_t i = changed_.size(); i-- > 0;) string_[changed_[i].first] = changed_[i].second;
  changed_.clear();
}

double StringSearch::fitness(double limit) {
  const size_t requests = model_.num_requests(), devices = model_.num_devices(), n = order_.size();
  from_ = timed_ ? n : 0;
  if (timed_) {
    for (const auto& [gene, unused] : changed_) from_ = std::min(from_, gene / requests);
  }
  const auto free_at = [&](Times& times, size_t i) { return times.free.data() + i * devices; };
  if (timed_) {
    std::copy_n(free_at(kept_, from_), devices, free_at(trial_, from_));
    trial_.span[from_] = kept_.span[from_];
  } else {
    std::fill_n(free_at(trial_, 0), devices, 0.0);
    trial_.span[0] = 0;
  }
  for (size_t i = from_; i < n; ++i) {
    const uint32_t task = order_[i];
    double* free = free_at(trial_, i + 1);
    std::copy_n(free_at(trial_, i), devices, free);
    double span = trial_.span[i];
    uint32_t done = 0;
    for (size_t l = 0; l < requests; ++l) {
      if (done >> l & 1) continue;
      const uint32_t d = string_[i * requests + l];
      double start = free[d];
      size_t count = 0;
      uint32_t members = 0;
      for (size_t r = l; r < requests; ++r) {
        if (string_[i * requests + r] != d) continue;
        ++count;
        members |= uint32_t{1} << r;
      }
      for (const TaskModel::Edge& e : model_.in(task)) {
        const Times& times = position_[e.src] < from_ ? kept_ : trial_;
        for (uint32_t left = members; left != 0; left &= left - 1) {
          const size_t u = e.src * requests + static_cast<size_t>(__builtin_ctz(left));
          start = std::max(start, times.finish[u] + model_.transfer_us(times.place[u], d, e.bytes));
        }
      }
      if (start + rest_[task * devices + d] > limit * kSumRounding) return kImpossible;
      const double end = start + model_.us(task, d, count);
      free[d] = end;
      span = std::max(span, end);
      for (uint32_t left = members; left != 0; left &= left - 1) {
        const size_t u = task * requests + static_cast<size_t>(__builtin_ctz(left));
        trial_.finish[u] = end;
        trial_.place[u] = d;
      }
      done |= members;
    }
    trial_.span[i + 1] = span;
  }
  const double makespan = trial_.span[n];
  if (changed_.empty()) keep();
  return makespan;
}

void StringSearch::keep() {
  const size_t requests = model_.num_requests(), devices = model_.num_devices();
  for (size_t i = from_; i < order_.size(); ++i) {
    const size_t u = order_[i] * requests;
    std::copy_n(trial_.finish.data() + u, requests, kept_.finish.data() + u);
    std::copy_n(trial_.place.data() + u, requests, kept_.place.data() + u);
  }
  std::copy(trial_.free.begin() + static_cast<long>(from_ * devices), trial_.free.end(),
            kept_.free.begin() + static_cast<long>(from_ * devices));
  std::copy(trial_.span.begin() + static_cast<long>(from_), trial_.span.end(),
            kept_.span.begin() + static_cast<long>(from_));
  from_ = order_.size();
  timed_ = true;
  changed_.clear();
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
  PlanStore candidates(problem);
  const auto sets = configurations(problem);
  for (size_t s = 0; s < sets.size() && !options.deadline.cancelled(); ++s) {
    if (options.deadline.expired() && !candidates.empty()) break;
    const FlatProblem flat(problem, sets[s]);
    const TaskModel model(flat);
    StringSearch search(model, options.seed);
    if (options.start != nullptr) {
      const auto start = to_batches(model, assignment_of(problem, *options.start));
      if (!start.empty()) search.start_from(start);
    }
    candidates.offer(to_assignment(model, search.batches()), name);
    run(search,
        options.deadline.sooner(options.deadline.seconds_left() / static_cast<double>(sets.size() - s)));
    candidates.offer(to_assignment(model, search.batches()), name);
    report_progress(options, "planner " + name, static_cast<double>(s + 1), static_cast<double>(sets.size()),
                    candidates.empty() ? std::nullopt : std::optional<double>(candidates.value_us()));
  }
  if (candidates.empty() && !options.deadline.cancelled()) {
    // The strings do not see memory limits: where none fits, the best constructive plan stands in.
    run_planners(problem, options, constructive_planners(problem.objective), candidates);
  }
  const bool late = options.deadline.should_stop();
  return candidates.output(late ? StopReason::kTimeLimit : StopReason::kFinished, options.deadline);
}

}  // namespace heddle
