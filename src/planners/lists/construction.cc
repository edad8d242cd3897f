#include "construction.h"

#include <algorithm>

namespace heddle {
namespace {

// Rounds with more memory left free each time: the peak of tensors is known only when the plan is timed.
constexpr int kMemoryRounds = 8;

// Variants share cores, so a configuration has one of them. A list may mix them all the same: it takes them for
// devices that run at once, and the builder puts them one after the other.
std::vector<std::vector<DeviceId>> with_mixed_variants(const Problem& problem,
                                                       std::vector<std::vector<DeviceId>> sets) {
  const size_t plain = sets.size();
  for (size_t s = 0; s < plain; ++s) {
    std::vector<DeviceId> mixed;
    for (const DeviceId device : sets[s]) {
      for (const DeviceId variant : problem.cluster->variants(device)) {
        if (problem.may_use(variant)) mixed.push_back(variant);
      }
    }
    std::sort(mixed.begin(), mixed.end());
    if (std::find(sets.begin(), sets.end(), mixed) == sets.end()) sets.push_back(std::move(mixed));
  }
  return sets;
}

}  // namespace

void report_progress(const PlannerOptions& options, const std::string& what, double done, double total,
                     std::optional<double> best_us, std::optional<double> bound_us) {
  if (options.progress != nullptr) options.progress->report({what, done, total, best_us, bound_us});
}

void offer_constructions(const Problem& problem, const PlannerOptions& options, const std::string& name,
                         const Construct& construct, PlanStore& candidates) {
  const auto sets = with_mixed_variants(problem, configurations(problem));
  for (size_t s = 0; s < sets.size() && !options.deadline.cancelled(); ++s) {
    const FlatProblem flat(problem, sets[s]);
    Reserve reserve(flat.num_pools(), 0);
    for (int round = 0; round < kMemoryRounds && !options.deadline.cancelled(); ++round) {
      const auto plan = construct(flat, reserve);
      if (!plan) break;
      candidates.offer(to_assignment(flat, *plan), name);
      if (candidates.last_fits()) break;
      for (size_t p = 0; p < reserve.size(); ++p) reserve[p] = plus_bytes(reserve[p], candidates.excess()[p]);
    }
    report_progress(options, "planner " + name, static_cast<double>(s + 1), static_cast<double>(sets.size()),
                    candidates.empty() ? std::nullopt : std::optional<double>(candidates.value_us()));
  }
}

Result<PlannerOutput> plan_by_construction(const Problem& problem, const PlannerOptions& options,
                                           const std::string& name, const Construct& construct) {
  PlanStore candidates(problem);
  offer_constructions(problem, options, name, construct, candidates);
  return candidates.output(StopReason::kFinished, options.deadline);
}

Result<PlannerOutput> plan_by_list(const Problem& problem, const PlannerOptions& options,
                                   const std::string& name, const ListRule& rule) {
  if (rule.batched) {
    if (auto batched = plan_batched(problem, options, name, *rule.batched)) return std::move(*batched);
  }
  const bool loads = rule.throughput && problem.objective == Objective::kThroughput;
  return plan_by_construction(problem, options, name, [&](const FlatProblem& flat, const Reserve& reserve) {
    return loads ? rule.throughput(flat, reserve, options.deadline)
                 : list_plan(flat, rule.list, reserve, options.deadline, rule.decide(flat));
  });
}

std::vector<uint32_t> topological_list(const FlatProblem& flat) {
  return {flat.topological().begin(), flat.topological().end()};
}

std::optional<FlatPlan> list_plan(const FlatProblem& flat, const ListOptions& list, const Reserve& reserve,
                                  const Deadline& deadline, const ListDecisions& decisions) {
  const auto& order = decisions.order;
  ListSchedule schedule(flat, list, reserve);
  for (size_t i = 0; i < order.size(); ++i) {
    if (i % 1024 == 0 && deadline.cancelled()) return std::nullopt;
    const auto& slots = schedule.earliest(order[i]);
    const int32_t device = decisions.choose(order[i], slots);
    if (device < 0) return std::nullopt;
    schedule.place(order[i], static_cast<uint32_t>(device));
  }
  return schedule.decisions();
}

int32_t earliest_finish(uint32_t /*op*/, const std::vector<ListSchedule::TimeSlot>& slots) {
  int32_t best = -1;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].possible() && (best < 0 || slots[i].finish < slots[static_cast<size_t>(best)].finish)) {
      best = static_cast<int32_t>(i);
    }
  }
  return best;
}

}  // namespace heddle
