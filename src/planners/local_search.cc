// Local search with late acceptance (Burke and Bykov, "The Late Acceptance Hill-Climbing Heuristic", 2017): a
// changed plan is kept when it is no worse than the current one or than the one some rounds ago. No
// temperature has to be tuned.
//
// State: a device for each op and one topological order. Moves: an op, or a connected group on one device,
// changes its device; an op moves within its window of the order; a run of the order's ops changes device. Up
// to kExactOps ops each candidate is judged by builder and evaluator themselves: contention, loads and memory
// are exact. Above, by a list pass without contention (O(V + E)), and only what that finds best goes to the
// exact judge. Stops at the bound, the deadline or when kShakes shaken restarts from the best found nothing
// better. Exploits the whole execution model; ignores segments of several ops.
#include "local_search.h"

#include <algorithm>
#include <cmath>

#include "candidates.h"
#include "heddle/base/random.h"
#include "heddle/plan/bounds.h"
#include "list_pass.h"
#include "planners.h"

namespace heddle {
namespace {

constexpr size_t kExactOps = 250;        // above, building a plan for each candidate leaves too few rounds
constexpr size_t kHistory = 60;          // late acceptance compares with so many rounds ago
constexpr int64_t kIdleRounds = 12'000;  // without a new best: then the best is shaken and searched again
constexpr int kShakes = 3;
constexpr int kShakeMoves = 12;
constexpr int kReportEvery = 64;
constexpr size_t kMostGroup = 8;  // ops that change device together

class Search {
 public:
  Search(const Problem& problem, const PlannerOptions& options, const Bound& bound)
      : problem_(problem),
        graph_(*problem.graph),
        options_(options),
        bound_(bound),
        random_(options.seed),
        best_(problem),
        judge_(problem),
        pass_(problem),
        devices_(problem.usable_devices()) {
    bool limited = problem.objective == Objective::kThroughput;
    for (int p = 0; p < problem.cluster->num_memory_pools(); ++p)
      limited |= problem.cluster->memory_pool_bytes(p) > 0;
    exact_ = limited || graph_.num_ops() <= kExactOps;
  }

  void start_from(const Assignment& assignment, const std::string& how) {
    best_.offer(assignment, how);
    current_.device = assignment.device;
    current_.order = assignment.order;
    position_.resize(current_.order.size());
    for (size_t i = 0; i < current_.order.size(); ++i) position_[current_.order[i].index()] = i;
    value_ = cost_of_current();
    history_.assign(kHistory, value_);
    least_ = value_;
    kept_ = current_;
  }

  StopReason climb() {
    if (devices_.empty() || graph_.num_ops() == 0) return StopReason::kFinished;
    int shakes = 0;
    int64_t idle = 0;
    for (int64_t round = 0;; ++round) {
      if (best_.value_us() <= bound_.us * (1 + 1e-9)) return StopReason::kOptimal;
      if (options_.deadline.should_stop())
        return options_.deadline.cancelled() ? StopReason::kCancelled : StopReason::kTimeLimit;
      if (options_.progress && round % kReportEvery == 0) {
        options_.progress->report(
            {"local search", static_cast<double>(round), 0, best_.value_us(), bound_.us});
      }
      if (idle++ >= kIdleRounds) {
        if (shakes++ >= kShakes) return StopReason::kFinished;
        shake();
        idle = 0;
      }
      ++rounds_;
      if (step(round)) {
        idle = 0;
        shakes = 0;
      }
    }
  }

  Result<PlannerOutput> output(StopReason stop) const {
    auto out = best_.output(stop);
    if (out.ok()) {
      out->counters["rounds"] = static_cast<double>(rounds_);
      out->counters["accepted"] = static_cast<double>(accepted_);
      if (exact_) out->counters["exact"] = 1;
    }
    return out;
  }

 private:
  double cost_of_current() {
    if (!exact_) return pass_.makespan(current_);
    const auto plan = build_plan(problem_, current_);
    if (!plan.ok()) return kImpossible;
    const auto value = judge_.value_us(*plan);
    return value.ok() ? *value : kImpossible;
  }

  OpId random_op() { return OpId(static_cast<size_t>(random_.below(graph_.num_ops()))); }

  // One candidate; true when it is a new best.
  bool step(int64_t round) {
    if (!change()) return false;
    const double value = cost_of_current();
    auto& late = history_[static_cast<size_t>(round) % kHistory];
    bool better = false;
    if (value <= value_ || value <= late) {
      value_ = value;
      ++accepted_;
      if (value < least_ - 1e-9) {
        least_ = value;
        const double before = best_.value_us();
        best_.offer(current_, "local search");
        better = best_.value_us() < before;
        if (better) kept_ = current_;
      }
    } else {
      undo();
    }
    late = std::min(late, value_);
    return better;
  }

  // Back to the best decisions, changed in some places whatever that costs.
  void shake() {
    current_ = kept_;
    for (size_t i = 0; i < current_.order.size(); ++i) position_[current_.order[i].index()] = i;
    for (int i = 0; i < kShakeMoves; ++i) change();
    value_ = cost_of_current();
    history_.assign(kHistory, value_);
  }

