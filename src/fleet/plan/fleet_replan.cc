#include "heddle/fleet/fleet_replan.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "column_model.h"
#include "heddle/fleet/fleet_check.h"

namespace heddle {
namespace {

constexpr double kSameWeight = 1e-9;                 // relative, of values and rates
constexpr double kGoodEnough = .01, kMoveWork = .5;  // of replan_for_load(): gap, and SolveOptions::work

// Weights that a pool's devices hold: model, class, blocks, share.
using Weights = std::tuple<size_t, int, int, int, int>;

Weights weights_of(size_t model, int device_class, int from, int to, int share) {
  return {model, device_class, from, to, share};
}

std::map<Weights, int64_t> holdings(const FleetPlan& plan) {
  std::map<Weights, int64_t> held;
  for (size_t m = 0; m < plan.models.size(); ++m)
    for (const auto& p : plan.models[m].pipelines)
      for (const auto& q : p.partitions)
        held[weights_of(m, q.device_class, q.block_from, q.block_to, q.share)] += q.count;
  return held;
}

double moved(const std::map<Weights, int64_t>& before, const std::map<Weights, int64_t>& after) {
  double sum = 0;
  for (const auto& [key, count] : after) {
    const auto old = before.find(key);
    const auto more = count - (old == before.end() ? 0 : old->second);
    if (more > 0) sum += static_cast<double>(more) / std::get<4>(key);
  }
  return sum;
}

// Index of the pipeline's column in the model's list; appends it if it is missing.
size_t place_of(std::vector<Column>& columns, const FleetPipeline& pipeline, const Column& column) {
  for (size_t c = 0; c < columns.size(); ++c)
    if (same_pipeline(make_pipeline(columns[c], {}), pipeline)) return c;
  columns.push_back(column);
  return columns.size() - 1;
}

// [class] whole devices that the plan leaves unused; none if it does not fit.
std::vector<double> spare_devices(const Fleet& fleet, const FleetPlan& plan) {
  std::vector<double> spare;
  const auto used = devices_used(fleet, plan);
  for (size_t c = 0; c < used.size(); ++c)
    spare.push_back(static_cast<double>(std::max<int64_t>(0, fleet.classes[c].count - used[c])));
  return spare;
}

double price_of_moves(const std::map<Weights, int64_t>& before, const std::map<Weights, int64_t>& after,
                      const std::vector<double>& spare, const MovePrices& prices) {
  std::vector<double> more(spare.size(), 0);
  for (const auto& [key, count] : after) {
    const auto old = before.find(key);
    const int64_t grown = count - (old == before.end() ? 0 : old->second);
    if (grown > 0)
      more[static_cast<size_t>(std::get<1>(key))] += static_cast<double>(grown) / std::get<4>(key);
  }
  double sum = 0;
  for (size_t c = 0; c < more.size(); ++c)
    sum += prices.load * more[c] + prices.outage * std::max(0.0, more[c] - spare[c]);
  return sum;
}

// A MILP that serves the task's load and minimises its cost and the price of moved devices.
struct MoveProgram {
  FleetTask task;
  ColumnModel model;
  std::vector<std::vector<Term>> moves;  // [class] devices that load

  MoveProgram(FleetTask given, const std::map<Weights, int64_t>& before, const MovePrices& prices)
      : task(std::move(given)), model(task, task.columns, nullptr), moves(task.fleet.classes.size()) {
    std::map<Weights, std::vector<Term>> pools;
    for (size_t m = 0; m < task.columns.size(); ++m)
      for (size_t c = 0; c < task.columns[m].size(); ++c) {
        const auto& column = task.columns[m][c];
        for (int k = 0; k < column.stages; ++k) {
          const auto& s = column.stage[static_cast<size_t>(k)];
          pools[weights_of(m, s.device_class, s.block_from, s.block_to, s.share)].push_back(
              {model.pools[m][c][static_cast<size_t>(k)], 1});
        }
      }
    for (auto& [key, terms] : pools) {
      const auto old = before.find(key);
      const auto more = model.milp.add_continuous(0, kNoBound);
      model.milp.add_cost(more, prices.load / std::get<4>(key));
      moves[static_cast<size_t>(std::get<1>(key))].push_back({more, 1.0 / std::get<4>(key)});
      terms.push_back({more, -1});
      model.milp.at_most(std::move(terms), old == before.end() ? 0 : static_cast<double>(old->second));
    }
  }

  // The devices' cost stays that of the fresh plan.
  void limit_cost(const Fleet& fleet, const FleetPlan& fresh) {
    std::vector<Term> cost;
    for (size_t k = 0; k < model.supply.size(); ++k)
      for (const auto& t : model.supply[k])
        cost.push_back({t.var, t.coefficient * device_cost(fleet.classes[k], fresh.objective)});
    model.milp.at_most(std::move(cost), fresh.value * (1 + kSameWeight));
  }

