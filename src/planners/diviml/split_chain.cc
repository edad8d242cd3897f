#include "split_chain.h"

#include <algorithm>
#include <map>

#include "module_clock.h"

namespace heddle {
namespace {

// A module gets this time at first and twice as much each time that it is on the best path again; without a
// deadline it is left when it has had the last of these.
constexpr double kFirstSeconds = 0.5, kLastSeconds = 64;
// Of the time, for the starts of all modules.
constexpr double kStartsShare = 0.15;

// What a module's solution depends on, exactly: times, edges, transfers, ends.
std::vector<double> key_of(const ModuleProblem& m) {
  const TaskModel& model = m.model;
  std::vector<double> key{static_cast<double>(model.num_tasks())};
  for (size_t t = 0; t < model.num_tasks(); ++t) {
    key.push_back(m.fixed.empty() ? -1 : m.fixed[t]);
    for (size_t d = 0; d < model.num_devices(); ++d) key.push_back(model.us(t, d, 1));
    for (const TaskModel::Edge& e : model.in(t)) {
      key.push_back(e.src);
      key.push_back(static_cast<double>(e.bytes));
    }
    key.push_back(-2);
  }
  for (const auto& s : m.sources) {
    for (const double v :
         {static_cast<double>(s.task), static_cast<double>(s.device), s.at_us, static_cast<double>(s.bytes)})
      key.push_back(v);
  }
  return key;
}

class Chain {
 public:
  Chain(const TaskModel& model, const Modules& modules, const ModuleSolver& solver,
        const SolveOptions& limits)
      : model_(model), modules_(modules), solver_(solver), limits_(limits), k_(model.num_devices()) {}

  Result<SplitResult> run() {
    if (!prepare()) return SplitResult{};
    while (true) {
      auto path = best_path(/*by_bound=*/true);
      if (path.empty()) return SplitResult{};
      std::vector<Cell*> open;
      for (Cell* cell : path) {
        if (!cell->known->settled) open.push_back(cell);
      }
      if (open.empty() || limits_.deadline.should_stop()) break;
      const double least = open[0]->known->seconds;
      for (Cell* cell : open) {
        // Equal modules share what is known: one of them may have been solved just now.
        if (!cell->known->settled && cell->known->seconds <= least) HEDDLE_RETURN_IF_ERROR(solve(*cell));
      }
    }
    return collect();
  }

 private:
  struct Known {
    ModuleAnswer answer;
    double seconds = kFirstSeconds;  // for the next solve
    bool settled = false;            // solved, impossible, or given up
  };
  struct Cell {
    size_t module = 0, in = 0, out = 0;
    Known* known = nullptr;
    double value() const { return known->answer.value_us; }
    double bound() const { return known->answer.bound_us; }
  };

  ModuleProblem problem(size_t module, size_t in, size_t out) const {
    const auto& tasks = modules_.tasks[module];
    ModuleProblem m{.model = model_.part(tasks)};
    if (module > 0) {
      const auto before = static_cast<uint32_t>(modules_.last[module - 1]);
      for (uint32_t t = 0; t < tasks.size(); ++t) {
        for (const TaskModel::Edge& e : model_.in(tasks[t])) {
          if (e.src == before) m.sources.push_back({t, 0, static_cast<uint32_t>(in), 0, e.bytes});
        }
      }
    }
    if (modules_.last[module] >= 0) {
      m.fixed.assign(tasks.size(), -1);
      m.fixed.back() = static_cast<int32_t>(out);
    }
    return m;
  }

