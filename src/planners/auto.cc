// Auto: what a user wants who does not want to choose. All constructive planners, replication for throughput,
// modules one by one (cp-split), then local search, a linear program and CP-SAT with the time that is left
// (prove.h); the best plan and the best bound win.
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
// Of the time left, for module-wise proofs on graphs that CP-SAT does not solve at once, and the least that
// is worth beginning with.
constexpr double kSplitShare = 0.3, kLeastSplitSeconds = 0.5;
constexpr size_t kWholeOps = 40;

class Auto final : public Planner {
 private:
  // Modules between narrow places are solved one by one, where the graph has them.
  static Bound split(const Problem& problem, const PlannerOptions& options, std::vector<Plan>& starts,
                     Candidates& candidates) {
    const double seconds = kSplitShare * options.deadline.seconds_left();
    if (problem.objective != Objective::kLatency || problem.graph->num_ops() <= kWholeOps ||
        candidates.empty() || seconds < kLeastSplitSeconds)
      return {};
    PlannerOptions part = options;
    part.deadline = options.deadline.sooner(seconds);
    part.progress = nullptr;
    part.start = nullptr;
    auto out = make_cp_split()->plan(problem, part);
    if (!out.ok()) return {};
    candidates.offer(out->plan, "cp-split");
    starts.push_back(std::move(out->plan));
    return out->bound.value_or(Bound{});
  }

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
    const Bound known = split(problem, options, starts, candidates);
    if (options.start != nullptr) starts.push_back(*options.start);
    if (options.deadline.cancelled() && candidates.empty())
      return candidates.output(StopReason::kCancelled, options.deadline);
    const std::string first = candidates.winner();
    HEDDLE_ASSIGN_OR_RETURN(auto out,
                            search_and_prove(problem, options, std::move(starts), candidates, known));
    const bool improved = out.detail != first;
    out.detail = "won by " + out.detail;
    if (improved && !first.empty()) out.detail += " (best constructive: " + first + ")";
    return out;
  }
};

}  // namespace

std::unique_ptr<Planner> make_auto() { return std::make_unique<Auto>(); }

}  // namespace heddle