  void price_outages(const std::vector<double>& spare, double price) {
    for (size_t c = 0; c < moves.size(); ++c) {
      if (moves[c].empty()) continue;
      const auto out = model.milp.add_continuous(0, kNoBound);
      model.milp.add_cost(out, price);
      auto terms = moves[c];
      terms.push_back({out, -1});
      model.milp.at_most(std::move(terms), spare[c]);
    }
  }
};

// A task with the columns near the bound's prices and those of both plans, and where the fresh plan's pools are in it.
struct MoveTask {
  FleetTask task;
  std::vector<std::vector<std::pair<size_t, Counts>>> start;  // [model] column and pools

  static Result<MoveTask> make(const Fleet& fleet, const Fleet& priced, FleetGoal goal,
                               const FleetPlan& fresh, const FleetPlan& running,
                               const FleetPlanOptions& options) {
    HEDDLE_ASSIGN_OR_RETURN(auto columns, all_columns(fleet, rules_of(fleet), options.deadline));
    auto needs = device_needs(fleet, columns);
    FleetGoal price_goal{FleetObjective::kMaxMin, {}};
    for (const double load : goal.load) price_goal.load.push_back(std::max(load, 1e-9));
    const auto bound = best_price_bound(fleet, needs, price_goal, options.deadline);
    MoveTask made{{priced, std::move(goal), std::move(columns), std::move(needs), bound, options},
                  std::vector<std::vector<std::pair<size_t, Counts>>>(fleet.models.size())};
    auto& task = made.task;
    task.columns = near_columns(task, bound.prices);
    for (const auto* plan : {&fresh, &running})
      for (size_t m = 0; m < plan->models.size(); ++m)
        for (const auto& p : plan->models[m].pipelines) {
          const auto column = column_of(fleet, m, p);
          if (!column) continue;
          const auto c = place_of(task.columns[m], p, *column);
          if (plan != &fresh) continue;
          Counts counts{};
          for (size_t k = 0; k < p.partitions.size(); ++k) counts[k] = p.partitions[k].count;
          made.start[m].emplace_back(c, counts);
        }
    return made;
  }
};

// The solution's pools, or the fresh plan if the solver has none.
Result<FleetPlan> solved_plan(const Fleet& fleet, const FleetPlan& fresh, MoveProgram& program,
                              const std::vector<std::vector<std::pair<size_t, Counts>>>& start,
                              const SolveOptions& options) {
  for (size_t m = 0; m < program.model.pools.size(); ++m) {
    for (const auto& pools : program.model.pools[m])
      for (const auto v : pools) program.model.milp.set_start(v, 0);
    for (const auto& [c, counts] : start[m])
      for (size_t k = 0; k < program.model.pools[m][c].size(); ++k)
        program.model.milp.set_start(program.model.pools[m][c][k], static_cast<double>(counts[k]));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto solved, solve(program.model.milp, options));
  FleetPlan plan = fresh;
  if (!solved.has_values()) return plan;
  const auto counts = program.model.counts(solved.values);
  for (size_t m = 0; m < counts.size(); ++m) {
    plan.models[m].pipelines.clear();
    for (size_t c = 0; c < counts[m].size(); ++c)
      if (counts[m][c][0] > 0)
        plan.models[m].pipelines.push_back(make_pipeline(program.task.columns[m][c], counts[m][c]));
  }
  evaluate_fleet_plan(fleet, plan);
  return plan;
}

Result<FleetPlan> least_moves(const Fleet& fleet, const FleetPlan& fresh, const FleetPlan& running,
                              const FleetPlanOptions& options) {
  // The rates to keep are the load. As devices cost nothing here, only the moves are minimised.
  FleetGoal goal{FleetObjective::kCost, {}};
  for (size_t m = 0; m < fleet.models.size(); ++m) {
    const double least = fresh.objective == FleetObjective::kMaxMin
                             ? fresh.value * fleet.models[m].weight
                             : std::min(fresh.models[m].rate_per_s, model_load(fleet, fresh, m));
    goal.load.push_back(least);
  }
  Fleet free = fleet;
  for (auto& c : free.classes) c.cost_per_hour = 0;
  HEDDLE_ASSIGN_OR_RETURN(auto made, MoveTask::make(fleet, free, goal, fresh, running, options));
  MoveProgram program(std::move(made.task), holdings(running), {.load = 1});
  if (!more_is_better(fresh.objective)) program.limit_cost(fleet, fresh);
  return solved_plan(fleet, fresh, program, made.start, solve_options(options, 1e-3));
}

Result<FleetPlan> cheapest_move(const Fleet& fleet, const FleetPlan& fresh, const FleetPlan& running,
                                const FleetPlanOptions& options, const MovePrices& prices) {
  FleetGoal goal{options.objective, {}};
  for (size_t m = 0; m < fleet.models.size(); ++m) goal.load.push_back(model_load(fleet, fresh, m));
  HEDDLE_ASSIGN_OR_RETURN(auto made, MoveTask::make(fleet, fleet, goal, fresh, running, options));
  MoveProgram program(std::move(made.task), holdings(running), prices);
  program.price_outages(spare_devices(fleet, running), prices.outage);
  auto solve = solve_options(options, kGoodEnough);
  solve.work = kMoveWork;
  return solved_plan(fleet, fresh, program, made.start, solve);
}

// The solver's tolerance may break a limit, and then the fresh plan is taken. A plan beyond the bound is an error.
bool holds(const Fleet& fleet, FleetPlan plan) {
  plan.proof = {};
  return fleet_plan_problems(fleet, plan).empty();
}

void keep_margins(const FleetPlan& from, FleetPlan& to) {
  for (size_t m = 0; m < to.models.size(); ++m) to.models[m].margin_us = from.models[m].margin_us;
}

// Names the planner and lists how the pools differ from those before.
void list_moves(const std::map<Weights, int64_t>& before, FleetReplan& result) {
  result.plan.planner = "replan";
  const auto after = holdings(result.plan);
  result.moved_devices = moved(before, after);
  auto keys = before;
  keys.insert(after.begin(), after.end());
  for (const auto& entry : keys) {
    const Weights& key = entry.first;
    const auto at = [&key](const std::map<Weights, int64_t>& held) {
      const auto found = held.find(key);
      return found == held.end() ? 0 : found->second;
    };
    if (at(before) == at(after)) continue;
    const auto& [model, device_class, from, to, share] = key;
    result.moves.push_back({model, from, to, device_class, share, at(before), at(after)});
  }
}

}  // namespace

Result<FleetReplan> replan_fleet(const Fleet& given, const FleetPlan& running,
                                 const FleetPlanOptions& options) {
  if (running.models.size() != given.models.size())
    return invalid_input("the running plan has " + std::to_string(running.models.size()) +
                         " models, the fleet " + std::to_string(given.models.size()));
  const Fleet fleet = with_margins_of(given, running);
  HEDDLE_ASSIGN_OR_RETURN(const auto fresh, plan_fleet(fleet, "auto", options));
  FleetReplan result;
  HEDDLE_ASSIGN_OR_RETURN(result.plan, least_moves(fleet, fresh, running, options));
  const auto before = holdings(running);
  result.moved_devices_fresh = moved(before, holdings(fresh));
  // The result must not be worse than the fresh plan: the solver has tolerances, and it may stop before it
  // uses the start solution.
  const bool kept = more_is_better(fresh.objective) ? result.plan.value >= fresh.value * (1 - 1e-6)
                                                    : result.plan.value <= fresh.value * (1 + 1e-6);
  if (!kept || !holds(fleet, result.plan) ||
      moved(before, holdings(result.plan)) > result.moved_devices_fresh)
    result.plan = fresh;
  keep_margins(running, result.plan);
  list_moves(before, result);
  HEDDLE_RETURN_IF_ERROR(hold_against(fleet, result.plan, fresh.bound, fresh.proof));
  return result;
}

Result<FleetReplan> replan_for_load(const Fleet& given, const FleetPlan& running,
                                    const FleetPlanOptions& options, const MovePrices& prices) {
  if (running.models.size() != given.models.size() || more_is_better(options.objective))
    return invalid_input(
        "a plan for another load needs a running plan of the fleet's models and the "
        "objective cost or power");
  const Fleet fleet = with_margins_of(given, running);
  HEDDLE_ASSIGN_OR_RETURN(const auto fresh, plan_fleet(fleet, "auto", options));
  FleetReplan result;
  HEDDLE_ASSIGN_OR_RETURN(result.plan, cheapest_move(fleet, fresh, running, options, prices));
  const auto before = holdings(running);
  const auto spare = spare_devices(fleet, running);
  result.moved_devices_fresh = moved(before, holdings(fresh));
  const auto price = [&](const FleetPlan& plan) {
    return plan.value + price_of_moves(before, holdings(plan), spare, prices);
  };
  if (!holds(fleet, result.plan) || price(result.plan) > price(fresh)) result.plan = fresh;
  keep_margins(running, result.plan);
  list_moves(before, result);
  HEDDLE_RETURN_IF_ERROR(hold_against(fleet, result.plan, fresh.bound, fresh.proof));
  return result;
}

}  // namespace heddle
