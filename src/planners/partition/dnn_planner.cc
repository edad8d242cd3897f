#include "heddle/planners/dnn_planner.h"

#include <chrono>
#include <cmath>
#include <limits>

#include "core/portfolio.h"
#include "dnn_store.h"

namespace heddle {
namespace {

constexpr double kGap = 1e-6;         // of two values that count as equal
constexpr double kUsualSeconds = 60;  // where the caller sets no end

}  // namespace

DnnStore::DnnStore(const DnnWorkload& workload, const DnnRules& rules, CancelToken done)
    : workload_(workload), rules_(rules), done_(std::move(done)), splits_(kGap, done_) {}

double DnnStore::offer(const DnnSplit& split, const std::string& planner) {
  constexpr double kRefused = std::numeric_limits<double>::infinity();
  if (!check_dnn_split(workload_, split, rules_).ok()) return kRefused;
  const auto value = evaluate_dnn_split(workload_, split, rules_.objective);
  if (!value.ok()) return kRefused;
  splits_.offer(value->value, split, planner);
  return value->value;
}

void DnnStore::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  done_.cancel();
}

DnnSplit DnnStore::split() const {
  const auto best = splits_.best();
  return best ? *best : DnnSplit{};
}

Result<DnnPlan> DnnStore::result() const {
  const std::lock_guard lock(mutex_);
  if (error_) return *error_;
  const auto best = splits_.best();
  if (!best)
    return Error(Code::kInfeasible, workload_.name +
                                        ": found no split that memory and supported devices allow; give "
                                        "accelerators more memory, or the workload a CPU");
  DnnPlan plan;
  plan.split = *best;
  plan.value = splits_.value();
  plan.bound = splits_.bound();
  plan.planner = splits_.winner();
  plan.bound_by = splits_.proof();
  plan.optimal = !splits_.is_open();
  plan.trajectory = splits_.trajectory();
  if (plan.bound > plan.value * (1 + 1e-9))
    return Error(Code::kInternal, workload_.name + ": " + plan.bound_by + " claims the bound " +
                                      std::to_string(plan.bound) + ", but " + plan.planner +
                                      " found the checked value " + std::to_string(plan.value));
  plan.bound = std::min(plan.bound, plan.value);  // they may differ by the rounding of sums
  return plan;
}

void run_search(const DnnSearch& search, const Deadline& deadline) {
  bool found = false;
  const auto annealing = [&](int thread, TimeShare time) -> PortfolioStep {
    return {"annealing", time, {}, [&, thread](const Deadline& d) { search.anneal(thread, d); }};
  };
  std::vector<PortfolioSteps> tables{
      {annealing(0, of_all(search.before)),
       {"CP-SAT", of_all(search.model), {}, [&](const Deadline& d) { found = search.solve(d); }},
       {"CP-SAT again", of_left(1), [&] { return found; }, [&](const Deadline& d) { search.solve(d); }},
       annealing(0, of_left(1))}};
  for (int t = 1; t < search.threads; ++t) tables.push_back({annealing(t, of_left(1))});
  run_side_by_side(tables, {.deadline = deadline});
}

Result<DnnPlan> plan_dnn(const DnnWorkload& workload, const DnnRules& rules, const DnnPlanOptions& options) {
  if (rules.pieces < 1 || options.threads < 1)
    return Error(Code::kInvalidInput, "pieces and threads must be at least 1");
  const auto began = Deadline::Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Deadline::Clock::now() - began).count(); };
  const double seconds =
      std::isfinite(options.deadline.seconds_left()) ? options.deadline.seconds_left() : kUsualSeconds;
  const CancelToken done;
  DnnStore store(workload, rules, done);
  const auto report = [&] {
    if (options.progress == nullptr) return;
    ProgressUpdate update;
    update.what = workload.name;
    update.done = std::min(elapsed(), seconds);
    update.total = seconds;
    if (std::isfinite(store.value())) update.best_us = store.value() * 1e3;
    if (store.bound() > 0) update.bound_us = store.bound() * 1e3;
    options.progress->report(update);
  };
  run_watched(options.deadline.sooner(seconds), done, report, [&](const Deadline& deadline) {
    if (rules.objective == DnnObjective::kLatency) {
      run_latency_portfolio(workload, rules, options, deadline, store);
    } else {
      run_load_portfolio(workload, rules, options, deadline, store);
    }
  });
  HEDDLE_ASSIGN_OR_RETURN(auto plan, store.result());
  plan.seconds = elapsed();
  plan.trajectory.push_back({plan.seconds, plan.value, plan.bound});
  return plan;
}

}  // namespace heddle
