// Auto: what a user wants who does not want to choose. All constructive planners, replication for throughput,
// then local search, a linear program and CP-SAT with the time that is left (prove.h); the best plan and the
// best bound win.
//
// Minimises the objective. Deterministic for a seed and thread count unless the deadline stops it. Each
// constructive planner runs on every promising set of devices that do not share cores; local search may mix
// them.
#include <array>

#include "construction.h"
#include "factories.h"
#include "portfolio.h"
#include "prove.h"

namespace heddle {
namespace {

// Of the time left, for replication; local search has the rest.
constexpr double kReplicateShare = 0.3;

class Auto final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) override {
    Candidates candidates(problem);
    if (options.start != nullptr) candidates.offer(*options.start, "the plan to improve");
    auto starts = run_portfolio(problem, options, constructive_planners(problem.objective), candidates);
    if (problem.objective == Objective::kThroughput) {
      static constexpr std::array<std::string_view, 1> kNames{"replicate"};
      PlannerOptions part = options;
      part.deadline = options.deadline.sooner(kReplicateShare * options.deadline.seconds_left());
      run_portfolio(problem, part, kNames, candidates);
    }
    if (options.start != nullptr) starts.push_back(*options.start);
    if (options.deadline.cancelled() && candidates.empty())
      return candidates.output(StopReason::kCancelled, options.deadline);
    const std::string first = candidates.winner();
    HEDDLE_ASSIGN_OR_RETURN(auto out, search_and_prove(problem, options, std::move(starts), candidates));
    const bool improved = out.detail != first;
    out.detail = "won by " + out.detail;
    if (improved && !first.empty()) out.detail += " (best constructive: " + first + ")";
    return out;
  }
};

}  // namespace

std::unique_ptr<Planner> make_auto() { return std::make_unique<Auto>(); }

}  // namespace heddle
