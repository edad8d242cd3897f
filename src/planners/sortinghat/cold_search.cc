// Heddle's own planner for cold starts: the whole model at once. Decisions are each op's device, the way of
// its parameters (a bus, another device's bus, or direct host access), the order of runs and the order of
// loads. Seeds: the baselines, SortingHat's submodels with their heuristic choice, and greedy constructions
// (list scheduling in which a load is part of placing an op), bundled loads on one device. Then annealing
// (Kirkpatrick et al., Science 1983) with exact times (cold_timer.cc), guided by the critical path, from the
// best of all.
//
// Minimises the makespan of one request; never worse than its seeds. A move costs O(V + E). Deterministic for
// the seed unless the deadline stops it; without one it ends after kStaleRounds rounds in a row without a
// better plan. Exploits all that the evaluator knows of cold starts but explicit transfer routes; devices
// that share cores are used by seeds only.
#include <algorithm>
#include <array>

#include "cold_anneal.h"
#include "cold_bundles.h"
#include "core/portfolio.h"
#include "heddle/plan/bounds.h"
#include "lists/construction.h"
#include "submodel_loop.h"

namespace heddle {
namespace {

constexpr std::array<std::string_view, 5> kSeeds{"single", "cold-single", "cold-serial", "heft", "deepplan"};
constexpr double kPrices[] = {0, 0.3, 1};
constexpr size_t kMovesPerOp = 40, kLeastMoves = 4000;
constexpr int kStaleRounds = 5;
// Relative heat of rounds in turn; hot ones leave the seed's valley.
constexpr double kHeats[] = {2e-4, 1e-3, 5e-5, 4e-3};

class Run {
 public:
  Run(const Problem& problem, const PlannerOptions& options, PlanStore& candidates)
      : problem_(problem),
        options_(options),
        candidates_(candidates),
        tables_(problem, configurations(problem).front()),
        reserve_(static_cast<size_t>(problem.cluster->num_memory_pools()), 0) {}

  // Seeds, then annealing from the best of them.
  PortfolioSteps steps() {
    const auto few = [this] {
      return check_slots(tables_.flat().num_devices(), static_cast<int>(SlotOptions().q), "").ok();
    };
    return {
        {"baselines",
         of_left(0.15),
         {},
         [this](const Deadline& d) { run_planners(problem_, until(d), kSeeds, candidates_); }},
        {"sortinghat's submodels", of_left(0.1), few, [this](const Deadline& d) { submodels(1, d); }},
        {"larger submodels", of_left(0.1), few, [this](const Deadline& d) { submodels(4, d); }},
        {"greedy constructions", of_left(1), {}, [this](const Deadline&) { construct(); }},
        {"bundled loads", of_left(1), {}, [this](const Deadline&) { bundle(); }},
        {"bound",
         of_left(0.1),
         {},
         [this](const Deadline& d) { candidates_.prove(lower_bound(problem_, d)); }},
        {"annealing", of_left(1), {}, [this](const Deadline&) { anneal(); }},
    };
  }
  bool failed() const { return !status_.ok(); }
  const Status& status() const { return status_; }
  const std::string& seed() const { return seed_; }
  double seed_us() const { return seed_us_; }
  double timed() const { return timed_; }

 private:
  PlannerOptions until(const Deadline& deadline) const {
    PlannerOptions part = options_;
    part.deadline = deadline;
    return part;
  }

  void submodels(int dominators, const Deadline& deadline) {
    const auto cut = dominator_submodels(*problem_.graph, light_prologue(*problem_.graph), dominators);
    PlannerOptions part = until(deadline);
    part.progress = nullptr;
    const auto result = run_submodels(tables_, cut, {}, part, "sortinghat's submodels", candidates_);
    if (!result.ok()) status_ = result.error();
  }

  void anneal() {
    seed_ = candidates_.winner();
    seed_us_ = candidates_.value_us();
    ColdAnneal anneal(tables_, options_.seed, reserve_);
    auto from = start();
    if (!from) return;
    const size_t moves = std::max(kLeastMoves, kMovesPerOp * problem_.graph->num_ops());
    int stale = 0;
    for (int r = 0; stale < kStaleRounds && !options_.deadline.should_stop(); ++r) {
      if (!candidates_.is_open()) break;
      const double before = candidates_.value_us();
      const auto found = anneal.round(*from, moves, kHeats[r % 4], options_.deadline);
      const bool better = offer(found, "cold-search") || candidates_.value_us() < before;
      if (!candidates_.last_fits()) anneal.set_reserve(reserve_);
      if (anneal.cost(found) < anneal.cost(*from)) from = found;
      stale = better ? 0 : stale + 1;
      report_progress(options_, "planner cold-search", r + 1, 0, candidates_.value_us(),
                      candidates_.bound().us);
    }
    timed_ = static_cast<double>(anneal.timed());
  }

