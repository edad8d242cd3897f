#include "heddle/runtime/run.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/quantiles.h"
#include "heddle/graph/model.h"
#include "heddle/plan/evaluator.h"
#include "heddle/runtime/executor.h"
#include "inputs.h"
#include "sampling.h"
#include "verify.h"

namespace heddle {
namespace {

constexpr int kThroughputRounds = 9;

// All measured values, in memory allocated before the first request.
struct Recording {
  Recording(size_t steps, int repeats)
      : durations(steps * static_cast<size_t>(repeats), 0), num_steps(steps) {}
  // Threads call this concurrently, for different requests.
  void note(const RequestTiming& timing, size_t request) {
    for (size_t s = 0; s < num_steps; ++s) {
      const StepTiming& step = timing.steps[s];
      durations[request * num_steps + s] = step.start_us < 0 ? -1 : step.finish_us - step.start_us;
    }
  }
  std::vector<double> of_step(size_t s, size_t requests) const {
    std::vector<double> times;
    for (size_t r = 0; r < requests; ++r) {
      if (durations[r * num_steps + s] >= 0) times.push_back(durations[r * num_steps + s]);
    }
    return times;
  }
  std::vector<double> durations;  // [request][step]; -1: the step belongs to another lane
  size_t num_steps;
};

class Runner {
 public:
  Runner(const Problem& problem, const Plan& plan, std::shared_ptr<const Model> model,
         const RunOptions& options)
      : problem_(problem),
        plan_(plan),
        model_(std::move(model)),
        options_(options),
        recording_(plan.steps.size(), options.repeats) {}

  Result<RunRecord> run() {
    HEDDLE_RETURN_IF_ERROR(prepare());
    HEDDLE_RETURN_IF_ERROR(options_.in_flight > 1 ? measure_stream() : measure_latency());
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const std::vector<double> times = recording_.of_step(s, record_.latencies_us.size());
      record_.steps[s].median_us = median_us(times);
      record_.steps[s].rel_spread = relative_spread(times);
    }
    if (options_.tensors != nullptr) {
      options_.tensors->inputs = inputs_;
      HEDDLE_ASSIGN_OR_RETURN(options_.tensors->outputs, copied_outputs(*executor_, model_.get()));
    }
    if (options_.verify && model_ && executor_->moves_data()) HEDDLE_RETURN_IF_ERROR(verify());
    return record_;
  }

 private:
  Status prepare() {
    HEDDLE_ASSIGN_OR_RETURN(const Timeline timeline, evaluate(problem_, plan_));
    record_.predicted_us = options_.in_flight > 1 ? timeline.period_us : timeline.makespan_us;
    record_.rtol = options_.rtol;
    record_.atol = options_.atol;
    record_.warmups = options_.warmups;
    record_.steps.resize(plan_.steps.size());
    HEDDLE_ASSIGN_OR_RETURN(executor_, Executor::create(problem_, plan_, model_, executor_options()));
    record_.requests_in_flight = options_.in_flight > 1 ? executor_->slots() : 1;
    if (!executor_->moves_data() && options_.tensors != nullptr)
      return unsupported("the plan's devices compute nothing, so a request has no tensors");
    if (!executor_->moves_data()) return {};
    HEDDLE_ASSIGN_OR_RETURN(inputs_, make_inputs(*problem_.graph, options_.inputs));
    give_inputs(*executor_, inputs_);
    return {};
  }

  ExecutorOptions executor_options() const {
    ExecutorOptions options;
    options.in_flight = options_.in_flight;
    options.deadline = options_.deadline;
    options.progress = options_.progress;
    return options;
  }

  void report(int done) {
    if (options_.progress)
      options_.progress->report({.what = "running",
                                 .done = static_cast<double>(done),
                                 .total = static_cast<double>(options_.repeats)});
  }

  Status measure_latency() {
    for (int i = 0; i < options_.warmups; ++i) {
      HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const auto warm, executor_->run(options_.deadline));
    }
    std::vector<std::vector<StepTiming>> timelines;
    for (int i = 0; i < options_.repeats; ++i) {
      const auto timing = executor_->run(options_.deadline);
      if (!timing.ok()) {
        if (timing.error().code() == Code::kCancelled && i > 0) break;
        return timing.error();
      }
      recording_.note(*timing, static_cast<size_t>(i));
      timelines.emplace_back(timing->steps.begin(), timing->steps.end());
      record_.latencies_us.push_back(timing->latency_us);
      report(i + 1);
    }
    record_.repeats = static_cast<int>(record_.latencies_us.size());
    record_.measured_us = median_us(record_.latencies_us);
    show(timelines[median_request()]);
    return {};
  }

