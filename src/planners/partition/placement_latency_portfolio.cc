// Latency: greedy and linearised orders first, then annealing from the best in all threads, and CP-SAT in one
// of them for as long as it gets anywhere. With several
// pieces an accelerator, contiguous splits (one piece each) are the start.
#include <cmath>
#include <mutex>

#include "core/portfolio.h"
#include "placement_latency.h"
#include "placement_latency_model.h"
#include "placement_store.h"

namespace heddle {
namespace {

constexpr int kLatencyOrders = 24;

class LatencyPortfolio {
 public:
  LatencyPortfolio(const PlacementInstance& instance, const PlannerOptions& options, const Deadline& deadline,
                   PlacementStore& store)
      : instance_(instance),
        workload_(instance.workload()),
        options_(options),
        deadline_(deadline),
        store_(store),
        contiguous_(workload_, 1),
        pieces_(workload_, instance.pieces()) {}

  void run() {
    run_steps({{"bound",
                {},
                {},
                [this](const Deadline&) {
                  store_.prove(latency_bound(workload_, instance_.pieces()), "divided paths");
                }},
               {"constructions", {}, {}, [this](const Deadline& d) { constructions(d); }},
               {"linearised orders", {}, {}, [this](const Deadline& d) { linearised_orders(d); }},
               {"contiguous splits",
                of_left(instance_.pieces() > 1 ? 0.4 : 1),
                {},
                [this](const Deadline& d) { search(contiguous_, d); }},
               {"several pieces",
                {},
                [this] { return instance_.pieces() > 1; },
                [this](const Deadline& d) { several_pieces(d); }}},
              {.deadline = deadline_, .open = until_there_is_a_split(store_, deadline_)});
  }

 private:
  // Of contiguous splits when pieces_ allows more: the rules allow these as well.
  double offer(const LatencyProblem& problem, const std::vector<int32_t>& piece, const std::string& planner) {
    return store_.offer(problem.split(piece), planner);
  }

  void construct(const std::vector<int32_t>& piece, const std::string& planner) {
    if (!piece.empty()) keep(piece, offer(contiguous_, piece, planner));
  }

  void constructions(const Deadline& deadline) {
    // All on the CPUs is always feasible.
    construct(std::vector<int32_t>(contiguous_.units.size(), contiguous_.cpu()), "CPUs");
    construct(greedy_latency(contiguous_), "greedy");
    std::vector<int32_t> order(contiguous_.units.size());
    for (size_t u = 0; u < order.size(); ++u) order[u] = static_cast<int32_t>(u);
    construct(line_latency(contiguous_, order, deadline), "linearised order");
  }

  void linearised_orders(const Deadline& deadline) {
    Random random(options_.seed);
    for (int i = 0; i < kLatencyOrders && !deadline.should_stop(); ++i)
      construct(line_latency(contiguous_, random_order(contiguous_.units, i % 2 == 0, random), deadline),
                "linearised order");
  }

  void several_pieces(const Deadline& deadline) {
    for (auto& piece : best_) piece = piece == contiguous_.cpu() ? pieces_.cpu() : piece * instance_.pieces();
    search(pieces_, deadline);
  }

  void search(const LatencyProblem& problem, const Deadline& deadline) {
    run_search({.before = 0.3,
                .model = 0.35,
                .threads = options_.threads,
                .anneal = [&](int thread, const Deadline& d) { anneal(problem, thread, d); },
                .solve = [&](const Deadline& d) { return model(problem, d); }},
               deadline);
  }

  // Whether CP-SAT found anything: a better split, or a better bound.
  bool model(const LatencyProblem& problem, const Deadline& deadline) {
    const auto hint = shared_best();
    const double hinted = PlacementLatency(problem, hint).latency(std::numeric_limits<double>::infinity());
    if (!std::isfinite(hinted)) return false;
    const double value = store_.value(), bound = store_.bound();
    SolveOptions solve;
    solve.deadline = deadline;
    solve.seed = options_.seed;
    bool improved = false;
    const auto take = [&](const std::vector<int32_t>& piece) {
      keep(piece, offer(problem, piece, "CP-SAT"));
      improved = improved || store_.value() < value;
    };
    const auto prove = [&](double proven) {
      // Fewer pieces than the rules allow, or joined colours, are a restriction: no bound for all.
      if (problem.pieces == instance_.pieces() && !problem.units.joined_cycles)
        store_.prove(proven, "CP-SAT");
    };
    const auto status = solve_latency_model(problem, hint, hinted, bound, solve, {take, prove});
    if (!status.ok() && status.error().code() != Code::kUnsupported) store_.fail(status.error());
    return status.ok() && (improved || store_.bound() > bound * (1 + 1e-4));
  }

  // Rounds of annealing, ever longer, each from the thread's own best or that of all.
  void anneal(const LatencyProblem& problem, int thread, const Deadline& deadline) {
    static constexpr double kHeats[] = {0.01, 0.003, 0.03, 0.1};
    auto own = shared_best();
    for (int round = 0; !deadline.should_stop(); ++round) {
      if (round % 4 == 3) own = shared_best();
      LatencySearchOptions search;
      search.deadline = deadline;
      search.seed =
          options_.seed + static_cast<uint64_t>(thread) * 1'000'003 + static_cast<uint64_t>(round) * 7919;
      search.moves = 100'000 + 100'000 * std::min(round, 19);
      search.heat = kHeats[(round + 2 * thread) % 4];
      own = search_latency(problem, own, search);
      keep(own, offer(problem, own, "annealing"));
    }
  }

  void keep(const std::vector<int32_t>& piece, double value) {
    const std::lock_guard lock(mutex_);
    if (value >= best_value_) return;
    best_ = piece;
    best_value_ = value;
  }

  std::vector<int32_t> shared_best() {
    const std::lock_guard lock(mutex_);
    return best_;
  }

  const PlacementInstance& instance_;
  const PlacementGraph& workload_;
  const PlannerOptions& options_;
  const Deadline& deadline_;
  PlacementStore& store_;
  LatencyProblem contiguous_, pieces_;
  std::mutex mutex_;
  std::vector<int32_t> best_;  // a piece of each unit, of the problem being searched
  double best_value_ = std::numeric_limits<double>::infinity();
};

}  // namespace

void run_latency_portfolio(const PlacementInstance& instance, const PlannerOptions& options,
                           const Deadline& deadline, PlacementStore& store) {
  LatencyPortfolio(instance, options, deadline, store).run();
}

}  // namespace heddle
