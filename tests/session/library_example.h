#include <cstdio>

#include "heddle/plan/plan_file.h"
#include "heddle/session/session.h"

// Plans a model for this machine, and writes the plan.
heddle::Status plan_a_model(const std::string& model, const std::string& plan, const std::string& store) {
  heddle::Control control;  // control.cancel.cancel() from any thread or a signal handler stops what follows
  heddle::ModelSpec spec{.path = model, .import = {}};
  heddle::ProblemSettings settings;
  settings.objective = heddle::Objective::kLatency;
  settings.store = store;  // empty: the user's own
  HEDDLE_ASSIGN_OR_RETURN(heddle::Session session, heddle::open_session(spec, settings, control));

  heddle::SearchSettings search;
  search.time_limit_s = 1;
  HEDDLE_ASSIGN_OR_RETURN(const heddle::PlanResult result,
                          heddle::make_plan(session, "auto", search, control));
  std::printf("%s: %.1f us, at least %.1f us for any plan\n", session.loaded.name.c_str(), result.value_us,
              result.bound.us);
  return heddle::write_plan_file(plan, heddle::plan_file(session.problem, result, search.seed));
}