  // False: the time was over before all was known that a path needs.
  bool prepare() {
    SolveOptions starts = limits_;
    starts.deadline = limits_.deadline.sooner(kStartsShare * limits_.deadline.seconds_left());
    for (size_t t = 0; t < modules_.tasks.size(); ++t) {
      const size_t ins = t == 0 ? 1 : k_, outs = modules_.last[t] < 0 ? 1 : k_;
      cells_.emplace_back();
      for (size_t u = 0; u < ins; ++u) {
        for (size_t v = 0; v < outs; ++v) {
          if (limits_.deadline.should_stop()) return false;
          const ModuleProblem m = problem(t, u, v);
          const auto [it, fresh] = known_.try_emplace(key_of(m));
          Known& known = it->second;
          if (fresh) {
            known.answer = module_start(m, {}, starts);
            known.settled = known.answer.optimal || !(known.answer.value_us < kImpossible);
            if (!(known.answer.value_us < kImpossible)) known.answer.bound_us = kImpossible;
          }
          cells_.back().push_back({t, u, v, &known});
        }
      }
    }
    return true;
  }

  // The cells of a best path through the devices, empty when there is none. Ties: smaller devices.
  std::vector<Cell*> best_path(bool by_bound) {
    std::vector<std::vector<double>> dp;
    std::vector<std::vector<Cell*>> from;
    for (auto& cells : cells_) {
      dp.emplace_back(k_, kImpossible);
      from.emplace_back(k_, nullptr);
      for (Cell& c : cells) {
        const double before = dp.size() == 1 ? 0 : dp[dp.size() - 2][c.in];
        const double sum = before + (by_bound ? c.bound() : c.value());
        if (sum < dp.back()[c.out]) dp.back()[c.out] = sum, from.back()[c.out] = &c;
      }
    }
    const auto least = std::min_element(dp.back().begin(), dp.back().end());
    length_ = *least;
    if (!(length_ < kImpossible)) return {};
    std::vector<Cell*> path(cells_.size());
    auto at = static_cast<size_t>(least - dp.back().begin());
    for (size_t t = cells_.size(); t-- > 0;) {
      path[t] = from[t][at];
      at = path[t]->in;
    }
    return path;
  }

  Status solve(Cell& cell) {
    SolveOptions limits = limits_;
    Known& known = *cell.known;
    limits.deadline = limits_.deadline.sooner(known.seconds);
    const ModuleProblem m = problem(cell.module, cell.in, cell.out);
    HEDDLE_ASSIGN_OR_RETURN(ModuleAnswer answer, solver_(m, known.answer, limits));
    ++solved_;
    if (known.answer.bound_us > answer.bound_us) {
      answer.bound_us = known.answer.bound_us;
      answer.claimed_by = known.answer.claimed_by;
    }
    known.answer = std::move(answer);
    known.settled = known.answer.optimal || (known.seconds >= kLastSeconds && !limited());
    known.seconds *= 2;
    return {};
  }
  bool limited() const { return limits_.deadline.seconds_left() < kImpossible; }

  Result<SplitResult> collect() {
    SplitResult result;
    for (const auto& cells : cells_) result.subproblems += cells.size();
    result.solved = solved_;
    best_path(true);
    result.bound_us = length_;
    for (const auto& [key, known] : known_)
      if (!known.answer.claimed_by.empty()) result.claimed_by = known.answer.claimed_by;
    const auto path = best_path(false);
    if (path.empty()) return result;
    for (const Cell* cell : path)
      append_batches(cell->known->answer.batches, modules_.tasks[cell->module], result.batches);
    result.value_us = time_batches(model_, result.batches).makespan;
    // The solvers' own tolerances remain between value and bound.
    result.optimal = true;
    for (const Cell* cell : best_path(true)) result.optimal = result.optimal && cell->known->answer.optimal;
    return result;
  }

  const TaskModel& model_;
  const Modules& modules_;
  const ModuleSolver& solver_;
  const SolveOptions limits_;
  const size_t k_;
  std::map<std::vector<double>, Known> known_;
  std::vector<std::vector<Cell>> cells_;
  double length_ = kImpossible;
  size_t solved_ = 0;
};

}  // namespace

Result<SplitResult> split_chain(const TaskModel& model, const Modules& modules, const ModuleSolver& solver,
                                const SolveOptions& limits) {
  return Chain(model, modules, solver, limits).run();
}

}  // namespace heddle
