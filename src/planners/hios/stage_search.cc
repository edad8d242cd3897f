// Stage search: simulated annealing over mapping, order and stages at once (stage_anneal.h), begun with the
// best of stage-list, HIOS-LP, HIOS-MR and HEFT with HIOS's grouping, and never worse than any of them.
//
// Minimises the makespan of one request on the flat instance, then under the evaluator, which also times
// every constructive. Some 100,000 steps a second on 200 ops, each O(changed stages + slots). Its own bound
// (stage_bound.h) stands beside the plan. Exploits stages, unequal devices and transfer times; ignores
// contention and memory limits.
#include "stage_search.h"

#include <algorithm>
#include <array>
#include <optional>
#include <thread>

#include "core/configurations.h"
#include "core/plan_store.h"
#include "heddle/plan/relaxation.h"
#include "hios.h"
#include "stage_anneal.h"
#include "stage_list.h"
#include "stage_planner.h"

namespace heddle {
namespace {

// Where nothing else limits the search: so many steps for each op, and at most so many steps times ops.
constexpr uint64_t kStepsPerOp = 1'000, kMostStepOps = 400'000'000;
constexpr int kMostThreads = 256;
// Of the time left, for each plan to begin with; for the bound, and its most.
constexpr double kStartShare = 0.1;
constexpr double kBoundShare = 0.1, kBoundSeconds = 2;

struct Start {
  const char* name;
  Result<StageSchedule> (*make)(const StageInstance&, const Deadline&);
};
const std::array<Start, 4> kStarts{{{"stage-list", construct_stages},
                                    {"hios-lp", hios_lp_inter},
                                    {"hios-mr", hios_mr_inter},
                                    {"heft-stages", heft_inter}}};

}  // namespace

Result<StageSearchResult> search_stages(const StageInstance& instance, const StageSearchOptions& options) {
  StageSearchResult result;
  result.makespan_us = kNoTime;
  std::optional<Error> failure;
  for (const Start& start : kStarts) {
    if (options.deadline.should_stop() && result.makespan_us < kNoTime) break;
    auto schedule = start.make(instance, options.deadline);
    if (!schedule.ok()) {
      failure = schedule.error();
      continue;
    }
    *schedule = hios_parallelize(instance, std::move(*schedule), options.deadline);
    const auto timing = time_stages(instance, *schedule);
    if (!timing.ok() || timing->makespan_us >= result.makespan_us) continue;
    result.makespan_us = timing->makespan_us;
    result.best = std::move(*schedule);
    result.start = start.name;
  }
  if (result.makespan_us == kNoTime) return failure ? *failure : no_stage_plan();
  result.start_us = result.makespan_us;

  StageAnnealOptions anneal;
  anneal.deadline = options.deadline;
  anneal.cpu_seconds = options.cpu_seconds;
  anneal.steps = options.steps;
  if (anneal.steps == 0 && !(anneal.cpu_seconds > 0) && options.deadline.seconds_left() == kNoTime)
    anneal.steps =
        std::max<uint64_t>(1, std::min<uint64_t>(kStepsPerOp * instance.num_ops(),
                                                 kMostStepOps / std::max<size_t>(1, instance.num_ops())));
  anneal.target_us = options.bound_us;
  std::vector<StageAnnealResult> found(static_cast<size_t>(std::clamp(options.threads, 1, kMostThreads)));
  const auto work = [&](size_t i) {
    StageAnnealOptions own = anneal;
    if (i == 0) own.on_progress = options.on_progress;
    own.seed = options.seed + i * 0x9e3779b97f4a7c15ULL;
    found[i] = anneal_stages(instance, result.best, own);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < found.size(); ++i) threads.emplace_back(work, i);
  work(0);
  for (std::thread& t : threads) t.join();
  for (StageAnnealResult& f : found) {
    result.steps += f.steps;
    result.timed += f.timed;
    if (f.makespan_us >= result.makespan_us) continue;
    result.makespan_us = f.makespan_us;
    result.best = std::move(f.best);
  }
  return result;
}

namespace {

// The problem as its bound must see it: with segments known to be faster than their ops, and with any route
// that a plan may bring along.
StageNet net_of(const Problem& problem) {
  const Relaxation relaxation = relax(problem);
  const size_t n = problem.graph->num_ops(), k = relaxation.devices.size();
  const auto least = problem.costs->bound_times();
  const auto work = problem.costs->bound_work(problem.execution.stage_width);
  StageNet net(n, k);
  for (size_t v = 0; v < n; ++v) {
    for (const DeviceId d : relaxation.devices) {
      const size_t i = v * problem.cluster->num_devices() + d.index();
      net.us[v] = std::min(net.us[v], least[i]);
      net.work[v] = std::min(net.work[v], work[i]);
    }
  }
  for (const Tensor& tensor : problem.graph->tensors()) {
    if (!tensor.producer.valid()) continue;
    double us = kNoTime;
    for (size_t i = 0; i < k; ++i) {
      for (size_t j = 0; j < k; ++j) {
        if (i != j) us = std::min(us, relaxation.way_us(i, j, tensor.bytes));
      }
    }
    for (const OpId reader : tensor.consumers)
      net.add_edge(static_cast<uint32_t>(tensor.producer.index()), static_cast<uint32_t>(reader.index()), us);
  }
  net.finish();
  return net;
}

Result<PlannerOutput> plan_stage_search(const Problem& problem, const PlannerOptions& options) {
  PlanStore candidates(problem);
  if (options.start != nullptr) candidates.offer(*options.start, "the plan to improve");
  // Something at once; and what the flat instance leaves out may turn the order of plans around.
  for (const auto* const name : {"stage-list", "hios-lp", "heft-stages"}) {
    if (options.deadline.cancelled() || (options.deadline.should_stop() && !candidates.empty())) break;
    const double seconds = kStartShare * options.deadline.seconds_left();
    const auto out = find_planner(name)->plan(problem, {.deadline = options.deadline.sooner(seconds)});
    if (out.ok()) candidates.offer(out->plan, out->detail);
  }
  const auto sets = configurations(problem);
  uint64_t steps = 0, timed = 0;
  std::optional<Error> failure;
  const double bound_seconds = std::min(kBoundSeconds, kBoundShare * options.deadline.seconds_left());
  const Deadline brief = options.deadline.sooner(bound_seconds);
  Bound bound = lower_bound(problem, brief);
  if (const StageBound own = stage_bound(net_of(problem), kNoTime, brief); own.us > bound.us)
    bound = {own.us, own.reason};
  candidates.prove(bound);
  for (size_t i = 0; i < sets.size(); ++i) {
    if (!candidates.is_open()) break;
    HEDDLE_ASSIGN_OR_RETURN(const auto instance, stage_instance_of(problem, sets[i]));
    StageSearchOptions part;
    part.deadline =
        options.deadline.sooner(options.deadline.seconds_left() / static_cast<double>(sets.size() - i));
    part.seed = options.seed;
    part.threads = options.threads;
    part.bound_us = bound.us;
    if (options.progress != nullptr) {
      part.on_progress = [&, i](double share, double best_us) {
        options.progress->report({.what = "stage-search",
                                  .done = static_cast<double>(i) + share,
                                  .total = static_cast<double>(sets.size()),
                                  .best_us = best_us,
                                  .bound_us = bound.us});
      };
    }
    const auto found = search_stages(instance, part);
    if (!found.ok()) {
      failure = found.error();
      continue;
    }
    steps += found->steps;
    timed += found->timed;
    candidates.offer(assignment_of_stages(instance.num_ops(), list_stages(instance, found->best, sets[i])),
                     found->start + ", improved by stage-search");
  }
  if (candidates.empty() && candidates.offered() == 0 && failure) return *failure;
  const bool stopped = options.deadline.should_stop();
  HEDDLE_ASSIGN_OR_RETURN(
      auto out,
      candidates.output(stopped ? StopReason::kTimeLimit : StopReason::kFinished, options.deadline));
  if (!candidates.is_open()) out.stop = StopReason::kOptimal;
  out.counters["steps"] = static_cast<double>(steps);
  out.counters["moves_timed"] = static_cast<double>(timed);
  return out;
}

}  // namespace

PlannerEntry stage_search_planner() {
  return {{.name = "stage-search",
           .description =
               "annealing over mapping, order and stages with every slot timed exactly; proves a bound",
           .source = "Taillard, EJOR 1990; Aarts and Korst 1989; docs/stages.md",
           .objectives = {Objective::kLatency},
           .exploits = "stages, transfer times, unequal devices",
           .ignores = "contention, memory limits",
           .stages = true},
          plan_stage_search};
}

}  // namespace heddle