  bool change() {
    undo_devices_.clear();
    undo_position_ = false;
    const double kind = random_.unit();
    if (devices_.size() > 1 && kind < 0.45) return move_ops({random_op()});
    if (devices_.size() > 1 && kind < 0.70) return move_ops(connected_group(random_op()));
    if (devices_.size() > 1 && kind < 0.80) return move_ops(run_of_order());
    return move_in_order();
  }

  // Ops around v that share its device.
  std::vector<OpId> connected_group(OpId v) {
    const size_t most = 2 + random_.below(kMostGroup - 1);
    std::vector<OpId> group = {v};
    const auto device = current_.device[v.index()];
    for (size_t i = 0; i < group.size() && group.size() < most; ++i) {
      const auto add = [&](std::span<const OpId> list) {
        for (const auto w : list) {
          if (group.size() < most && current_.device[w.index()] == device &&
              std::find(group.begin(), group.end(), w) == group.end()) {
            group.push_back(w);
          }
        }
      };
      const auto u = group[i];
      add(graph_.successors(u));
      add(graph_.predecessors(u));
    }
    return group;
  }

  std::vector<OpId> run_of_order() {
    const size_t n = current_.order.size();
    const size_t length = std::min<size_t>(n, 1 + random_.below(std::max<size_t>(2, n / 4)));
    const size_t first = random_.below(n - length + 1);
    return {current_.order.begin() + static_cast<long>(first),
            current_.order.begin() + static_cast<long>(first + length)};
  }

  bool move_ops(const std::vector<OpId>& ops) {
    // Half of the time to a neighbour's device, where transfers vanish; else anywhere.
    DeviceId to = devices_[random_.below(devices_.size())];
    if (random_.chance(0.5)) {
      const auto v = ops[random_.below(ops.size())];
      const auto before = graph_.predecessors(v), after = graph_.successors(v);
      const size_t count = before.size() + after.size();
      if (count > 0) {
        const size_t i = random_.below(count);
        to = current_.device[(i < before.size() ? before[i] : after[i - before.size()]).index()];
      }
    }
    bool any = false;
    for (const auto v : ops) {
      if (current_.device[v.index()] == to || problem_.costs->us(v, to) >= kImpossible) continue;
      undo_devices_.emplace_back(v, current_.device[v.index()]);
      current_.device[v.index()] = to;
      any = true;
    }
    return any;
  }

  bool move_in_order() {
    const auto v = random_op();
    const size_t at = position_[v.index()];
    size_t low = 0, high = current_.order.size() - 1;
    for (const auto u : graph_.predecessors(v)) low = std::max(low, position_[u.index()] + 1);
    for (const auto w : graph_.successors(v)) high = std::min(high, position_[w.index()] - 1);
    if (low >= high) return false;
    const size_t to = low + random_.below(high - low + 1);
    if (to == at) return false;
    shift(at, to);
    undo_position_ = true;
    undo_from_ = to;
    undo_to_ = at;
    return true;
  }

  void shift(size_t from, size_t to) {
    auto& order = current_.order;
    const auto f = static_cast<long>(from), t = static_cast<long>(to);
    if (from < to) {
      std::rotate(order.begin() + f, order.begin() + f + 1, order.begin() + t + 1);
    } else {
      std::rotate(order.begin() + t, order.begin() + f, order.begin() + f + 1);
    }
    for (size_t i = std::min(from, to); i <= std::max(from, to); ++i) position_[order[i].index()] = i;
  }

  void undo() {
    for (size_t i = undo_devices_.size(); i-- > 0;)
      current_.device[undo_devices_[i].first.index()] = undo_devices_[i].second;
    if (undo_position_) shift(undo_from_, undo_to_);
  }

  const Problem& problem_;
  const Graph& graph_;
  const PlannerOptions& options_;
  const Bound& bound_;
  Random random_;
  BestPlan best_;
  Judge judge_;
  ListPass pass_;
  std::vector<DeviceId> devices_;
  bool exact_ = true;
  Assignment current_, kept_;
  std::vector<size_t> position_;
  double value_ = kImpossible, least_ = kImpossible;
  std::vector<double> history_;
  std::vector<std::pair<OpId, DeviceId>> undo_devices_;
  bool undo_position_ = false;
  size_t undo_from_ = 0, undo_to_ = 0;
  int64_t rounds_ = 0, accepted_ = 0;
};

class LocalSearch final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) override {
    Assignment start;
    if (options.start != nullptr) {
      start = assignment_of(problem, *options.start);
    } else {
      auto heft = make_heft()->plan(problem, options);
      if (!heft.ok()) return heft;
      start = assignment_of(problem, heft->plan);
    }
    return improve(problem, start, lower_bound(problem, options.deadline), options);
  }
};

}  // namespace

Result<PlannerOutput> improve(const Problem& problem, const Assignment& start, const Bound& bound,
                              const PlannerOptions& options) {
  Search search(problem, options, bound);
  search.start_from(start, "the start");
  const auto stop = search.climb();
  return search.output(stop);
}

std::unique_ptr<Planner> make_local_search() { return std::make_unique<LocalSearch>(); }

}  // namespace heddle
