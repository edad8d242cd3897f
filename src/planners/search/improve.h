// Rounds of annealing from some plans, for any objective: what local-search and auto share.
#pragma once

#include <optional>
#include <vector>

#include "core/plan_store.h"

namespace heddle {

struct ImproveResult {
  StopReason stop = StopReason::kFinished;
  double bound_us = 0;
  std::map<std::string, double> counters;
};

// Improves the best of `starts` (op by op) and offers what it finds. Runs options.threads chains with seeds
// of their own, which meet after each round, so that the outcome depends on seed and threads only unless the
// deadline stops it. Ends at the proven bound, at the deadline, after a fixed amount of work when there is
// none, or when many rounds in a row found nothing better. `known_us`: a proven bound, or nullopt: the
// combinatorial one is computed.
ImproveResult improve(const Problem& problem, const PlannerOptions& options, const std::vector<Plan>& starts,
                      const std::string& name, PlanStore& candidates,
                      std::optional<double> known_us = std::nullopt);

}  // namespace heddle
