// Auto: what a user wants who does not want to choose. All constructive planners, then searches (local search
// on the exact evaluator, large neighbourhoods over CP-SAT) and proofs (combinatorial bounds, a linear
// program, modules one by one, CP-SAT on the whole model) with the time that is left; from a cold start half
// of it belongs to cold-search: after each other on one thread, side by side on several, around one store of
// the best plan and the best bound (plan_steps.h).
//
// Minimises the objective. Deterministic for a seed on one thread unless the deadline stops it; with several
// threads which worker finds something first is left to chance. Each constructive planner runs on every
// promising set of devices that do not share cores; the searches may mix them.
#include <algorithm>

#include "core/portfolio.h"
#include "hios/cp_stages.h"
#include "plan_steps.h"

namespace heddle {
namespace {

// Modules pay in no less time than this.
constexpr double kLeastModulesSeconds = 0.3;
// CP-SAT on the whole model, several threads: seconds of the first slice; each next one has twice as many.
// What is found meanwhile is its next hint.
constexpr double kFirstSlice = 1;
// CP-SAT on the whole model, one thread, before the search: of the time.
constexpr double kWholeShare = 0.25;
// Of the searcher's first local search.
constexpr double kFirstLocalSeconds = 2;
constexpr uint64_t kThreadSeedStep = 0x9e3779b97f4a7c15ULL;

bool loads_parameters(const Problem& problem) {
  const auto devices = problem.usable_devices();
  return problem.objective == Objective::kColdLatency &&
         std::any_of(devices.begin(), devices.end(),
                     [&](DeviceId d) { return needs_load(*problem.cluster, d); });
}

// Of what the other workers do, nothing decides on host access, ways of loads or their order.
void search_cold(const Problem& problem, const PlannerOptions& options, PlanStore& store) {
  PlannerOptions part = options;
  part.deadline = options.deadline.sooner(options.deadline.seconds_left() / 2);
  auto out = find_planner("cold-search")->plan(problem, part);
  if (out.ok()) store.offer(std::move(out->plan), "cold-search");
}

class AutoPortfolio {
 public:
  AutoPortfolio(const Problem& problem, const PlannerOptions& options, std::vector<Plan> starts,
                PlanStore& store, CancelToken closed)
      : problem_(problem),
        options_(options),
        steps_("auto", problem, options, std::move(starts), store),
        closed_(std::move(closed)) {}

  StopReason run() {
    if (problem_.execution.stage_width > 1)
      one_after_another(with_stages());
    else if (options_.threads > 1)
      side_by_side();
    else
      one_after_another(steps_.is_batched() ? batches_on_one_thread() : on_one_thread());
    steps_.report();
    return steps_.stop();
  }
  std::map<std::string, double> counters() const { return steps_.counters(); }

 private:
  void one_after_another(const PortfolioSteps& steps) {
    run_steps(steps, rules(options_.deadline, [this](const std::string&, size_t) { steps_.report(); }));
  }
  PortfolioRules rules(const Deadline& deadline,
                       std::function<void(const std::string&, size_t)> report = {}) const {
    return {deadline, [this, deadline] { return steps_.is_open(deadline); }, std::move(report),
            [this] { return steps_.standing(); }};
  }
  bool has_throughput() const { return problem_.objective == Objective::kThroughput; }
  bool proves_whole() const { return !steps_.is_batched() && steps_.fits_cp_sat(); }

  // Rows of the tables.
  PortfolioStep step(std::string name, TimeShare time, void (PlanSteps::*method)(const Deadline&),
                     std::function<bool()> when = {}) {
    return {std::move(name), time, std::move(when),
            [this, method](const Deadline& d) { (steps_.*method)(d); }};
  }
  PortfolioStep planner(const char* name, TimeShare time, uint64_t seed, std::function<bool()> when = {}) {
    return {name, time, std::move(when),
            [this, name, seed](const Deadline& d) { steps_.planner(name, d, seed); }};
  }
  PortfolioStep lanes(TimeShare time) {
    return {"lanes", time, [this] { return has_throughput(); },
            [this](const Deadline& all) {
              const std::function<bool()> always;
              run_steps({planner("replicate", of_left(0.2), options_.seed, always),
                         planner("diviml-throughput", of_left(1), options_.seed, always)},
                        rules(all));
            }};
  }
  PortfolioStep modules(TimeShare time) {
    time.least_s = kLeastModulesSeconds;
    return planner("cp-split", time, options_.seed, [this] { return steps_.has_modules(); });
  }
  PortfolioStep local_search(TimeShare time, uint64_t seed) {
    return {"local search", time, {}, [this, seed](const Deadline& d) { steps_.local_search(d, seed); }};
  }
  PortfolioStep search(TimeShare time, uint64_t seed) {
    return {"search", time, {}, [this, seed](const Deadline& d) { steps_.search(d, seed); }};
  }
  PortfolioStep cp_sat_slices(int threads, double first_slice, std::function<bool()> when) {
    return {"CP-SAT in slices", of_left(1), std::move(when),
            [=, this](const Deadline& d) { steps_.cp_sat_slices(d, threads, first_slice); }};
  }

  PortfolioSteps on_one_thread() {
    const double slice = kWholeShare * options_.deadline.seconds_left();
    return {
        step("start of the programs", of_left(1), &PlanSteps::start_of_programs),
        step("combinatorial bound", of_left(0.12), &PlanSteps::combinatorial_bound),
        lanes(of_all(0.7)),
        local_search(of_all(0.15), options_.seed),
        step("minimum cuts", of_all(0.08), &PlanSteps::cuts),
        step("linear program", of_all(0.12), &PlanSteps::linear_program),
        modules(of_all(steps_.modules_share())),
        {"CP-SAT", of_all(kWholeShare), [this] { return proves_whole(); },
         [this](const Deadline& d) { steps_.cp_sat(d, 1, true); }},
        search(of_left(1), options_.seed),
        // The search has nothing new for a while: the rest of the time is the proof's.
        cp_sat_slices(1, slice,
                      [this, slice] { return proves_whole() && !steps_.is_solved() && slice < kImpossible; }),
    };
  }

