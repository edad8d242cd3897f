#include "run_adaptive.h"

#include <fmt/format.h>

#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/report/text_table.h"
#include "heddle/runtime/sampling.h"
#include "heddle/session/adaptive.h"

namespace heddle::cli {
namespace {

// The plans whose outputs are the unsplit model's; status 1 is for the others.
Result<bool> outputs_are_right(const Session& session, const std::vector<PreparedPlan>& plans,
                               RunOptions options) {
  if (!options.verify) return true;
  options.repeats = 1;
  options.warmups = 0;
  for (const PreparedPlan& plan : plans) {
    HEDDLE_ASSIGN_OR_RETURN(const RunRecord run,
                            run_plan(session.problem, plan.result.plan, session.loaded.model, options));
    if (run.verified && !run.right()) return false;
  }
  return true;
}

struct Times {
  std::vector<double> all;              // us, of each request
  std::vector<std::vector<double>> of;  // [plan]
  uint64_t switches = 0;
};

Result<Times> run_requests(const Session& session, const std::vector<PreparedPlan>& plans,
                           const RunOptions& options, const Control& control) {
  HEDDLE_ASSIGN_OR_RETURN(const auto adaptive, AdaptivePlan::create(session, plans, control));
  HEDDLE_ASSIGN_OR_RETURN(const auto inputs, make_inputs(*session.problem.graph, options.inputs));
  std::vector<TensorView> views;
  for (const TensorValue& input : inputs) views.push_back(input.view());
  Times times;
  times.of.resize(plans.size());
  for (int i = 0; i < options.repeats; ++i) {
    // Ctrl-C: the requests so far are the answer.
    if (control.cancel.cancelled() && !times.all.empty()) break;
    control.report("running", i, options.repeats);
    HEDDLE_ASSIGN_OR_RETURN(const auto answer, adaptive->run(views, control));
    times.all.push_back(answer.result.record.measured_us);
    times.of[answer.plan].push_back(answer.result.record.measured_us);
  }
  times.switches = adaptive->switches();
  return times;
}

void show(const std::vector<PreparedPlan>& plans, const Times& times, bool right, bool verified,
          const Invocation& invocation) {
  Json json = {{"requests", times.all.size()},
               {"median_us", median_us(times.all)},
               {"p95_us", quantile_us(times.all, 0.95)},
               {"switches", times.switches},
               {"outputs_equal", verified ? Json(right) : Json()},
               {"plans", Json::array()}};
  TextTable table({{"plan for"},
                   {"predicted", TextTable::Align::kRight},
                   {"requests", TextTable::Align::kRight},
                   {"median", TextTable::Align::kRight}});
  for (size_t i = 0; i < plans.size(); ++i) {
    const auto& own = times.of[i];
    const double predicted = plans[i].result.value_us;
    table.add_row({plans[i].what, format_us(predicted), std::to_string(own.size()),
                   own.empty() ? "-" : format_us(median_us(own))});
    json["plans"].push_back({{"cores", plans[i].what},
                             {"predicted_us", predicted},
                             {"requests", own.size()},
                             {"median_us", own.empty() ? Json() : Json(median_us(own))}});
  }
  show_result(invocation, json,
              table.to_string() +
                  fmt::format("\n{}: median {}, 95th percentile {}; the plan changed {}\noutputs: {}\n",
                              counted(times.all.size(), "request"), format_us(median_us(times.all)),
                              format_us(quantile_us(times.all, 0.95)), counted(times.switches, "time"),
                              !verified ? "not compared"
                              : right   ? "equal to the unsplit model's, for every plan"
                                        : "NOT EQUAL to the unsplit model's"));
}

}  // namespace

Result<int> run_adaptive(const AdaptiveJob& job, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(auto session, job.planning->open(invocation));
  if (session.loaded.model == nullptr || session.problem.objective != Objective::kLatency)
    return invalid_input("--adapt is for a real model and the objective latency");
  HEDDLE_ASSIGN_OR_RETURN(const auto plans,
                          plans_for_free_cores(session, job.planner, job.planning->search, invocation));
  HEDDLE_ASSIGN_OR_RETURN(const bool right, outputs_are_right(session, plans, job.run));
  HEDDLE_ASSIGN_OR_RETURN(const Times times, run_requests(session, plans, job.run, invocation));
  if (invocation.progress) invocation.progress->finish();
  show(plans, times, right, job.run.verify, invocation);
  return right ? kExitDone : kExitNo;
}

}  // namespace heddle::cli
