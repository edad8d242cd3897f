// The frame of constructive planners: every configuration of devices, and room for tensors if memory is
// tight.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/configurations.h"
#include "core/flat_problem.h"
#include "core/plan_store.h"
#include "diviml/batched_list.h"
#include "list_schedule.h"

namespace heddle {

// Decisions for the devices of `flat`, leaving `reserve` bytes free in each pool beside the parameters;
// nullopt when an op fits nowhere or the deadline was cancelled.
using Construct = std::function<std::optional<FlatPlan>(const FlatProblem& flat, const Reserve& reserve)>;

// Offers the plan of `construct` on each configuration; if tensors do not fit, again with more room left
// free. A deadline that has passed does not stop it (it is short), only a cancellation does.
void offer_constructions(const Problem& problem, const PlannerOptions& options, const std::string& name,
                         const Construct& construct, PlanStore& candidates);

// The same as a whole planner.
Result<PlannerOutput> plan_by_construction(const Problem& problem, const PlannerOptions& options,
                                           const std::string& name, const Construct& construct);

// A list planner's decisions on some devices: the order in which ops are placed, and the device that takes
// each, given its slots (or -1: none will do).
struct ListDecisions {
  std::vector<uint32_t> order;
  std::function<int32_t(uint32_t op, const std::vector<ListSchedule::TimeSlot>& slots)> choose;
};
std::optional<FlatPlan> list_plan(const FlatProblem& flat, const ListOptions& list, const Reserve& reserve,
                                  const Deadline& deadline, const ListDecisions& decisions);
// The slot that ends first; ties: the first device.
int32_t earliest_finish(uint32_t op, const std::vector<ListSchedule::TimeSlot>& slots);
std::vector<uint32_t> topological_list(const FlatProblem& flat);

// A whole list planner.
struct ListRule {
  ListOptions list;
  std::function<ListDecisions(const FlatProblem& flat)> decide;
  // The rule for problems of batches; none: their ops are placed one by one.
  std::optional<BatchRule> batched;
  // The construction for throughput; empty: the same list.
  std::function<std::optional<FlatPlan>(const FlatProblem&, const Reserve&, const Deadline&)> throughput;
};
Result<PlannerOutput> plan_by_list(const Problem& problem, const PlannerOptions& options,
                                   const std::string& name, const ListRule& rule);

void report_progress(const PlannerOptions& options, const std::string& what, double done, double total,
                     std::optional<double> best_us = {}, std::optional<double> bound_us = {});

}  // namespace heddle
