// CP-SAT on one request's schedule (cp_schedule.h), between two local searches (prove.h).
//
// Minimises the makespan of the relaxation, starting from the best plan of a short local search; what CP-SAT
// finds is timed by the evaluator and improved once more, for contention and known segments are not in the
// model. Its bound is proven for the problem as it is. Deterministic for a seed and thread count unless the
// deadline stops it.
#include "core/factories.h"
#include "core/flat_problem.h"
#include "core/portfolio.h"
#include "prove.h"

namespace heddle {
namespace {

class CpSat final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) override {
    return plan_from_starts(problem, options, [&](std::vector<Plan> starts, Candidates& candidates) {
      return from_starts(problem, options, std::move(starts), candidates);
    });
  }

 private:
  static Result<PlannerOutput> from_starts(const Problem& problem, const PlannerOptions& options,
                                           std::vector<Plan> starts, Candidates& candidates) {
    HEDDLE_ASSIGN_OR_RETURN(auto out, search_and_prove(problem, options, std::move(starts), candidates));
    if (!out.counters.contains("cp_sat_complete"))
      out.detail += ", without CP-SAT (not needed, or too large)";
    return out;
  }
};

}  // namespace

std::unique_ptr<Planner> make_cp_sat() { return std::make_unique<CpSat>(); }

}  // namespace heddle
