// Max-load: linearised orders and ideals first; without contiguity, annealing from there in all threads, and
// CP-SAT in one of them for as long as it gets anywhere.
#include <cmath>

#include "core/portfolio.h"
#include "heddle/solve/solution.h"
#include "placement_load.h"
#include "placement_models.h"
#include "placement_store.h"

namespace heddle {
namespace {

constexpr int64_t kMaxIdeals = 3'000'000;
constexpr int kOrders = 10;

class LoadPortfolio {
 public:
  explicit LoadPortfolio(const PlacementTask& task)
      : task_(task), instance_(task.instance), workload_(instance_.workload()), store_(task.store) {}

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
        {.deadline = task_.deadline, .open = [this] { return task_.is_open(); }});
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
    run_search(
        task_,
        {.before = 0.1,
         .model = 0.25,
         .heats = {0.03, 0.001, 0.01, 0.002},
         .moves_first = 2'000'000,
         .moves_more = 1'000'000,
         .most_growth = 8,
         .start = [this](int round, const auto& own, double value) { return start(round, own, value); },
         .search = [this](const auto& from, const auto& o) { return search_load(units_, from, o); },
         .offer =
             [this](const auto& device, const std::string& method) {
               return store_.offer(split_of_units(workload_, units_, device), method);
             },
         .solve = [this](const SolveOptions& o) { return model(o); }},
        deadline);
  }

  void contiguous(const Deadline& deadline) {
    const auto units = make_placement_units(workload_, PlacementOrder::kContiguous);
    if (instance_.is_contiguous()) store_.prove(load_bound(units), "total work");
    std::vector<int32_t> order(units.size());
    for (size_t u = 0; u < order.size(); ++u) order[u] = static_cast<int32_t>(u);
    offer(units, line_load(units, order, deadline), "linearised order");
    Random random(task_.options.seed);
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

  // The best split's units; empty where there is no split yet, or where it parts a contracted unit.
  std::vector<int32_t> best_units() const {
    return std::isfinite(store_.value()) ? units_of_split(units_, store_.split()) : std::vector<int32_t>();
  }

  // The thread's own best while it is good, or the best of all; greedy where memory is short.
  std::vector<int32_t> start(int round, const std::vector<int32_t>& own, double own_value) const {
    if (!own.empty() && round % 4 != 0 && own_value <= store_.value() * 1.01) return own;
    auto shared = best_units();
    return shared.empty() && own.empty() ? greedy_load(units_) : shared;
  }

  Status model(const SolveOptions& options) {
    const auto hint = best_units();
    if (hint.empty()) return {};
    return solve_load_model(units_, hint, store_.value(), options,
                            {[&](const std::vector<int32_t>& device) { offer(units_, device, "CP-SAT"); },
                             [&](double proven) {
                               store_.prove(proven, {"constraint program", cp_sat_name()});
                             }});
  }

  const PlacementTask& task_;
  const PlacementInstance& instance_;
  const PlacementGraph& workload_;
  PlacementStore& store_;
  PlacementUnits units_;
};

}  // namespace

void run_load_portfolio(const PlacementTask& task) { LoadPortfolio(task).run(); }

}  // namespace heddle
