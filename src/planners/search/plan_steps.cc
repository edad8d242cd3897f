#include "plan_steps.h"

#include <algorithm>
#include <array>
#include <limits>

#include "bounds/cut_bound.h"
#include "bounds/lp_bound.h"
#include "cp_schedule.h"
#include "diviml/module_planner.h"
#include "diviml/task_model.h"
#include "heddle/graph/analysis.h"
#include "heddle/planners/batch_problem.h"
#include "heddle/solve/solution.h"
#include "improve.h"
#include "lists/construction.h"
#include "lns_search.h"

namespace heddle {
namespace {

// Of the time: modules; where so many places divide the graph, modules are put together optimally and pay
// more.
constexpr double kModulesShare = 0.2, kNarrowShare = 0.5;
constexpr size_t kNarrowPlaces = 4;
// Modules pay on graphs that CP-SAT does not solve at once.
constexpr size_t kWholeOps = 40;
// Of a proof's time: the relaxation that it stands on.
constexpr double kRelaxShare = 0.5;
// Seconds of a searcher's turn at one kind of search.
constexpr double kSearchTurn = 2, kPolishTurn = 0.7;
constexpr std::array<int, 3> kLaneTurns{1, 4, 2};
// Turns in a row without a better plan after which a searcher ends.
constexpr int kIdleTurns = 3;
constexpr uint64_t kSeedStep = 0x9e3779b97f4a7c15ULL;
constexpr double kReached = 1 + 1e-9;
// Ops of all copies together.
constexpr size_t kMostOps = 20'000;
// Of the time, for local search.
constexpr double kLocalShareOfLanes = 0.4;

bool endless(const Deadline& deadline) {
  return !deadline.cancelled() && deadline.seconds_left() == std::numeric_limits<double>::infinity();
}

// Decisions for the copies of side_by_side() as lanes of equal share.
std::vector<Lane> lanes_of(const Graph& graph, const Assignment& copies, int lanes) {
  const auto order = graph.topological_order();
  std::vector<Lane> list;
  for (int l = 0; l < lanes; ++l) {
    Lane& lane = list.emplace_back();
    lane.share = 1.0 / lanes;
    lane.assignment.device.resize(order.size());
    lane.assignment.order.assign(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i)
      lane.assignment.device[order[i].index()] = copies.device[static_cast<size_t>(l) * order.size() + i];
  }
  return list;
}

// The reverse; the plan's lanes are dealt out in turn.
Assignment copies_of(const Problem& problem, const Problem& many, const Plan& plan, int lanes) {
  Assignment copies;
  for (int l = 0; l < lanes; ++l) {
    const auto lane = assignment_of(problem, plan, l % static_cast<int>(plan.lane_shares.size()));
    for (const OpId v : problem.graph->topological_order()) copies.device.push_back(lane.device[v.index()]);
  }
  copies.order.assign(many.graph->topological_order().begin(), many.graph->topological_order().end());
  return copies;
}

}  // namespace

PlanSteps::PlanSteps(std::string name, const Problem& problem, const PlannerOptions& options,
                     std::vector<Plan> starts, PlanStore& store)
    : name_(std::move(name)),
      problem_(problem),
      options_(options),
      starts_(std::move(starts)),
      store_(store),
      flat_(problem, problem.usable_devices()) {
  batched_ = problem.objective == Objective::kLatency && !problem.costs->segments().empty() &&
             TaskModel(flat_).num_requests() > 1;
}

StopReason PlanSteps::stop() const {
  if (!store_.is_open()) return StopReason::kOptimal;
  return options_.deadline.expired() ? StopReason::kTimeLimit : StopReason::kFinished;
}

Deadline PlanSteps::part(const Deadline& deadline, double share, double most_s) const {
  return deadline.sooner(std::min(most_s, share * deadline.seconds_left()));
}

PlannerOptions PlanSteps::quiet(const Deadline& deadline, uint64_t seed) const {
  PlannerOptions o;
  o.deadline = deadline;
  o.seed = seed;
  o.progress = options_.progress == nullptr ? nullptr : &relay_;
  return o;
}

void PlanSteps::count(const std::string& name, double value) {
  const std::lock_guard lock(mutex_);
  counters_[name] += value;
}

void PlanSteps::report() const {
  // One at a time, so that what is seen never gets worse.
  const std::lock_guard lock(report_mutex_);
  if (store_.empty()) return;
  report_progress(options_, name_, 0, 0, store_.value_us(), store_.bound().us);
}

void PlanSteps::planner(const std::string& name, const Deadline& deadline, uint64_t seed) {
  planner(name, quiet(deadline, seed));
}

void PlanSteps::planner(const std::string& name, PlannerOptions o) {
  const PlannerEntry* entry = find_planner(name);
  const auto start = store_.best();
  if (start && start->lane_shares.size() == 1) o.start = start.get();
  auto out = entry->plan(problem_, o);
  if (!out.ok()) return;
  if (out->bound) store_.prove(*out->bound);
  store_.offer(std::move(out->plan), name);
  for (const auto& [key, value] : out->counters) count(key, value);
}

void PlanSteps::start_of_programs(const Deadline& deadline) {
  const auto& execution = problem_.execution;
  if (problem_.objective != Objective::kLatency || execution.link_contention || execution.engine_contention)
    return;
  if (!batched_ && !fits_cp_sat()) return;
  // As they are called: from the plan that was given, not from the best so far.
  PlannerOptions o = quiet(deadline, options_.seed);
  o.start = options_.start;
  auto out = plan_start(problem_, o);
  if (!out.ok()) return;
  store_.offer(std::move(out->plan), out->detail);
  report();
}

void PlanSteps::quick_bound(const Deadline& deadline) { store_.prove(lower_bound(problem_, deadline)); }

void PlanSteps::combinatorial_bound(const Deadline& deadline) {
  if (problem_.objective == Objective::kThroughput) return quick_bound(deadline);
  store_.prove(destructive_bound(problem_, store_.bound(), store_.value_us(), deadline));
}

// Made by the first of the proofs that reads it, which all run on one thread.
const Relaxation& PlanSteps::relaxation(const Deadline& deadline) {
  if (!relaxation_) relaxation_ = relax(problem_, deadline);
  return *relaxation_;
}

// Minimum cuts, for what the linear program is too large for too.
void PlanSteps::cuts(const Deadline& deadline) {
  const Relaxation& r = relaxation(part(deadline, kRelaxShare));
  if (is_open(deadline)) store_.prove(cut_bound(flat_, r, store_.bound().us, deadline));
}

void PlanSteps::linear_program(const Deadline& deadline) {
  const Relaxation& r = relaxation(part(deadline, kRelaxShare));
  store_.prove(lp_bound(flat_, r, deadline, store_.bound()));
}

bool PlanSteps::has_modules() const {
  return problem_.objective == Objective::kLatency && (batched_ || problem_.graph->num_ops() > kWholeOps);
}

double PlanSteps::modules_share() const {
  return articulation_points(*problem_.graph).size() >= kNarrowPlaces ? kNarrowShare : kModulesShare;
}

bool PlanSteps::fits_cp_sat() const {
  return problem_.objective != Objective::kThroughput && cp_schedule_fits(flat_);
}

void PlanSteps::cp_sat_slices(const Deadline& deadline, int threads, double slice) {
  for (bool linear = false; !solved_ && is_open(deadline); linear = !linear) {
    // No slice is shorter than the one before it.
    const bool last = deadline.seconds_left() < 3 * slice;
    cp_sat(last ? deadline : deadline.sooner(slice), threads, linear);
    if (linear) slice *= 2;
    report();
  }
}

void PlanSteps::cp_sat(const Deadline& deadline, int threads, bool linear) {
  const auto best = store_.best();
  const auto hint = best ? to_flat_plan(flat_, assignment_of(problem_, *best)) : std::nullopt;
  solved_ = true;  // or there is nothing that it can do
  if (!hint) return;
  CpScheduleOptions cp;
  cp.deadline = deadline;
  cp.threads = threads;
  cp.seed = options_.seed;
  cp.linear_relaxation = linear;
  if (options_.progress != nullptr) {
    cp.on_progress = [this](double bound_us) {
      report_progress(options_, name_, 0, 0, store_.value_us(), std::max(store_.bound().us, bound_us));
    };
  }
  const double before = store_.value_us();
  const auto result = solve_cp_schedule(flat_, relaxation(deadline), *hint, cp);
  if (!result.ok()) return;
  store_.offer(to_assignment(flat_, result->plan), "cp-sat");
  store_.prove(
      {result->bound_us,
       {result->complete ? "constraint program, solved to the end" : "constraint program", cp_sat_name()}});
  count("cp_sat_gain_us", std::max(0.0, before - store_.value_us()));
  count("cp_sat_complete", result->complete ? 1 : 0);
  solved_ = result->complete;
}

void PlanSteps::local_search(const Deadline& deadline, uint64_t seed, int threads) {
  std::vector<Plan> starts;
  {
    const std::lock_guard lock(mutex_);
    starts.swap(starts_);
  }
  if (const auto best = store_.best_of_one_lane()) starts.push_back(*best);
  PlannerOptions o = quiet(deadline, seed);
  o.threads = threads;
  PlanStore mine(problem_);
  const auto result = improve(problem_, o, starts, "local-search", mine, store_.bound().us);
  if (!mine.empty()) store_.offer(*mine.best(), "local-search");
  for (const auto& [name, value] : result.counters) count(name, value);
}

void PlanSteps::large_neighbourhoods(const Deadline& deadline, uint64_t seed) {
  const auto best = store_.best_of_one_lane();
  if (!best) return;
  const auto result = lns_rounds(problem_, flat_, quiet(deadline, seed), *best, store_.bound().us * kReached,
                                 [&](const Assignment& assignment) {
                                   const bool better = store_.offer(assignment, "lns");
                                   if (better) report();
                                   return better;
                                 });
  if (result.ran) lns_has_run_ = true;
  count("lns_steps", static_cast<double>(result.counts.steps));
  count("lns_better", static_cast<double>(result.counts.better));
  count("lns_complete", static_cast<double>(result.counts.complete));
}

void PlanSteps::search_lanes(const Deadline& deadline, uint64_t seed, int lanes) {
  if (problem_.graph->num_ops() * static_cast<size_t>(lanes) > kMostOps) return;
  const auto many = side_by_side(problem_, lanes);
  if (!many.ok()) return;
  PlanStore mine(*many);
  const auto hand_over = [&](const Assignment& copies) {
    store_.offer(lanes_of(*problem_.graph, copies, lanes), "search over lanes");
  };
  std::vector<Plan> starts;
  if (const auto best = store_.best()) {
    if (auto plan = build_plan(*many, copies_of(problem_, *many, *best, lanes)); plan.ok())
      starts.push_back(std::move(*plan));
  }
  PlannerOptions o = quiet(deadline, seed);
  o.progress = nullptr;
  if (auto greedy = find_planner("greedy")->plan(*many, o); greedy.ok())
    starts.push_back(std::move(greedy->plan));
  o.deadline = part(deadline, kLocalShareOfLanes);
  improve(*many, o, starts, "lanes", mine, 0);
  if (mine.empty()) return;
  hand_over(assignment_of(*many, *mine.best()));
  o.deadline = deadline;
  const FlatProblem flat(*many, many->usable_devices());
  const auto start = mine.best();
  lns_rounds(*many, flat, o, *start, 0, [&](const Assignment& copies) {
    const bool better = mine.offer(copies, "lanes");
    if (better) hand_over(copies);
    return better;
  });
}

void PlanSteps::search_turn(const Deadline& deadline, uint64_t seed, size_t turn, int idle) {
  if (batched_) {
    // Modules and annealing in turns, each from the best of both.
    planner(turn % 2 == 0 ? "cp-split" : "schedule-sa", part(deadline, 1, kSearchTurn * (1 + idle)), seed);
    return;
  }
  // Throughput: lanes in turns with one lane.
  const int lanes = kLaneTurns[turn % kLaneTurns.size()];
  if (problem_.objective == Objective::kThroughput && lanes > 1) {
    search_lanes(part(deadline, 1, kSearchTurn), seed, lanes);
  } else {
    large_neighbourhoods(part(deadline, 1, kSearchTurn), seed);
  }
  report();
  if (is_open(deadline)) local_search(part(deadline, 1, kPolishTurn), seed);
}

void PlanSteps::search(const Deadline& deadline, uint64_t seed) {
  const bool once = endless(deadline);
  size_t turn = 0;
  for (int idle = 0; idle < kIdleTurns && is_open(deadline);) {
    const double before = store_.value_us();
    seed += kSeedStep;
    search_turn(deadline, seed, turn++, idle);
    report();
    idle = store_.value_us() < before ? 0 : idle + 1;
    if (once) break;
  }
}

Result<PlannerOutput> plan_by_steps(const std::string& name, const Problem& problem,
                                    const PlannerOptions& options,
                                    const std::function<PortfolioSteps(PlanSteps&)>& table) {
  return plan_from_starts(problem, options,
                          [&](std::vector<Plan> starts, PlanStore& store) -> Result<PlannerOutput> {
                            PlanSteps steps(name, problem, options, std::move(starts), store);
                            run_steps(table(steps), {.deadline = options.deadline,
                                                     .open = [&] { return steps.is_open(options.deadline); },
                                                     .report = [&](auto&, size_t) { steps.report(); }});
                            HEDDLE_ASSIGN_OR_RETURN(auto out, store.output(steps.stop(), options.deadline));
                            out.counters.merge(steps.counters());
                            return out;
                          });
}

}  // namespace heddle
