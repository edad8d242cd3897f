#include "heddle/session/compiled_plan.h"

#include <algorithm>
#include <cstring>

#include "heddle/base/spelling.h"
#include "heddle/plan/evaluator.h"
#include "heddle/runtime/executor.h"
#include "heddle/runtime/run.h"

namespace heddle {

CompiledPlan::CompiledPlan(Problem problem, Plan plan, double predicted_us,
                           std::unique_ptr<Executor> executor)
    : problem_(std::move(problem)),
      plan_(std::move(plan)),
      predicted_us_(predicted_us),
      executor_(std::move(executor)) {}

CompiledPlan::~CompiledPlan() = default;

Result<std::unique_ptr<CompiledPlan>> CompiledPlan::create(const Problem& problem, const Plan& plan,
                                                           std::shared_ptr<const Model> model,
                                                           const Control& control) {
  HEDDLE_ASSIGN_OR_RETURN(const Timeline timeline, evaluate(problem, plan));
  ExecutorOptions options;
  options.deadline = control.deadline();
  options.progress = control.progress;
  HEDDLE_ASSIGN_OR_RETURN(auto executor, Executor::create(problem, plan, model, options));
  std::unique_ptr<CompiledPlan> compiled(
      new CompiledPlan(problem, plan, timeline.makespan_us, std::move(executor)));
  compiled->model_ = std::move(model);
  return compiled;
}

bool CompiledPlan::moves_data() const { return executor_->moves_data(); }

Status CompiledPlan::take_inputs(std::span<const TensorView> inputs) {
  const auto slots = executor_->inputs(0);
  if (inputs.size() != slots.size())
    return invalid_input("got " + counted(inputs.size(), "input") + "; the plan takes " +
                         std::to_string(slots.size()));
  const Graph& graph = *problem_.graph;
  for (size_t i = 0; i < slots.size(); ++i) {
    const TensorView &from = inputs[i], &to = slots[i];
    if (from.dtype != to.dtype || from.shape != to.shape)
      return invalid_input("input " + quote_text(graph.tensor(graph.inputs()[i]).name) + " is " +
                           dtype_name(from.dtype) + " of shape " + shape_text(from.shape) + "; expected " +
                           dtype_name(to.dtype) + " of shape " + shape_text(to.shape));
  }
  for (size_t i = 0; i < slots.size(); ++i)
    std::memcpy(slots[i].data, inputs[i].data, static_cast<size_t>(slots[i].bytes));
  return {};
}

Result<RequestResult> CompiledPlan::run(std::span<const TensorView> inputs, const Control& control) {
  const std::lock_guard lock(mutex_);
  HEDDLE_RETURN_IF_ERROR(take_inputs(inputs));
  HEDDLE_ASSIGN_OR_RETURN(const RequestTiming timing, executor_->run(control.deadline()));
  RequestResult result;
  RunRecord& record = result.record;
  record.repeats = record.requests_in_flight = 1;
  record.predicted_us = predicted_us_;
  record.measured_us = timing.latency_us;
  record.latencies_us = {timing.latency_us};
  for (const StepTiming& step : timing.steps) {
    const double start = std::max(step.start_us, 0.0), finish = std::max(step.finish_us, 0.0);
    record.steps.push_back({start, finish, finish - start, 0});
  }
  HEDDLE_ASSIGN_OR_RETURN(result.outputs, copied_outputs(*executor_, model_.get()));
  return result;
}

}  // namespace heddle
