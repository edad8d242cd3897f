// SortingHat's way through a model (ICS'25, section 3.1): submodel by submodel, each with what the ones
// before left, and the slots of all as one plan.
#pragma once

#include <map>
#include <string>

#include "core/plan_store.h"
#include "slot_problem.h"

namespace heddle {

enum class SlotSolver { kNone, kHighs, kCpSat };

struct LoopOptions {
  SlotOptions slots;
  SlotSolver solver = SlotSolver::kNone;
  size_t rounds = 40;            // of the heuristic start: moves per node
  bool whole_subgraphs = false;  // deliver subgraphs as segments only
};

struct LoopResult {
  bool placed = false;     // all ops have a device
  bool cut_short = false;  // time ended a submodel's search or program, or left none for it
  std::map<std::string, double> counters;
  double program_us = 0;  // the last TotalLatency
};

// The longest that one submodel may take where there is a deadline (section 4.2).
inline constexpr double kSubmodelSeconds = 30;

// Fails where devices times subgraphs are more than the programs are meant for, or q is below 2.
Status check_slots(size_t devices, int q, const std::string& planner);

// Plans all submodels and offers what comes out: its subgraphs as segments and, unless `whole_subgraphs`, op
// by op. Each submodel gets an equal part of the time that is left, at most kSubmodelSeconds; without a
// deadline an amount of work. Deterministic unless cut short.
Result<LoopResult> run_submodels(const ColdTables& tables, const Submodels& submodels,
                                 const LoopOptions& loop, const PlannerOptions& options,
                                 const std::string& name, PlanStore& candidates);

// The best candidate with the loop's counters; one device or a list schedule where no submodels led to a fitting plan.
Result<PlannerOutput> submodels_output(const Problem& problem, const PlannerOptions& options,
                                       const LoopResult& result, PlanStore& candidates);

}  // namespace heddle
