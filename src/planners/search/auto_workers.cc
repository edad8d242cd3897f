#include "auto_workers.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "bounds/cut_bound.h"
#include "bounds/lp_bound.h"
#include "cp_schedule.h"
#include "diviml/module_planner.h"
#include "diviml/task_model.h"
#include "heddle/graph/analysis.h"
#include "hios/cp_stages.h"
#include "improve.h"
#include "lane_search.h"
#include "lists/construction.h"
#include "lns_rounds.h"

namespace heddle {
namespace {

// One thread, of the time given: first local search, linear program at most, modules, CP-SAT on the whole.
constexpr double kLocalShare = 0.15, kBoundsShare = 0.12, kProgramShare = 0.12, kModulesShare = 0.2,
                 kWholeShare = 0.25;
// Where so many places divide the graph, modules are put together optimally and pay more.
constexpr size_t kNarrowPlaces = 4;
constexpr double kNarrowShare = 0.5;
// Batches of requests: first modules with the annealing that follows them, then both in turns; of several
// threads the prover's begins with annealing alone, one long cooling.
constexpr double kBatchesShare = 0.85;
// Then bounds: those of modules are mostly better. Before all, a quick one.
constexpr double kSearchedShare = 0.92, kQuickBoundShare = 0.03;
// Throughput: lanes.
constexpr double kLanesShare = 0.7;
// Of the time given: minimum cuts; of a proof's: the relaxation that it stands on.
constexpr double kCutsShare = 0.08, kRelaxShare = 0.5;
// Stages: their own search.
constexpr double kStageSearchShare = 0.85;
// Several threads, of the time given: the prover's linear program, and its modules.
constexpr double kProverProgram = 0.2, kProverModules = 0.3;
// Modules pay on graphs that CP-SAT does not solve at once, and in no less time than this.
constexpr size_t kWholeOps = 40;
constexpr double kLeastModulesSeconds = 0.3;
// CP-SAT on the whole model: seconds of the first slice; each next one has twice as many. What is found
// meanwhile is its next hint, and is seen.
constexpr double kFirstSlice = 1;
// Seconds of a searcher's turn at one kind of search.
constexpr double kSearchTurn = 2, kPolishTurn = 0.7;
constexpr std::array<int, 3> kLaneTurns{1, 4, 2};
// Turns in a row without a better plan after which a searcher ends.
constexpr int kIdleTurns = 3;
constexpr std::chrono::milliseconds kPoll{10}, kReport{100};
constexpr uint64_t kSeedStep = 0x9e3779b97f4a7c15ULL;
constexpr double kReached = 1 + 1e-9;

bool endless(const Deadline& deadline) {
  return !deadline.cancelled() && deadline.seconds_left() == std::numeric_limits<double>::infinity();
}

}  // namespace

AutoWorkers::AutoWorkers(const Problem& problem, const PlannerOptions& options, std::vector<Plan> starts,
                         PlanStore& store, CancelToken closed)
    : problem_(problem),
      options_(options),
      starts_(std::move(starts)),
      store_(store),
      closed_(closed),
      flat_(problem, problem.usable_devices()) {
  batched_ = problem.objective == Objective::kLatency && !problem.costs->segments().empty() &&
             TaskModel(flat_).num_requests() > 1;
}

Deadline AutoWorkers::part(const Deadline& deadline, double share, double most_s) const {
  return deadline.sooner(std::min(most_s, share * deadline.seconds_left()));
}

PlannerOptions AutoWorkers::quiet(const Deadline& deadline, uint64_t seed) const {
  PlannerOptions o;
  o.deadline = deadline;
  o.seed = seed;
  return o;
}

void AutoWorkers::count(const std::string& name, double value) {
  const std::lock_guard lock(mutex_);
  counters_[name] += value;
}

void AutoWorkers::report() const {
  // One at a time, so that what is seen never gets worse.
  const std::lock_guard lock(report_mutex_);
  if (store_.empty()) return;
  report_progress(options_, "auto", 0, 0, store_.value_us(), store_.bound().us);
}

void AutoWorkers::run_planner_named(const std::string& name, const Deadline& deadline, uint64_t seed) {
  run_planner_named(name, quiet(deadline, seed));
}

void AutoWorkers::run_planner_named(const std::string& name, PlannerOptions o) {
  const PlannerEntry* entry = find_planner(name);
  const auto start = store_.best();
  if (start && start->lane_shares.size() == 1) o.start = start.get();
  auto out = entry->plan(problem_, o);
  if (!out.ok()) return;
  if (out->bound) store_.prove(*out->bound);
  store_.offer(std::move(out->plan), name);
  for (const auto& [key, value] : out->counters) count(key, value);
}

void AutoWorkers::start_of_programs(const Deadline& deadline) {
  const auto& execution = problem_.execution;
  if (problem_.objective != Objective::kLatency || execution.link_contention || execution.engine_contention)
    return;
  if (!open(deadline) || !(batched_ || proves_whole())) return;
  // As they are called: from the plan that was given, not from the best so far.
  PlannerOptions o = quiet(deadline, options_.seed);
  o.start = options_.start;
  auto out = plan_start(problem_, o);
  if (!out.ok()) return;
  store_.offer(std::move(out->plan), out->detail);
  report();
}

void AutoWorkers::combinatorial_bound(const Deadline& deadline) {
  if (problem_.objective == Objective::kThroughput) {
    store_.prove(lower_bound(problem_, deadline));
    return;
  }
  store_.prove(destructive_bound(problem_, store_.bound(), store_.value_us(), deadline));
}

// Made by the first of the proofs that reads it, which all run on one thread.
const Relaxation& AutoWorkers::relaxation(const Deadline& deadline) {
  if (!relaxation_) relaxation_ = relax(problem_, deadline);
  return *relaxation_;
}

// Minimum cuts, for what the linear program is too large for too.
void AutoWorkers::cuts(const Deadline& deadline) {
  const Relaxation& r = relaxation(part(deadline, kRelaxShare));
  if (open(deadline)) store_.prove(cut_bound(flat_, r, store_.bound().us, deadline));
}

void AutoWorkers::linear_program(const Deadline& deadline) {
  const Relaxation& r = relaxation(part(deadline, kRelaxShare));
  store_.prove(lp_bound(flat_, r, deadline, store_.bound()));
}

bool AutoWorkers::has_modules() const {
  return problem_.objective == Objective::kLatency && (batched_ || problem_.graph->num_ops() > kWholeOps);
}

double AutoWorkers::modules_share() const {
  return articulation_points(*problem_.graph).size() >= kNarrowPlaces ? kNarrowShare : kModulesShare;
}

bool AutoWorkers::proves_whole() const {
  return !batched_ && problem_.objective != Objective::kThroughput && cp_schedule_fits(flat_);
}

void AutoWorkers::prove_whole(const Deadline& deadline, int threads, double slice) {
  bool linear = false;
  for (bool complete = false; !complete && open(deadline); linear = !linear) {
    // No slice is shorter than the one before it.
    const bool last = deadline.seconds_left() < 3 * slice;
    complete = cp_slice(last ? deadline : deadline.sooner(slice), threads, linear);
    if (linear) slice *= 2;
    report();
  }
}

// True when it solved the model to the end, or can do nothing here.
bool AutoWorkers::cp_slice(const Deadline& deadline, int threads, bool linear_relaxation) {
  const auto best = store_.best();
  const auto hint = best ? to_flat_plan(flat_, assignment_of(problem_, *best)) : std::nullopt;
  if (!hint) return true;
  CpScheduleOptions cp;
  cp.deadline = deadline;
  cp.threads = threads;
  cp.seed = options_.seed;
  cp.linear_relaxation = linear_relaxation;
  const double before = store_.value_us();
  const auto result = solve_cp_schedule(flat_, relaxation(deadline), *hint, cp);
  if (!result.ok()) return true;
  store_.offer(to_assignment(flat_, result->plan), "cp-sat");
  store_.prove({result->bound_us, result->complete ? "CP-SAT, solved to the end" : "CP-SAT"});
  count("cp_sat_gain_us", std::max(0.0, before - store_.value_us()));
  if (result->complete) count("cp_sat_complete", 1);
  return result->complete;
}

void AutoWorkers::local_search(const Deadline& deadline, uint64_t seed) {
  std::vector<Plan> starts;
  {
    const std::lock_guard lock(mutex_);
    starts.swap(starts_);
  }
  if (const auto best = store_.best_of_one_lane()) starts.push_back(*best);
  PlanStore mine(problem_);
  const auto result =
      improve(problem_, quiet(deadline, seed), starts, "local-search", mine, store_.bound().us);
  if (!mine.empty()) store_.offer(*mine.best(), "local-search");
  for (const auto& [name, value] : result.counters) count(name, value);
}

void AutoWorkers::large_neighbourhoods(const Deadline& deadline, uint64_t seed) {
  const auto best = store_.best_of_one_lane();
  if (!best) return;
  const auto result =
      lns_rounds(problem_, flat_, quiet(deadline, seed), *best, store_.bound().us * kReached,
                 [&](const Assignment& assignment) { return store_.offer(assignment, "lns"); });
  count("lns_steps", static_cast<double>(result.counts.steps));
  count("lns_better", static_cast<double>(result.counts.better));
}

// A batch of requests: modules and annealing in turns, each from the best of both.
void AutoWorkers::batches(const Deadline& deadline, uint64_t seed, bool modules) {
  run_planner_named(modules ? "cp-split" : "schedule-sa", deadline, seed);
}

// Turns at large neighbourhoods and local search, until several in a row gain nothing.
void AutoWorkers::search(const Deadline& deadline, uint64_t seed, bool first) {
  if (first && open(deadline)) local_search(part(deadline, kLocalShare, kSearchTurn), seed);
  const bool once = endless(deadline);
  size_t turn = 0;
  for (int idle = 0; idle < kIdleTurns && open(deadline);) {
    const double before = store_.value_us();
    seed += kSeedStep;
    if (batched_) {
      batches(part(deadline, 1, kSearchTurn * (1 + idle)), seed, turn++ % 2 == 0);
    } else {
      // Throughput: lanes in turns with one lane.
      if (const int lanes = kLaneTurns[turn++ % kLaneTurns.size()];
          problem_.objective == Objective::kThroughput && lanes > 1)
        search_lanes(problem_, quiet(part(deadline, 1, kSearchTurn), seed), lanes, store_.best().get(),
                     [&](Plan plan) { return store_.offer(std::move(plan), "search over lanes"); });
      else
        large_neighbourhoods(part(deadline, 1, kSearchTurn), seed);
      report();
      if (open(deadline)) local_search(part(deadline, 1, kPolishTurn), seed);
    }
    report();
    idle = store_.value_us() < before ? 0 : idle + 1;
    if (once) break;
  }
}

void AutoWorkers::throughput_programs(const Deadline& deadline) {
  run_planner_named("replicate", part(deadline, 0.2), options_.seed);
  if (open(deadline)) run_planner_named("diviml-throughput", deadline, options_.seed);
}

void AutoWorkers::batches_one_after_another() {
  const Deadline& all = options_.deadline;
  const double time = all.seconds_left();
  const auto share = [&](double s) { return all.sooner(s * time); };
  start_of_programs(all);
  store_.prove(lower_bound(problem_, part(all, kQuickBoundShare)));
  if (open(all)) run_planner_named("cp-split", share(kBatchesShare), options_.seed);
  report();
  search(share(kSearchedShare), options_.seed, false);
  if (open(all)) combinatorial_bound(part(all, 0.5));
  if (open(all)) linear_program(all);
  report();
}

void AutoWorkers::one_after_another() {
  const Deadline& all = options_.deadline;
  const double time = all.seconds_left();
  const auto share = [&](double s) { return all.sooner(s * time); };
  start_of_programs(all);
  combinatorial_bound(part(all, kBoundsShare));
  report();
  if (problem_.objective == Objective::kThroughput && open(all)) throughput_programs(share(kLanesShare));
  if (open(all)) local_search(share(kLocalShare), options_.seed);
  report();
  if (open(all)) cuts(share(kCutsShare));
  if (open(all)) linear_program(share(kProgramShare));
  report();
  if (has_modules() && open(all)) {
    const double modules = modules_share();
    if (modules * time >= kLeastModulesSeconds) run_planner_named("cp-split", share(modules), options_.seed);
  }
  report();
  const bool whole = proves_whole();
  const bool solved = whole && open(all) && cp_slice(share(kWholeShare), 1, true);
  report();
  search(all, options_.seed, false);
  // The search has nothing new for a while: the rest of the time is the proof's.
  if (whole && !solved && !endless(all)) prove_whole(all, 1, kWholeShare * time);
}

void AutoWorkers::prover(const Deadline& deadline) {
  start_of_programs(deadline);
  combinatorial_bound(part(deadline, kProverProgram));
  if (open(deadline)) cuts(part(deadline, kCutsShare));
  if (open(deadline)) linear_program(part(deadline, kProverProgram));
  if (problem_.objective == Objective::kThroughput && open(deadline))
    throughput_programs(part(deadline, kLanesShare));
  if (batched_ && open(deadline))
    run_planner_named("schedule-sa", part(deadline, kBatchesShare), options_.seed);
  const auto modules = part(deadline, kProverModules);
  if (has_modules() && open(deadline) && modules.seconds_left() >= kLeastModulesSeconds)
    run_planner_named("cp-split", modules, options_.seed);
  if (proves_whole()) prove_whole(deadline, std::max(1, options_.threads / 2), kFirstSlice);
}

void AutoWorkers::side_by_side() {
  // Workers listen to the store, which is told of a cancellation here.
  const double left = options_.deadline.seconds_left();
  const Deadline deadline = Deadline::after_seconds(left, closed_);
  const int searchers = std::max(1, options_.threads - std::max(1, options_.threads / 2));
  std::atomic<int> running{searchers + 1};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    prover(deadline);
    search(deadline, options_.seed + kSeedStep / 2, false);
    --running;
  });
  for (int i = 0; i < searchers; ++i) {
    threads.emplace_back([&, i] {
      const uint64_t seed = options_.seed + kSeedStep * static_cast<uint64_t>(i + 1);
      if (batched_) run_planner_named("cp-split", part(deadline, kBatchesShare), seed);
      search(deadline, seed, !batched_);
      --running;
    });
  }
  auto last = std::chrono::steady_clock::now();
  while (running.load() > 0) {
    std::this_thread::sleep_for(kPoll);
    if (options_.deadline.cancelled()) closed_.cancel();
    const auto now = std::chrono::steady_clock::now();
    if (now - last < kReport) continue;
    last = now;
    report();
  }
  for (auto& thread : threads) thread.join();
}

// Searches for exclusive devices do not know stages, and solvers' bounds do not hold for them: the search
// over stages, which has a bound of its own, CP-SAT with stages behind it on small graphs, and local search.
void AutoWorkers::with_stages() {
  const Deadline& all = options_.deadline;
  combinatorial_bound(part(all, kBoundsShare));
  report();
  if (problem_.objective == Objective::kLatency && open(all)) {
    PlannerOptions o = options_;
    o.deadline = part(all, kStageSearchShare);
    run_planner_named(cp_stages_fit(problem_) ? "stage-cp" : "stage-search", o);
  }
  if (open(all)) local_search(all, options_.seed);
  report();
}

StopReason AutoWorkers::run() {
  if (problem_.execution.stage_width > 1)
    with_stages();
  else if (options_.threads > 1)
    side_by_side();
  else if (batched_)
    batches_one_after_another();
  else
    one_after_another();
  report();
  if (!store_.is_open()) return StopReason::kOptimal;
  return options_.deadline.expired() ? StopReason::kTimeLimit : StopReason::kFinished;
}

}  // namespace heddle
