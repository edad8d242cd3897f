// What constructive planners share: every configuration of devices, and room for tensors where memory is
// tight.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/configurations.h"
#include "core/flat_problem.h"
#include "core/plan_store.h"
#include "list_schedule.h"

namespace heddle {

// Decisions for the devices of `flat`, leaving `reserve` bytes free in each pool beside the parameters;
// nullopt when an op fits nowhere or the deadline was cancelled.
using Construct = std::function<std::optional<FlatPlan>(const FlatProblem& flat, const Reserve& reserve)>;

// Offers what `construct` gives on each configuration; where tensors do not fit, again with more room left
// free. A deadline that has passed does not stop it (it is short), only a cancellation does.
void offer_constructions(const Problem& problem, const PlannerOptions& options, const std::string& name,
                         const Construct& construct, PlanStore& candidates);

// The same as a whole planner.
Result<PlannerOutput> plan_by_construction(const Problem& problem, const PlannerOptions& options,
                                           const std::string& name, const Construct& construct);

// Places the ops in the given order, each on the device that `choose` picks among the slots (or -1: none will
// do).
using Choose = std::function<int32_t(uint32_t op, const std::vector<ListSchedule::Slot>& slots)>;
std::optional<FlatPlan> list_plan(const FlatProblem& flat, const ListOptions& list, const Reserve& reserve,
                                  const std::vector<uint32_t>& order, const Deadline& deadline,
                                  const Choose& choose);
// The slot that ends first; ties: the first device.
int32_t earliest_finish(const std::vector<ListSchedule::Slot>& slots);

void report_progress(const PlannerOptions& options, const std::string& what, double done, double total,
                     std::optional<double> best_us = {}, std::optional<double> bound_us = {});

}  // namespace heddle
