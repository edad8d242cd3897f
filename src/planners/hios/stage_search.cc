// Stage search: simulated annealing over mapping, order and stages at once (stage_anneal.cc), begun with the
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
#include "core/portfolio.h"
#include "heddle/plan/relaxation.h"
#include "hios.h"
#include "lists/construction.h"
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

  StageSearchOptions anneal = options;
  if (anneal.steps == 0 && options.deadline.seconds_left() == kNoTime)
    anneal.steps =
        std::max<uint64_t>(1, std::min<uint64_t>(kStepsPerOp * instance.num_ops(),
                                                 kMostStepOps / std::max<size_t>(1, instance.num_ops())));
  std::vector<StageSearchResult> found(static_cast<size_t>(std::clamp(options.threads, 1, kMostThreads)));
  const auto work = [&](size_t i) {
    StageSearchOptions own = anneal;
    if (i > 0) own.on_progress = {};
    own.seed = options.seed + i * 0x9e3779b97f4a7c15ULL;
    found[i] = anneal_stages(instance, result.best, own);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < found.size(); ++i) threads.emplace_back(work, i);
  work(0);
  for (std::thread& t : threads) t.join();
  for (StageSearchResult& f : found) {
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
  // Only its devices and routes are needed, no blocks.
  const Relaxation relaxation = relax(problem, Deadline::after_seconds(0));
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

// The portfolio: plans at once, for what the flat instance leaves out may turn their order around; a bound;
// the search on each set of devices.
class StageSearch {
 public:
  StageSearch(const Problem& problem, const PlannerOptions& options)
      : problem_(problem), options_(options), sets_(configurations(problem)), store_(problem) {}

  Result<PlannerOutput> run() {
    if (options_.start != nullptr) store_.offer(*options_.start, "the plan to improve");
    run_steps(steps(),
              {.deadline = options_.deadline, .open = until_there_is_a_plan(store_, options_.deadline)});
    if (store_.empty() && store_.offered() == 0 && failure_) return *failure_;
    const StopReason stop = !store_.is_open()                 ? StopReason::kOptimal
                            : options_.deadline.should_stop() ? StopReason::kTimeLimit
                                                              : StopReason::kFinished;
    HEDDLE_ASSIGN_OR_RETURN(auto out, store_.output(stop, options_.deadline));
    out.counters["steps"] = static_cast<double>(steps_);
    out.counters["moves_timed"] = static_cast<double>(timed_);
    return out;
  }

 private:
  PortfolioSteps steps() {
    PortfolioSteps steps;
    for (const char* const name : {"stage-list", "hios-lp", "heft-stages"})
      steps.push_back({name, of_left(kStartShare), {}, [this, name](const Deadline& d) { begin(name, d); }});
    TimeShare bound = of_left(kBoundShare);
    bound.most_s = kBoundSeconds;
    steps.push_back({"bound", bound, {}, [this](const Deadline& d) { prove(d); }});
    for (size_t i = 0; i < sets_.size(); ++i)
      steps.push_back(
          {"search", of_left(1 / static_cast<double>(sets_.size() - i)), {}, [this, i](const Deadline& d) {
             search(i, d);
           }});
    return steps;
  }

  void begin(const char* name, const Deadline& deadline) {
    const auto out = find_planner(name)->plan(problem_, {.deadline = deadline});
    if (out.ok()) store_.offer(out->plan, out->detail);
  }

  void prove(const Deadline& deadline) {
    store_.prove(lower_bound(problem_, deadline));
    const StageBound own = stage_bound(net_of(problem_), kNoTime, deadline);
    store_.prove({own.us, own.reason});
  }

  void search(size_t set, const Deadline& deadline) {
    const auto instance = stage_instance_of(problem_, sets_[set]);
    StageSearchOptions o;
    o.deadline = deadline;
    o.seed = options_.seed;
    o.threads = options_.threads;
    o.bound_us = store_.bound().us;
    o.on_progress = [&](double share, double best_us) {
      report_progress(options_, "stage-search", static_cast<double>(set) + share,
                      static_cast<double>(sets_.size()), best_us, store_.bound().us);
    };
    const auto found = search_stages(instance, o);
    if (!found.ok()) {
      failure_ = found.error();
      return;
    }
    steps_ += found->steps;
    timed_ += found->timed;
    store_.offer(assignment_of_stages(instance.num_ops(), list_stages(instance, found->best, sets_[set])),
                 found->start + ", improved by stage-search");
  }

  const Problem& problem_;
  const PlannerOptions& options_;
  const std::vector<std::vector<DeviceId>> sets_;
  PlanStore store_;
  uint64_t steps_ = 0, timed_ = 0;
  std::optional<Error> failure_;
};

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
          [](const Problem& problem, const PlannerOptions& options) {
            return StageSearch(problem, options).run();
          }};
}

}  // namespace heddle