  // Tensors that do not fit beside the parameters: so much more is left free from now on.
  bool offer(const ColdDecisions& d, const std::string& who) {
    ColdTimer timer(tables_);
    if (!(timer.time(d) < kImpossible)) return false;
    const bool better = candidates_.offer(timer.plan(d), who);
    for (size_t p = 0; p < reserve_.size() && !candidates_.last_fits(); ++p)
      reserve_[p] = plus_bytes(reserve_[p], candidates_.excess()[p]);
    return better;
  }

  // Greedy constructions: all devices, one of each bus, each alone; several prices of a bus's time.
  void construct() {
    const FlatProblem& flat = tables_.flat();
    const size_t k = flat.num_devices();
    const auto bus = buses_of(tables_);
    std::vector<std::vector<uint8_t>> masks{std::vector<uint8_t>(k, 1)};
    std::vector<uint8_t> first(k, 0), seen(k + 1, 0);
    for (size_t i = 0; i < k; ++i) first[i] = !std::exchange(seen[bus[i]], uint8_t{1});
    masks.push_back(first);
    for (size_t i = 0; i < k; ++i) {
      masks.emplace_back(k, 0);
      masks.back()[i] = 1;
    }
    const std::vector<uint32_t> plain(flat.topological().begin(), flat.topological().end());
    const std::vector<std::vector<uint32_t>> orders{plain, order_by_priority(flat, upward_ranks(flat))};
    for (const auto& mask : masks) {
      for (const auto& order : orders) {
        for (const double price : kPrices) {
          if (options_.deadline.cancelled() || (options_.deadline.expired() && !candidates_.empty())) return;
          GreedyOptions greedy{.bus_price = price, .in_place = true, .helpers = true, .devices = mask};
          const auto d = greedy_cold(tables_, order, greedy);
          if (d) offer(*d, "cold-search's construction");
        }
      }
    }
  }

  // Loads of several ops, which the search does not know.
  void bundle() {
    const FlatProblem& flat = tables_.flat();
    const std::vector<uint32_t> order(flat.topological().begin(), flat.topological().end());
    for (size_t i = 0; i < flat.num_devices() && !options_.deadline.cancelled(); ++i) {
      if (const auto a = bundled_on(tables_, i, order)) candidates_.offer(*a, "bundled loads");
    }
  }

  // The best plan as decisions, where these can express it.
  std::optional<ColdDecisions> start() {
    if (candidates_.empty()) return std::nullopt;
    auto d = cold_decisions(tables_, *candidates_.best());
    if (d && ColdTimer(tables_).time(*d) < kImpossible) return d;
    const FlatProblem& flat = tables_.flat();
    GreedyOptions greedy;
    greedy.devices.assign(flat.num_devices(), 1);
    return greedy_cold(tables_, {flat.topological().begin(), flat.topological().end()}, greedy);
  }

  const Problem& problem_;
  const PlannerOptions& options_;
  PlanStore& candidates_;
  const ColdTables tables_;
  Reserve reserve_;
  Status status_;
  std::string seed_;  // the plan that annealing begins with
  double seed_us_ = kImpossible, timed_ = 0;
};

Result<PlannerOutput> plan_cold_search(const Problem& problem, const PlannerOptions& options) {
  if (configurations(problem).front().size() > ColdTables::kMostDevices) {
    return unsupported("cold-search plans for at most " + std::to_string(ColdTables::kMostDevices) +
                       " devices: choose some with --devices");
  }
  PlanStore candidates(problem);
  if (options.start != nullptr) candidates.offer(*options.start, "the plan to improve");
  Run run(problem, options, candidates);
  const auto open = until_there_is_a_plan(candidates, options.deadline);
  run_steps(run.steps(), {.deadline = options.deadline, .open = [&] { return !run.failed() && open(); }});
  HEDDLE_RETURN_IF_ERROR(run.status());
  const bool late = options.deadline.should_stop();
  HEDDLE_ASSIGN_OR_RETURN(
      auto out, candidates.output(late ? StopReason::kTimeLimit : StopReason::kFinished, options.deadline));
  const bool improved = !run.seed().empty() && out.detail != run.seed();
  if (improved) out.detail += ", from " + run.seed();
  out.counters["seed_us"] = run.seed().empty() ? candidates.value_us() : run.seed_us();
  out.counters["moves_timed"] = run.timed();
  return out;
}

}  // namespace

PlannerEntry cold_search_planner() {
  return {
      {.name = "cold-search",
       .description = "annealing over devices, ways of parameters and both orders, exactly timed",
       .source = "Heddle's own; Kirkpatrick et al., Science 1983",
       .objectives = {Objective::kColdLatency},
       .exploits = "loads in any order over any bus, direct host access, transfers with contention, memory",
       .ignores = "known segments of several ops; devices that share cores, but for its seeds"},
      plan_cold_search};
}

}  // namespace heddle