  size_t median_request() const {
    size_t best = 0;
    for (size_t i = 1; i < record_.latencies_us.size(); ++i) {
      if (std::fabs(record_.latencies_us[i] - record_.measured_us) <
          std::fabs(record_.latencies_us[best] - record_.measured_us))
        best = i;
    }
    return best;
  }

  void show(const std::vector<StepTiming>& steps) {
    for (size_t s = 0; s < steps.size(); ++s) {
      record_.steps[s].start_us = std::max(steps[s].start_us, 0.0);
      record_.steps[s].finish_us = std::max(steps[s].finish_us, 0.0);
    }
  }

  // Measures rounds of requests. A round's time per request is taken from the filled pipeline to the last
  // finish.
  Status measure_stream() {
    const int slots = executor_->slots();
    if (options_.warmups > 0) {
      HEDDLE_ASSIGN_OR_RETURN(
          [[maybe_unused]] const auto warm,
          executor_->run_stream(
              {.requests = options_.warmups * slots, .fill = {}, .done = {}, .deadline = options_.deadline}));
    }
    const int rounds = std::clamp(options_.repeats / (4 * slots), 1, kThroughputRounds);
    std::vector<double> periods;
    std::vector<StepTiming> shown(plan_.steps.size());
    record_.latencies_us.reserve(static_cast<size_t>(options_.repeats));
    for (int round = 0, taken = 0; round < rounds; ++round) {
      const int count = options_.repeats / rounds + (round < options_.repeats % rounds ? 1 : 0);
      std::vector<double> finishes(static_cast<size_t>(count));
      const auto done = [&](const RequestTiming& timing) {
        finishes[static_cast<size_t>(timing.request)] = timing.start_us + timing.latency_us;
        recording_.note(timing, static_cast<size_t>(taken + timing.request));
        // Late requests show the steady state; keep the last one of each lane.
        if (timing.request + slots >= count) {
          for (size_t s = 0; s < shown.size(); ++s) {
            if (timing.steps[s].start_us >= 0) shown[s] = timing.steps[s];
          }
        }
      };
      auto result =
          executor_->run_stream({.requests = count, .fill = {}, .done = done, .deadline = options_.deadline});
      if (!result.ok()) {
        if (result.error().code() == Code::kCancelled && round > 0) break;
        return std::move(result).error();
      }
      periods.push_back(steady_period_us(finishes, slots));
      record_.latencies_us.insert(record_.latencies_us.end(), result->latencies_us.begin(),
                                  result->latencies_us.end());
      taken += count;
      report(taken);
    }
    record_.repeats = static_cast<int>(record_.latencies_us.size());
    record_.measured_us = median_us(periods);
    show(shown);
    return {};
  }

  Status verify() {
    const Verification v{.problem = &problem_,
                         .plan = &plan_,
                         .model = model_,
                         .inputs = inputs_,
                         .samples = options_.samples,
                         .decisions = &options_.decisions,
                         .rtol = options_.rtol,
                         .atol = options_.atol,
                         .again = executor_options()};
    const int slots = std::min(executor_->slots(), record_.repeats);
    OutputCheck check;
    const Status verified = verify_plan(v, executor_, slots, check);
    // After Ctrl-C the outputs are not compared, but what was measured counts.
    if (!verified.ok() && verified.error().code() == Code::kCancelled) return {};
    HEDDLE_RETURN_IF_ERROR(verified);
    static_cast<OutputCheck&>(record_) = std::move(check);
    for (TensorId t : problem_.graph->outputs())
      record_.outputs_compared.push_back(problem_.graph->tensor(t).name);
    return {};
  }

  const Problem& problem_;
  const Plan& plan_;
  std::shared_ptr<const Model> model_;
  const RunOptions& options_;
  Recording recording_;
  RunRecord record_;
  std::unique_ptr<Executor> executor_;
  std::vector<TensorValue> inputs_;
};

}  // namespace

Result<RunRecord> run_plan(const Problem& problem, const Plan& plan, std::shared_ptr<const Model> model,
                           const RunOptions& options) {
  if (options.repeats < 1 || options.warmups < 0 || options.in_flight < 1) {
    return invalid_input("a run needs at least 1 repeat, 0 warm-ups and 1 request in flight");
  }
  return Runner(problem, plan, std::move(model), options).run();
}

}  // namespace heddle
