// Earliest time first: of all ready ops and devices, the pair that can start first (Hwang, Chow, Anger and
// Lee, SIAM J. Computing 18(2), 1989). m-SCT and GETF share it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "construction.h"

namespace heddle {

inline constexpr uint32_t kNoOp = UINT32_MAX;

struct EtfRules {
  std::vector<double> priority;     // of ops that could start at once; the higher first
  std::vector<uint32_t> favourite;  // per op, the child that its device is kept for, or kNoOp; may be empty
  std::vector<std::vector<uint8_t>>
      tier;  // [op][device]: only devices of the least tier with room; empty: all
};

// A whole planner: earliest time first by the rules that `make_rules` gives for some devices. As many other
// devices after them have the same rules, since the programs behind them may take seconds. Ignores contention.
// O((V k + E k) log V) for k devices beside the rules.
Result<PlannerOutput> plan_earliest_time_first(
    const Problem& problem, const PlannerOptions& options, const std::string& name,
    const std::function<EtfRules(const FlatProblem& flat)>& make_rules);

}  // namespace heddle
