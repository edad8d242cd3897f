// Max-load: linearised orders and ideals first; without contiguity, annealing from there in all threads, and
// CP-SAT in one of them for as long as it gets anywhere.
#include <cmath>

#include "core/portfolio.h"
#include "placement_load.h"
#include "placement_load_model.h"
#include "placement_load_search.h"
#include "placement_store.h"

namespace heddle {
namespace {

constexpr int64_t kMaxIdeals = 3'000'000;
constexpr int kOrders = 10;

class LoadPortfolio {
 public:
  LoadPortfolio(const PlacementInstance& instance, const PlannerOptions& options, const Deadline& deadline,
                PlacementStore& store)
      : instance_(instance),
        workload_(instance.workload()),
        options_(options),
        deadline_(deadline),
        store_(store) {}

  void run() {
    const auto apart = [this] { return !instance_.is_contiguous(); };
    run_steps(
        {{"one CPU", {}, {}, [this](const Deadline&) { all_on_one_cpu(); }},
         {"contiguous splits",
          of_left(instance_.is_contiguous() ? 1 : 0.25),
          {},
          [this](const Deadline& d) { contiguous(d); }},
         {"greedy", {}, apart, [this](const Deadline&) { greedy(); }},
         {"minimum cuts", of_left(0.1), [this] { return units_.devices() > 1; },
          [this](const Deadline& d) { store_.prove(cut_bound(units_, store_.value(), d), "minimum cuts"); }},
         {"search", {}, [this] { return units_.devices() > 1; }, [this](const Deadline& d) { search(d); }}},
        {.deadline = deadline_, .open = until_there_is_a_split(store_, deadline_)});
  }

 private:
  void offer(const PlacementUnits& units, const std::vector<int32_t>& device, const std::string& planner) {
    if (!device.empty()) store_.offer(split_of_units(workload_, units, device), planner);
  }

  void all_on_one_cpu() {
    if (workload_.cpus == 0) return;
    PlacementSplit split;
    split.device.assign(workload_.nodes.size(), workload_.accelerators);
    store_.offer(split, "one CPU");
  }

  void greedy() {
    units_ = make_placement_units(workload_, PlacementOrder::kNone);
    store_.prove(load_bound(units_), "total work");
    offer(units_, greedy_load(units_), "greedy");
  }

  void search(const Deadline& deadline) {
    run_search({.before = 0.1,
                .model = 0.25,
                .threads = options_.threads,
                .anneal = [this](int thread, const Deadline& d) { anneal(thread, d); },
                .solve = [this](const Deadline& d) { return model(d); }},
               deadline);
  }

  void contiguous(const Deadline& deadline) {
    const auto units = make_placement_units(workload_, PlacementOrder::kContiguous);
    if (instance_.is_contiguous()) store_.prove(load_bound(units), "total work");
    std::vector<int32_t> order(units.size());
    for (size_t u = 0; u < order.size(); ++u) order[u] = static_cast<int32_t>(u);
    offer(units, line_load(units, order, deadline), "linearised order");
    Random random(options_.seed);
    const auto another = [&](int i) {
      offer(units, line_load(units, random_order(units, i % 2 == 0, random), deadline), "linearised order");
    };
    for (int i = 0; i < kOrders && !deadline.should_stop(); ++i) another(i);
    const auto ideals = ideal_load(units, store_.value(), kMaxIdeals, deadline);
    offer(units, ideals.device, "ideals");
    if (!instance_.is_contiguous()) return;
    if (ideals.exact) {
      store_.prove(store_.value(), "ideals");
      return;
    }
    // Too many ideals: more orders are what is left.
    for (int i = 0; !deadline.should_stop(); ++i) another(i);
  }

  // Rounds of annealing, ever longer, each from the thread's own best or the store's.
  void anneal(int thread, const Deadline& deadline) {
    static constexpr double kHeats[] = {0.03, 0.001, 0.01, 0.002};
    std::vector<int32_t> own;
    double own_value = 0;
    for (int round = 0; !deadline.should_stop(); ++round) {
      if (own.empty() || round % 4 == 0 || own_value > store_.value() * 1.01) {
        // Greedy where there is no split yet (memory is short), or where it parts a contracted unit.
        std::vector<int32_t> shared;
        if (std::isfinite(store_.value())) shared = units_of_split(units_, store_.split());
        if (shared.empty() && own.empty()) shared = greedy_load(units_);
        if (shared.empty()) return;
        own = std::move(shared);
      }
      LoadSearchOptions search;
      search.deadline = deadline;
      search.seed =
          options_.seed + static_cast<uint64_t>(thread) * 1'000'003 + static_cast<uint64_t>(round) * 7919;
      search.moves = 2'000'000 + 1'000'000 * std::min(round, 8);
      search.heat = kHeats[(round + 2 * thread) % 4];
      own = search_load(units_, own, search);
      const auto split = split_of_units(workload_, units_, own);
      own_value = store_.offer(split, "annealing");
    }
  }

  // Whether CP-SAT found anything: a better split, or a better bound.
  bool model(const Deadline& deadline) {
    if (!std::isfinite(store_.value())) return false;
    const auto hint = units_of_split(units_, store_.split());
    if (hint.empty()) return false;
    const double value = store_.value(), bound = store_.bound();
    SolveOptions solve;
    solve.deadline = deadline;
    solve.threads = 1;
    solve.seed = options_.seed;
    bool improved = false;
    const auto status = solve_load_model(units_, hint, value, solve,
                                         {[&](const std::vector<int32_t>& device) {
                                            offer(units_, device, "CP-SAT");
                                            improved |= store_.value() < value;
                                          },
                                          [&](double proven) { store_.prove(proven, "CP-SAT"); }});
    if (!status.ok() && status.error().code() != Code::kUnsupported) store_.fail(status.error());
    return status.ok() && (improved || store_.bound() > bound * (1 + 1e-4));
  }

  const PlacementInstance& instance_;
  const PlacementGraph& workload_;
  const PlannerOptions& options_;
  const Deadline& deadline_;
  PlacementStore& store_;
  PlacementUnits units_;
};

}  // namespace

void run_load_portfolio(const PlacementInstance& instance, const PlannerOptions& options,
                        const Deadline& deadline, PlacementStore& store) {
  LoadPortfolio(instance, options, deadline, store).run();
}

}  // namespace heddle
