// ppipe-columns: plans fleets with any number of classes and devices. The LP over columns determines which
// columns the optimum mixes. Its pools, rounded down, are kept except for a remainder of a few devices of
// each class, so the work does not grow with the fleet. The remainder is filled greedily by the bound's
// prices; a local search then repeatedly takes some pools back and fills again. A MILP runs only if the plan
// does not serve the load, or if a better bound is requested. Model: PPipe, ATC'25, appendix A.2, over
// enumerated columns.
#include <algorithm>
#include <cmath>
#include <optional>

#include "column_model.h"
#include "heddle/base/random.h"
#include "heddle/solve/milp.h"
#include "planner_parts.h"

namespace heddle {
namespace {

constexpr double kRemainder = 30;      // devices of each class that are planned again, plus 2 for every model
constexpr int kMaxSteps = 100'000;     // of filling, in case the LP gives no base
constexpr int kRounds = 1500;          // of the search in the remainder
constexpr double kCloseEnough = 1e-4;  // relative to the bound: the search ends
constexpr double kServedWorth = 1e-3;  // weight of the models' mean rate beside the value, in the search
constexpr int64_t kMostExact = 250;    // largest remainder, in devices, that is planned by tables
constexpr double kMilp_s = 5;          // time limit of the MILP when the search found no plan
constexpr double kSolverSlack = 2e-6;  // relative
constexpr double kSameRate = 1e-12;

// Pools under construction: counts of each column, and the devices that they use.
class Pools {
 public:
  Pools(const Fleet& fleet, const std::vector<std::vector<Column>>& columns)
      : fleet_(&fleet),
        columns_(&columns),
        counts_(columns.size()),
        twelfths_(columns.size()),
        rates_(columns.size(), 0) {
    for (size_t m = 0; m < columns.size(); ++m) {
      counts_[m].assign(columns[m].size(), {});
      twelfths_[m].assign(static_cast<size_t>(kMaxPartitions) * fleet.classes.size(), 0);
    }
    used_.assign(fleet.classes.size(), 0);
  }

  double rate(size_t m) const { return rates_[m]; }
  const std::vector<double>& rates() const { return rates_; }
  const std::vector<int64_t>& used() const { return used_; }
  const Counts& counts(size_t m, size_t c) const { return counts_[m][c]; }
  const std::vector<std::vector<Counts>>& all_counts() const { return counts_; }
  int64_t free(size_t k) const { return fleet_->classes[k].count - used_[k]; }

  // `more`: additional whole devices of each class for these pools of column c; false if there are too few.
  bool growth(size_t m, size_t c, const Counts& to, std::vector<int64_t>& more) const {
    more.assign(used_.size(), 0);
    const auto& column = (*columns_)[m][c];
    for (int k = 0; k < column.stages; ++k) {
      const auto& s = column.stage[static_cast<size_t>(k)];
      const auto now = twelfths_[m][bin(k, s.device_class)];
      const auto then =
          now + (to[static_cast<size_t>(k)] - counts_[m][c][static_cast<size_t>(k)]) * (kTwelfths / s.share);
      more[static_cast<size_t>(s.device_class)] += whole_devices(then) - whole_devices(now);
    }
    for (size_t k = 0; k < more.size(); ++k)
      if (more[k] > free(k)) return false;
    return true;
  }

  void set(size_t m, size_t c, const Counts& to) {
    const auto& column = (*columns_)[m][c];
    rates_[m] += column.rate(to) - column.rate(counts_[m][c]);
    for (int k = 0; k < column.stages; ++k) {
      const auto& s = column.stage[static_cast<size_t>(k)];
      auto& twelfths = twelfths_[m][bin(k, s.device_class)];
      used_[static_cast<size_t>(s.device_class)] -= whole_devices(twelfths);
      twelfths +=
          (to[static_cast<size_t>(k)] - counts_[m][c][static_cast<size_t>(k)]) * (kTwelfths / s.share);
      used_[static_cast<size_t>(s.device_class)] += whole_devices(twelfths);
    }
    counts_[m][c] = to;
  }