  // Batches of requests: first modules with the annealing that follows them, then both in turns, then bounds:
  // those of modules are mostly better. Before all, a quick one.
  PortfolioSteps batches_on_one_thread() {
    return {
        step("start of the programs", of_left(1), &PlanSteps::start_of_programs),
        step("quick bound", of_left(0.03), &PlanSteps::quick_bound),
        planner("cp-split", of_all(0.85), options_.seed),
        search(of_all(0.92), options_.seed),
        step("combinatorial bound", of_left(0.5), &PlanSteps::combinatorial_bound),
        step("linear program", of_left(1), &PlanSteps::linear_program),
    };
  }

  // Searches for exclusive devices do not know stages, and solvers' bounds do not hold for them: the search
  // over stages, which has a bound of its own, CP-SAT with stages behind it on small graphs, local search.
  PortfolioSteps with_stages() {
    const auto stages = [this](const Deadline& d) {
      PlannerOptions o = options_;
      o.deadline = d;
      steps_.planner(cp_stages_fit(problem_) ? "stage-cp" : "stage-search", o);
    };
    return {
        step("combinatorial bound", of_left(0.12), &PlanSteps::combinatorial_bound),
        {"stages", of_left(0.85), [this] { return problem_.objective == Objective::kLatency; }, stages},
        local_search(of_left(1), options_.seed),
    };
  }

  // One thread proves, and searches when it has nothing left to prove.
  PortfolioSteps prover() {
    const auto batched = [this] { return steps_.is_batched(); };
    return {
        step("start of the programs", of_left(1), &PlanSteps::start_of_programs),
        step("combinatorial bound", of_left(0.2), &PlanSteps::combinatorial_bound),
        step("minimum cuts", of_left(0.08), &PlanSteps::cuts),
        step("linear program", of_left(0.2), &PlanSteps::linear_program),
        lanes(of_left(0.7)),
        // Of batches this thread begins with annealing alone, one long cooling.
        planner("schedule-sa", of_left(0.85), options_.seed, batched),
        modules(of_left(0.3)),
        cp_sat_slices(std::max(1, options_.threads / 2), kFirstSlice, [this] { return proves_whole(); }),
        search(of_left(1), options_.seed + kThreadSeedStep / 2),
    };
  }

  PortfolioSteps searcher(uint64_t seed) {
    TimeShare first = of_left(0.15);
    first.most_s = kFirstLocalSeconds;
    if (steps_.is_batched()) return {planner("cp-split", of_left(0.85), seed), search(of_left(1), seed)};
    return {local_search(first, seed), search(of_left(1), seed)};
  }

  void side_by_side() {
    std::vector<PortfolioSteps> tables{prover()};
    const int searchers = std::max(1, options_.threads - std::max(1, options_.threads / 2));
    for (int i = 0; i < searchers; ++i)
      tables.push_back(searcher(options_.seed + kThreadSeedStep * static_cast<uint64_t>(i + 1)));
    run_watched(
        options_.deadline, closed_, [this] { steps_.report(); },
        [&](const Deadline& deadline) { run_side_by_side(tables, rules(deadline)); });
  }

  const Problem& problem_;
  const PlannerOptions& options_;
  PlanSteps steps_;
  const CancelToken closed_;
};

Result<PlannerOutput> plan_auto(const Problem& problem, const PlannerOptions& options) {
  // One planner each knows the workloads of papers.
  if (problem.execution.transfers == Transfers::kGiven)
    return find_planner("flow-search")->plan(problem, options);
  if (problem.execution.transfers == Transfers::kWithinRuns)
    return find_planner("placement-search")->plan(problem, options);
  const CancelToken closed;
  PlanStore store(problem, closed);
  if (options.start != nullptr) store.offer(*options.start, "the plan to improve");
  auto starts = run_planners(problem, options, constructive_planners(problem.objective), store);
  if (loads_parameters(problem)) search_cold(problem, options, store);
  if (options.start != nullptr) starts.push_back(*options.start);
  if (options.deadline.cancelled() && store.empty())
    return store.output(StopReason::kCancelled, options.deadline);
  const std::string constructive = store.winner();
  AutoPortfolio portfolio(problem, options, std::move(starts), store, closed);
  const StopReason stop = portfolio.run();
  HEDDLE_ASSIGN_OR_RETURN(auto out, store.output(stop, options.deadline));
  out.counters.merge(portfolio.counters());
  const bool improved = out.detail != constructive;
  out.detail = "best plan from " + out.detail;
  if (improved && !constructive.empty()) out.detail += " (best constructive: " + constructive + ")";
  return out;
}

}  // namespace

PlannerEntry auto_planner() {
  return {{.name = "auto",
           .description = "runs what fits in the time and keeps the best plan",
           .source = "the planners below",
           .objectives = {Objective::kLatency, Objective::kColdLatency, Objective::kThroughput},
           .exploits = "everything that the others do; sets of devices that share cores",
           .ignores = "explicit routes",
           .stages = true,
           .cold_start = true,
           .transfers = {Transfers::kRoutes, Transfers::kGiven, Transfers::kWithinRuns}},
          plan_auto};
}

}  // namespace heddle
