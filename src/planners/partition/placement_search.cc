// Placement of Tarnawski et al.'s workloads (NeurIPS 2020): the portfolio over all methods for their two
// objectives.
//
// Minimises the largest load of a device, or the latency of one sample. Anytime: the best split when the deadline
// ends it, within 60 s where there is none. Each method is deterministic for its seed; they share incumbents as
// time allows, so two runs that are cut short may differ.
// Max-load, contiguous: linearised orders, then the exact programme over ideals.
// Max-load: these as a start, annealing in all threads, CP-SAT in one.
// Latency: greedy and linearised orders as a start, annealing in all threads, CP-SAT in one.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/portfolio.h"
#include "lists/construction.h"
#include "placement_store.h"

namespace heddle {
namespace {

constexpr double kGap = 1e-6;         // of two values that count as equal
constexpr double kUsualSeconds = 60;  // where the caller sets no end

// Rounds of annealing, ever longer.
void anneal_rounds(const PlacementMethods& methods, uint64_t seed, int thread, const Deadline& deadline) {
  PlacementMethods::Units own;
  double own_value = 0;
  for (int round = 0; !deadline.should_stop(); ++round) {
    const auto start = methods.start(round, own, own_value);
    if (start.empty()) return;
    own = methods.search(
        start,
        {.deadline = deadline,
         .seed = seed + static_cast<uint64_t>(thread) * 1'000'003 + static_cast<uint64_t>(round) * 7919,
         .moves = methods.moves_first + methods.moves_more * std::min(round, methods.most_growth),
         .heat = methods.heats[static_cast<size_t>(round + 2 * thread) % methods.heats.size()]});
    own_value = methods.offer(own, "annealing");
  }
}

// Whether the model found a better split, or a better bound.
bool solve_once(const PlacementMethods& methods, uint64_t seed, PlacementStore& store,
                const Deadline& deadline) {
  const double value = store.value(), bound = store.bound();
  const auto status = methods.solve({.deadline = deadline, .seed = seed});
  if (!status.ok() && status.error().code() != Code::kUnsupported) store.fail(status.error());
  return status.ok() && (store.value() < value || store.bound() > bound * (1 + 1e-4));
}

Result<PlannerOutput> plan_placement(const Problem& problem, const PlannerOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const auto instance, PlacementInstance::make(problem));
  const auto began = Deadline::Clock::now();
  const double left = options.deadline.seconds_left();
  const double seconds = std::isfinite(left) ? left : kUsualSeconds;
  const CancelToken done;
  PlacementStore store(instance, done);
  const auto report = [&] {
    const double elapsed = std::chrono::duration<double>(Deadline::Clock::now() - began).count();
    const double value = store.value(), bound = store.bound();
    report_progress(options, instance.workload().name, std::min(elapsed, seconds), seconds,
                    std::isfinite(value) ? std::optional<double>(value) : std::nullopt,
                    bound > 0 ? std::optional<double>(bound) : std::nullopt);
  };
  run_watched(options.deadline.sooner(seconds), done, report, [&](const Deadline& deadline) {
    const PlacementTask task{instance, options, deadline, store};
    instance.is_latency() ? run_latency_portfolio(task) : run_load_portfolio(task);
  });
  HEDDLE_ASSIGN_OR_RETURN(auto output, store.result());
  if (output.stop != StopReason::kOptimal && options.deadline.should_stop())
    output.stop = options.deadline.cancelled() ? StopReason::kCancelled : StopReason::kTimeLimit;
  return output;
}

}  // namespace

PlacementStore::PlacementStore(const PlacementInstance& instance, CancelToken done)
    : instance_(instance), done_(std::move(done)), splits_(kGap, done_) {}

double PlacementStore::offer(const PlacementSplit& split, const std::string& method) {
  const auto value = instance_.value_us(split);
  if (!value) return std::numeric_limits<double>::infinity();
  splits_.offer(*value, split, method);
  return *value;
}

void PlacementStore::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  done_.cancel();
}

PlacementSplit PlacementStore::split() const {
  const auto best = splits_.best();
  return best ? *best : PlacementSplit{};
}

Result<PlannerOutput> PlacementStore::result() const {
  const std::lock_guard lock(mutex_);
  if (error_) return *error_;
  const auto best = splits_.best();
  const std::string& name = instance_.workload().name;
  if (!best)
    return infeasible(name +
                      ": found no split that memory and supported devices allow; give "
                      "accelerators more memory, or the workload a CPU");
  const double value = splits_.value(), bound = splits_.bound();
  if (bound > value * (1 + 1e-9))
    return internal_error(name + ": the bound " + std::to_string(bound) + " is " + splits_.proof().text() +
                          ", but " + splits_.winner() + " found the checked value " + std::to_string(value));
  PlannerOutput output;
  HEDDLE_ASSIGN_OR_RETURN(output.plan, instance_.plan_of(*best));
  // They may differ by the rounding of sums.
  if (bound > 0) output.bound = Bound{std::min(bound, value), splits_.proof()};
  output.stop = splits_.is_open() ? StopReason::kFinished : StopReason::kOptimal;
  output.detail = splits_.winner();
  output.trajectory = splits_.trajectory();
  return output;
}

void run_search(const PlacementTask& task, const PlacementMethods& methods, const Deadline& deadline) {
  const uint64_t seed = task.options.seed;
  bool found = false;
  const auto annealing = [&](int thread, TimeShare time) -> PortfolioStep {
    return {
        "annealing", time, {}, [&, thread](const Deadline& d) { anneal_rounds(methods, seed, thread, d); }};
  };
  const auto model = [&](const Deadline& d) { found = solve_once(methods, seed, task.store, d); };
  std::vector<PortfolioSteps> tables{{annealing(0, of_all(methods.before)),
                                      {"CP-SAT", of_all(methods.model), {}, model},
                                      {"CP-SAT again", of_left(1), [&] { return found; }, model},
                                      annealing(0, of_left(1))}};
  for (int t = 1; t < task.options.threads; ++t) tables.push_back({annealing(t, of_left(1))});
  run_side_by_side(tables, {.deadline = deadline});
}

PlannerEntry placement_search_planner() {
  return {{.name = "placement-search",
           .description =
               "exact ideals, annealing and CP-SAT for devices that move tensors themselves; proves a bound",
           .source = "Tarnawski et al., NeurIPS 2020",
           .objectives = {Objective::kLatency, Objective::kThroughput},
           .exploits = "transfers within runs, colours, contiguity, segments per device, memory limits",
           .ignores = "devices of a kind that differ",
           .transfers = {Transfers::kWithinRuns}},
          plan_placement};
}

}  // namespace heddle
