// A portfolio is a table of steps, each with a share of the time and a condition. One loop runs it.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan_store.h"

namespace heddle {

// Seconds that a step gets: a share of what is left when it begins, or of the portfolio's whole time.
struct TimeShare {
  double share = 1;
  bool of_all = false;
  double most_s = std::numeric_limits<double>::infinity();
  double least_s = 0;  // with less the step is left out
};
inline TimeShare of_left(double share) { return {.share = share}; }
inline TimeShare of_all(double share) { return {.share = share, .of_all = true}; }

struct PortfolioStep {
  std::string name;
  TimeShare time;
  std::function<bool()> when;  // empty: always
  std::function<void(const Deadline&)> run;
};
using PortfolioSteps = std::vector<PortfolioStep>;

struct PortfolioRules {
  Deadline deadline;
  // Whether to go on, asked before each step. Empty: until the deadline.
  std::function<bool()> open;
  // After each step. May be empty.
  std::function<void(const std::string& step, size_t done)> report;
  // The best value and bound in words, for the lines of --verbose about each step. May be empty.
  std::function<std::string()> standing;
};

// "; best 12.3 ms by heft, bound 11 ms".
std::string standing_text(const PlanStore& store);

// For portfolios that must give a plan: on until there is one, then until the deadline or the bound.
std::function<bool()> until_there_is_a_plan(const PlanStore& store, const Deadline& deadline);

// The steps one after the other. A step without time left is left out.
void run_steps(const PortfolioSteps& steps, const PortfolioRules& rules);

// Each table on a thread of its own, the first one on this thread; returns when all have ended.
void run_side_by_side(const std::vector<PortfolioSteps>& tables, const PortfolioRules& rules);

// Runs `work` on another thread with a deadline that ends with `deadline` and with `closed`. This thread
// reports meanwhile and passes a cancellation of `deadline` on.
void run_watched(const Deadline& deadline, const CancelToken& closed, const std::function<void()>& report,
                 const std::function<void(const Deadline&)>& work);

// Runs the planners that support the problem, offers their plans and gives them back in that order. Stops
// between planners when the deadline has passed, but never before there is a feasible plan; a planner that
// finds none is passed over.
std::vector<Plan> run_planners(const Problem& problem, const PlannerOptions& options,
                               std::span<const std::string_view> names, PlanStore& candidates);

// The constructive planners for the objective, cheapest first.
std::span<const std::string_view> constructive_planners(Objective objective);

// The starts of an improving planner: options.start, or else the plans of the constructive planners. All are
// offered.
std::vector<Plan> starting_plans(const Problem& problem, const PlannerOptions& options,
                                 PlanStore& candidates);

// An improving planner: calls `improve` with the starting plans, which the candidates already hold. Handles a
// cancellation before there is any plan.
Result<PlannerOutput> plan_from_starts(
    const Problem& problem, const PlannerOptions& options,
    const std::function<Result<PlannerOutput>(std::vector<Plan> starts, PlanStore& candidates)>& improve);

}  // namespace heddle
