// Latency: greedy and linearised orders first, then annealing from the best in all threads, and CP-SAT in one
// of them for as long as it gets anywhere. With several pieces an accelerator, contiguous splits (one piece
// each) are the start.
#include <cmath>
#include <mutex>

#include "core/portfolio.h"
#include "heddle/solve/solution.h"
#include "placement_models.h"
#include "placement_store.h"

namespace heddle {
namespace {

constexpr int kLatencyOrders = 24;

class LatencyPortfolio {
 public:
  explicit LatencyPortfolio(const PlacementTask& task)
      : task_(task),
        instance_(task.instance),
        store_(task.store),
        contiguous_(instance_.workload(), 1),
        pieces_(instance_.workload(), instance_.pieces()) {}

  void run() {
    run_steps({{"bound",
                {},
                {},
                [this](const Deadline&) {
                  store_.prove(latency_bound(instance_.workload(), instance_.pieces()), "divided paths");
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
              {.deadline = task_.deadline, .open = [this] { return task_.is_open(); }});
  }

 private:
  // Of contiguous splits when pieces_ allows more: the rules allow these as well.
  double offer(const LatencyProblem& problem, const std::vector<int32_t>& piece, const std::string& planner) {
    const double value = store_.offer(problem.split(piece), planner);
    const std::lock_guard lock(mutex_);
    if (value < best_value_) {
      best_ = piece;
      best_value_ = value;
    }
    return value;
  }

  void construct(const std::vector<int32_t>& piece, const std::string& planner) {
    if (!piece.empty()) offer(contiguous_, piece, planner);
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
    Random random(task_.options.seed);
    for (int i = 0; i < kLatencyOrders && !deadline.should_stop(); ++i)
      construct(line_latency(contiguous_, random_order(contiguous_.units, i % 2 == 0, random), deadline),
                "linearised order");
  }

  void several_pieces(const Deadline& deadline) {
    for (auto& piece : best_) piece = piece == contiguous_.cpu() ? pieces_.cpu() : piece * instance_.pieces();
    search(pieces_, deadline);
  }

  void search(const LatencyProblem& problem, const Deadline& deadline) {
    run_search(
        task_,
        {.before = 0.3,
         .model = 0.35,
         .heats = {0.01, 0.003, 0.03, 0.1},
         .moves_first = 100'000,
         .moves_more = 100'000,
         .most_growth = 19,
         // From the thread's own best or that of all.
         .start = [this](int round, const auto& own,
                         double) { return own.empty() || round % 4 == 3 ? shared_best() : own; },
         .search = [&](const auto& from, const auto& o) { return search_latency(problem, from, o); },
         .offer = [&](const auto& piece, const std::string& method) { return offer(problem, piece, method); },
         .solve = [&](const SolveOptions& o) { return model(problem, o); }},
        deadline);
  }

  Status model(const LatencyProblem& problem, const SolveOptions& options) {
    const auto hint = shared_best();
    const double hinted = PlacementLatency(problem, hint).time(std::numeric_limits<double>::infinity());
    if (!std::isfinite(hinted)) return {};
    const auto take = [&](const std::vector<int32_t>& piece) { offer(problem, piece, "CP-SAT"); };
    const auto prove = [&](double proven) {
      // Fewer pieces than the rules allow, or joined colours, are a restriction: no bound for all.
      if (problem.pieces == instance_.pieces() && !problem.units.joined_cycles)
        store_.prove(proven, {"constraint program", cp_sat_name()});
    };
    return solve_latency_model(problem, hint, hinted, store_.bound(), options, {take, prove});
  }

  std::vector<int32_t> shared_best() {
    const std::lock_guard lock(mutex_);
    return best_;
  }

  const PlacementTask& task_;
  const PlacementInstance& instance_;
  PlacementStore& store_;
  LatencyProblem contiguous_, pieces_;
  std::mutex mutex_;
  std::vector<int32_t> best_;  // a piece of each unit, of the problem being searched
  double best_value_ = std::numeric_limits<double>::infinity();
};

}  // namespace

void run_latency_portfolio(const PlacementTask& task) { LatencyPortfolio(task).run(); }

}  // namespace heddle
