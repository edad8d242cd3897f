#include "batched_list.h"

#include <algorithm>
#include <numeric>

#include "core/configurations.h"
#include "core/plan_store.h"
#include "module_clock.h"

namespace heddle {
namespace {

// Beyond this number of divisions of a batch among the devices only the first ones are tried: whole batches
// come first.
constexpr size_t kMostDivisions = 500;

class BatchList {
 public:
  explicit BatchList(const TaskModel& model)
      : model_(model), requests_(model.num_requests()), whole_(whole_problem(model)), clock_(whole_) {
    std::vector<size_t> counts(model.num_devices(), 0);
    divide(counts, 0, requests_);
  }

  std::vector<Batch> on_one(uint32_t device) {
    for (uint32_t t = 0; t < model_.num_tasks(); ++t) {
      if (!(model_.us(t, device, requests_) < kImpossible)) return {};
      append({t, device, model_.all_requests()});
    }
    return std::move(batches_);
  }

  std::vector<Batch> fastest() {
    for (uint32_t t = 0; t < model_.num_tasks(); ++t) {
      uint32_t device = 0;
      size_t size = 0;
      double least = kImpossible;
      for (uint32_t d = 0; d < model_.num_devices(); ++d) {
        for (size_t n = requests_; n >= 1; --n) {
          const double share = model_.us(t, d, n) / static_cast<double>(n);
          if (share < least) least = share, device = d, size = n;
        }
      }
      if (size == 0) return {};
      for (size_t l = 0; l < requests_; l += size) {
        uint32_t members = 0;
        for (size_t r = l; r < std::min(l + size, requests_); ++r) members |= uint32_t{1} << r;
        if (!(model_.us({t, device, members}) < kImpossible)) return {};
        append({t, device, members});
      }
    }
    return std::move(batches_);
  }

  std::vector<Batch> earliest(const std::vector<uint32_t>& order) {
    for (const uint32_t t : order) {
      double best = kImpossible, least_work = kImpossible;
      const std::vector<size_t>* choice = nullptr;
      for (const auto& counts : divisions_) {
        double end = 0, work = 0;
        for_parts(t, counts, [&](const Batch& b) {
          end = std::max(end, clock_.start(b) + model_.us(b));
          work += model_.us(b);
        });
        if (end < best || (end == best && work < least_work)) best = end, least_work = work, choice = &counts;
      }
      if (choice == nullptr) return {};
      for_parts(t, *choice, [&](const Batch& b) { append(b); });
    }
    return std::move(batches_);
  }

 private:
  void divide(std::vector<size_t>& counts, size_t d, size_t left) {
    if (divisions_.size() >= kMostDivisions) return;
    if (d + 1 == counts.size()) {
      counts[d] = left;
      divisions_.push_back(counts);
      return;
    }
    for (size_t n = left + 1; n-- > 0;) {
      counts[d] = n;
      divide(counts, d + 1, left - n);
    }
  }

  // Requests go to the devices in order, so that neighbouring tasks keep them where they are.
  template <class F>
  void for_parts(uint32_t task, const std::vector<size_t>& counts, const F& f) const {
    size_t l = 0;
    for (uint32_t d = 0; d < counts.size(); ++d) {
      if (counts[d] == 0) continue;
      f(Batch{task, d, ((uint32_t{1} << counts[d]) - 1) << l});
      l += counts[d];
    }
  }

  void append(const Batch& b) {
    clock_.append(b);
    batches_.push_back(b);
  }

  const TaskModel& model_;
  const size_t requests_;
  std::vector<std::vector<size_t>> divisions_;
  const ModuleProblem whole_;
  ModuleClock clock_;
  std::vector<Batch> batches_;
};

std::vector<uint32_t> in_order(const TaskModel& model) {
  std::vector<uint32_t> order(model.num_tasks());
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

std::vector<uint32_t> by_rank(const TaskModel& model) {
  const size_t k = model.num_devices();
  std::vector<double> rank(model.num_tasks(), 0);
  for (size_t t = model.num_tasks(); t-- > 0;) {
    double after = 0, own = 0;
    size_t possible = 0;
    for (const TaskModel::Edge& e : model.out(t)) {
      double move = 0;
      for (size_t u = 0; u < k; ++u) {
        for (size_t v = 0; v < k; ++v) {
          const double us = model.transfer_us(u, v, e.bytes);
          if (us < kImpossible) move += us / static_cast<double>(k * k);
        }
      }
      after = std::max(after, move + rank[e.dst]);
    }
    for (size_t d = 0; d < k; ++d) {
      const double us = model.us(t, d, model.num_requests());
      if (us < kImpossible) own += us, ++possible;
    }
    rank[t] = after + (possible > 0 ? own / static_cast<double>(possible) : 0);
  }
  std::vector<uint32_t> order = in_order(model);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return rank[a] > rank[b]; });
  return order;
}

}  // namespace

std::optional<Result<PlannerOutput>> plan_batched(const Problem& problem, const PlannerOptions& options,
                                                  const std::string& name, BatchRule rule) {
  if (problem.objective != Objective::kLatency || problem.costs->segments().empty()) return std::nullopt;
  PlanStore candidates(problem);
  for (const auto& set : configurations(problem)) {
    const FlatProblem flat(problem, set);
    const TaskModel model(flat);
    if (model.num_requests() < 2) return std::nullopt;
    const auto offer = [&](const std::vector<Batch>& batches) {
      if (!batches.empty()) candidates.offer(to_assignment(model, batches), name + ", batched");
    };
    if (rule == BatchRule::kSingle) {
      for (uint32_t d = 0; d < model.num_devices(); ++d) offer(BatchList(model).on_one(d));
    } else if (rule == BatchRule::kMet) {
      offer(BatchList(model).fastest());
    } else if (rule == BatchRule::kGreedy) {
      offer(BatchList(model).earliest(in_order(model)));
    } else {
      offer(BatchList(model).earliest(by_rank(model)));
    }
  }
  // Where no batch fits into memory the planner plans op by op.
  if (candidates.empty()) return std::nullopt;
  return candidates.output(StopReason::kFinished, options.deadline);
}

}  // namespace heddle