  std::vector<ModelPlan> plan() const {
    std::vector<ModelPlan> models(columns_->size());
    for (size_t m = 0; m < columns_->size(); ++m)
      for (size_t c = 0; c < (*columns_)[m].size(); ++c)
        if (counts_[m][c][0] > 0)
          models[m].pipelines.push_back(make_pipeline((*columns_)[m][c], counts_[m][c]));
    return models;
  }

 private:
  size_t bin(int position, int device_class) const {
    return static_cast<size_t>(position) * fleet_->classes.size() + static_cast<size_t>(device_class);
  }

  const Fleet* fleet_;
  const std::vector<std::vector<Column>>* columns_;
  std::vector<std::vector<Counts>> counts_;     // [model][column]
  std::vector<std::vector<int64_t>> twelfths_;  // [model][position, class] twelfths of devices
  std::vector<int64_t> used_;
  std::vector<double> rates_;
};

// Keeps the LP's pools, rounded down, except for a remainder that is planned again.
void put_base(const FleetTask& task, const std::vector<std::vector<Column>>& columns, Pools& pools) {
  const auto mix = fractional_mix(task, columns);
  if (mix.empty()) return;
  // The share of every pool that is kept; the scarcest class determines it.
  double kept = 1;
  const double remainder = kRemainder + 2 * static_cast<double>(columns.size());
  for (const auto& c : task.fleet.classes)
    if (c.count > 0) kept = std::min(kept, std::max(0.0, 1 - remainder / static_cast<double>(c.count)));
  for (size_t m = 0; m < columns.size(); ++m)
    for (size_t c = 0; c < columns[m].size(); ++c) {
      const auto& column = columns[m][c];
      const double x = kept * mix[m][c];
      Counts to{};
      bool some = x > 0;
      for (int k = 0; k < column.stages; ++k) {
        const auto& s = column.stage[static_cast<size_t>(k)];
        // Only whole devices, so that rounding wastes nothing.
        to[static_cast<size_t>(k)] = static_cast<int64_t>(x / s.rate_per_s / s.share) * s.share;
        some = some && to[static_cast<size_t>(k)] > 0;
      }
      std::vector<int64_t> more;
      if (some && pools.growth(m, c, to, more)) pools.set(m, c, to);
    }
}

// Repeatedly extends the neediest model's pools where the gain in rate per price is highest.
void fill_greedily(const FleetTask& task, const std::vector<std::vector<Column>>& columns,
                   const std::vector<double>& prices, Pools& pools) {
  const bool to_load = task.goal.objective != FleetObjective::kMaxMin;
  std::vector<bool> done(columns.size(), false);
  std::vector<int64_t> more;
  for (int step = 0; step < kMaxSteps && !task.options.deadline.should_stop(); ++step) {
    size_t model = columns.size();
    for (size_t m = 0; m < columns.size(); ++m) {
      if (to_load && pools.rate(m) >= task.goal.load[m]) done[m] = true;
      if (!done[m] && (model == columns.size() ||
                       pools.rate(m) / task.goal.load[m] < pools.rate(model) / task.goal.load[model]))
        model = m;
    }
    if (model == columns.size()) return;
    double best = 0, best_gain = 0;
    size_t best_column = 0;
    Counts best_counts{};
    for (size_t c = 0; c < columns[model].size(); ++c) {
      const auto& column = columns[model][c];
      Counts to = pools.counts(model, c);
      const double rate_now = column.rate(to);
      for (int k = 0; k < column.stages; ++k)
        to[static_cast<size_t>(k)] = std::max<int64_t>(to[static_cast<size_t>(k)], 1);
      // The next 16 steps of the column's rate.
      for (int ahead = 0; ahead < 16; ++ahead) {
        const double rate = column.rate(to);
        if (!pools.growth(model, c, to, more)) break;
        if (rate > rate_now) {
          double price = 0;
          for (size_t k = 0; k < more.size(); ++k) price += (prices[k] + 1e-9) * static_cast<double>(more[k]);
          double gain = rate - rate_now;
          if (to_load) gain = std::min(gain, task.goal.load[model] - pools.rate(model));
          const double worth = price > 0 ? gain / price : 1e30 * gain;
          if (worth > best * (1 + kSameRate))
            best = worth, best_gain = gain, best_column = c, best_counts = to;
        }
        for (int k = 0; k < column.stages; ++k) {
          const auto& s = column.stage[static_cast<size_t>(k)];
          if (static_cast<double>(to[static_cast<size_t>(k)]) * s.rate_per_s <= rate * (1 + kSameRate))
            ++to[static_cast<size_t>(k)];
        }
      }
    }
    // No pool can raise this model's rate. For max-min the minimum is then final.
    if (best_gain <= 0) {
      if (!to_load) return;
      done[model] = true;
      continue;
    }
    pools.set(model, best_column, best_counts);
  }
}

bool serves(const FleetTask& task, const Pools& pools) {
  if (more_is_better(task.goal.objective)) return true;
  for (size_t m = 0; m < task.goal.load.size(); ++m)
    if (pools.rate(m) < task.goal.load[m] * (1 - 1e-10)) return false;
  return true;
}

double value_of(const FleetTask& task, const Pools& pools) {
  return fleet_value(task.fleet, task.goal.objective, pools.rates(), task.goal.load, pools.used());
}

// Local search: shrinks a few columns' pools towards the base, fills again with perturbed prices, keeps
// results that are not worse. The number of rounds is fixed, so plans do not depend on the machine's speed.
void improve(const FleetTask& task, const std::vector<std::vector<Column>>& columns,
             const std::vector<double>& prices, const Pools& base, Pools& best) {
  const bool more = more_is_better(task.goal.objective);
  // At equal value, a higher total rate is a better start for the next round.
  const auto score = [&](const Pools& pools) {
    double served = 0;
    for (size_t m = 0; m < columns.size(); ++m) served += pools.rate(m) / task.goal.load[m];
    served *= kServedWorth / static_cast<double>(columns.size());
    if (!serves(task, pools)) return -static_cast<double>(INFINITY);
    return (more ? 1 : -1) * value_of(task, pools) +
           (task.goal.objective == FleetObjective::kMaxMin ? served : 0);
  };
  Random random(task.options.seed);
  double best_score = score(best);
  for (int round = 0; round < kRounds && !task.options.deadline.should_stop(); ++round) {
    if (std::abs(task.bound.value - value_of(task, best)) <= kCloseEnough * task.bound.value &&
        serves(task, best))
      return;
    Pools trial = best;
    const auto removals = random.between(1, 4);
    for (int64_t r = 0; r < removals; ++r) {
      const size_t m = random.below(columns.size());
      std::vector<size_t> grown;
      for (size_t c = 0; c < columns[m].size(); ++c)
        if (trial.counts(m, c) != base.counts(m, c)) grown.push_back(c);
      if (grown.empty()) continue;
      const size_t c = grown[random.below(grown.size())];
      // Removes all that the search added, or a part.
      const double kept = random.chance(0.5) ? 0 : random.unit();
      Counts to = base.counts(m, c);
      bool some = true;
      for (size_t k = 0; k < static_cast<size_t>(columns[m][c].stages); ++k) {
        to[k] += static_cast<int64_t>(kept * static_cast<double>(trial.counts(m, c)[k] - to[k]));
        some = some && to[k] > 0;
      }
      trial.set(m, c, some ? to : Counts{});
    }
    auto other = prices;
    for (auto& p : other) p *= random.uniform(0.6, 1.6);
    fill_greedily(task, columns, other, trial);
    const double trial_score = score(trial);
    if (trial_score >= best_score) {
      best_score = trial_score;
      best = std::move(trial);
    }
  }
}

// Plans a small remainder of one or two classes exactly.
std::optional<FleetAnswer> complete_exactly(const FleetTask& task,
                                            const std::vector<std::vector<Column>>& columns,
                                            const Pools& base) {
  Fleet rest = task.fleet;
  for (size_t k = 0; k < rest.classes.size(); ++k) rest.classes[k].count = base.free(k);
  if (rest.devices() == 0 || !dp_fits(rest) || rest.devices() > kMostExact) return std::nullopt;
  FleetTask remainder{rest, task.goal, columns, {}, task.bound, task.options};
  for (size_t m = 0; m < columns.size(); ++m) remainder.served.push_back(base.rate(m));
  auto answer = plan_dp(remainder);
  if (!answer.ok()) return std::nullopt;
  const auto kept = base.plan();
  for (size_t m = 0; m < kept.size(); ++m) {
    auto& pipelines = answer->models[m].pipelines;
    pipelines.insert(pipelines.end(), kept[m].pipelines.begin(), kept[m].pipelines.end());
    merge_pipelines(pipelines);
  }
  answer->optimal = false;
  return std::move(*answer);
}

}  // namespace

Result<FleetAnswer> plan_columns(const FleetTask& task) {
  const bool more = more_is_better(task.goal.objective);
  auto prices = task.bound.prices;
  for (size_t k = 0; k < prices.size(); ++k)
    prices[k] += device_cost(task.fleet.classes[k], task.goal.objective);
  if (!more) {
    // Without this check, only a plan that uses all devices would show that the load is too high.
    const FleetGoal most{FleetObjective::kMaxMin, task.goal.load};
    if (best_price_bound(task.fleet, task.needs, most, task.options.deadline.sooner(10)).value < 1)
      return no_plan_serves(task);
  }
  const auto near = near_columns(task, prices);
  // Rounding a linear mix down costs little only while the pools are large.
  Pools base(task.fleet, near);
  put_base(task, near, base);
  if (!task.options.prove)
    if (auto exact = complete_exactly(task, task.columns, base)) return std::move(*exact);
  Pools best = base;
  fill_greedily(task, near, prices, best);
  improve(task, near, prices, base, best);
  const bool found = serves(task, best);
  FleetAnswer answer;
  if (!found || task.options.prove) {
    // The bound of a MILP over all columns without a base holds for all plans; that of the remainder does
    // not.
    const bool whole = task.options.prove;
    ColumnModel model(task, whole ? task.columns : near, whole ? nullptr : &base.all_counts());
    auto options = solve_options(task.options, 1e-4);
    if (!whole) options.deadline = task.options.deadline.sooner(kMilp_s);
    HEDDLE_ASSIGN_OR_RETURN(const auto solved, solve(model.milp, options));
    if (whole && std::isfinite(solved.bound)) {
      // Widened by the solver's tolerances.
      answer.bound = model.value(task, solved.bound) * (more ? 1 + kSolverSlack : 1 - kSolverSlack);
      answer.proof = {"the MILP over all columns", solved.solver};
    }
    if (solved.has_values()) {
      Pools improved(task.fleet, whole ? task.columns : near);
      const auto counts = model.counts(solved.values);
      for (size_t m = 0; m < counts.size(); ++m)
        for (size_t c = 0; c < counts[m].size(); ++c)
          if (counts[m][c][0] > 0) improved.set(m, c, counts[m][c]);
      if (serves(task, improved) &&
          (!found || is_better(task.goal.objective, value_of(task, improved), value_of(task, best)))) {
        answer.models = improved.plan();
        return answer;
      }
    }
  }
  if (!found) return no_plan_serves(task);
  answer.models = best.plan();
  return answer;
}

}  // namespace heddle
