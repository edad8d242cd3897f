#include "lns_rounds.h"

#include <limits>

namespace heddle {
namespace {

// Steps in a row without a better plan after which it ends, per size of the model; and without a deadline all
// steps.
constexpr uint64_t kPatience = 150, kUntimedSteps = 16;

}  // namespace

LnsResult lns_rounds(const Problem& problem, const FlatProblem& flat, const PlannerOptions& options,
                     const Plan& start, double stop_at_us, const OfferPlan& offer) {
  LnsResult result;
  auto first = to_flat_plan(flat, assignment_of(problem, start));
  if (!first) return result;
  const auto lns = make_lns_search(flat, std::move(*first), options.seed);
  const LnsSearch::Accept accept = [&](const FlatPlan& plan) { return offer(to_assignment(flat, plan)); };
  const bool endless = options.deadline.seconds_left() == std::numeric_limits<double>::infinity();
  uint64_t last_better = 0;
  while (!options.deadline.should_stop()) {
    if (lns->best_us() <= stop_at_us) {
      result.stop = StopReason::kOptimal;
      break;
    }
    const auto& counts = lns->counts();
    if (counts.steps >= last_better + kPatience || (endless && counts.steps >= kUntimedSteps)) break;
    const uint64_t better = counts.better;
    if (!lns->step(options.deadline, accept).ok()) break;
    result.ran = true;
    if (counts.better > better) last_better = counts.steps;
    result.stop = StopReason::kFinished;
  }
  if (result.stop != StopReason::kOptimal && options.deadline.should_stop())
    result.stop = StopReason::kTimeLimit;
  result.counts = lns->counts();
  return result;
}

}  // namespace heddle
