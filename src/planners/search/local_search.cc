// Local search: simulated annealing over devices and order (order_search.h), over devices alone for
// throughput (load_search.h). S. Kirkpatrick et al. 1983; the moves along the critical path after van
// Laarhoven, Aarts, Lenstra 1992.
//
// Minimises the objective itself, timed as the evaluator times it; improves options.start, or the best
// constructive plan, until the deadline. O(V + E) a move at worst; timing begins at the first change and ends
// when the limit is surely exceeded. Exploits all of the execution model, devices that share cores included.
// Ignores known segments of several ops.
#include "core/factories.h"
#include "core/portfolio.h"
#include "improve.h"
#include "lists/construction.h"

namespace heddle {
namespace {

class LocalSearch final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) override {
    return plan_from_starts(problem, options, [&](std::vector<Plan> starts, Candidates& candidates) {
      return from_starts(problem, options, std::move(starts), candidates);
    });
  }

 private:
  static Result<PlannerOutput> from_starts(const Problem& problem, const PlannerOptions& options,
                                           std::vector<Plan> starts, Candidates& candidates) {
    const std::string first = candidates.winner();
    auto result = improve(problem, options, starts, "local-search", candidates);
    HEDDLE_ASSIGN_OR_RETURN(auto out, candidates.output(result.stop, options.deadline));
    out.counters.merge(result.counters);
    if (out.detail != first && !first.empty()) out.detail = first + ", improved by local search";
    return out;
  }
};

}  // namespace

std::unique_ptr<Planner> make_local_search() { return std::make_unique<LocalSearch>(); }

}  // namespace heddle
