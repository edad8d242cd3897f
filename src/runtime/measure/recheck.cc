#include "heddle/runtime/recheck.h"

#include <algorithm>
#include <thread>

#include "heddle/base/quantiles.h"
#include "heddle/graph/model.h"
#include "heddle/plan/evaluator.h"
#include "heddle/runtime/executor.h"
#include "heddle/runtime/profiler.h"
#include "heddle/runtime/segment_measurer.h"
#include "run/rounds.h"
#include "run/sampling.h"

namespace heddle {
namespace {

constexpr int kLeastRuns = 3;

class Rechecking {
 public:
  Rechecking(const Problem& problem, const Plan& plan, std::shared_ptr<const Model> model,
             const RoundOptions& options)
      : problem_(problem),
        plan_(plan),
        model_(std::move(model)),
        options_(options),
        throughput_(problem.objective == Objective::kThroughput) {}

  Result<Recheck> run() {
    HEDDLE_RETURN_IF_ERROR(prepare());
    HEDDLE_ASSIGN_OR_RETURN(const double stored, prediction(problem_));
    const int least = throughput_ ? 4 * executor_->slots() : kLeastRuns;
    HEDDLE_ASSIGN_OR_RETURN(const int count,
                            requests_per_round([this](int requests) { return request(requests); },
                                               executor_->slots(), least, options_));
    const std::function<Result<double>()> sides[] = {[this] { return prediction_now(); },
                                                     [this, count] { return request(count); }};
    HEDDLE_ASSIGN_OR_RETURN(const RoundTimes times,
                            time_in_turns(sides, options_, "timing the segments again"));
    const auto &predicted = times[0], &measured = times[1];
    std::vector<double> errors, drifts;
    for (size_t i = 0; i < predicted.size(); ++i) {
      errors.push_back(measured[i] / predicted[i] - 1);
      drifts.push_back(predicted[i] / stored - 1);
    }
    return Recheck{.predicted_us = median_us(predicted),
                   .measured_us = median_us(measured),
                   .error = median_us(errors),
                   .error_low = quantile_us(errors, 0.25),
                   .error_high = quantile_us(errors, 0.75),
                   .drift = median_us(drifts),
                   .rounds = static_cast<int>(errors.size())};
  }

 private:
  struct Control {
    std::vector<OpId> ops;  // of the problem's graph
    DeviceId device;
    std::unique_ptr<SegmentProbe> probe;
    Measurement last;
  };

  Status prepare() {
    HEDDLE_ASSIGN_OR_RETURN(const auto inputs, make_inputs(*problem_.graph, options_.inputs));
    HEDDLE_ASSIGN_OR_RETURN(executor_, open_for_rounds(problem_, plan_, model_, options_, inputs));
    for (const ProfileRequest& segment : profile_requests(plan_)) {
      const bool known = std::any_of(controls_.begin(), controls_.end(), [&](const Control& c) {
        return c.device == segment.device && c.ops == segment.ops;
      });
      if (known) continue;
      HEDDLE_ASSIGN_OR_RETURN(auto probe, SegmentProbe::make(model_, finest_ops(*problem_.graph, segment.ops),
                                                             problem_.cluster->device(segment.device)));
      controls_.push_back({segment.ops, segment.device, std::move(probe), {}});
    }
    return {};
  }

  Result<double> prediction(const Problem& problem) const {
    HEDDLE_ASSIGN_OR_RETURN(const Timeline timeline, evaluate(problem, plan_));
    return objective_us(problem, timeline);
  }

  Status sample(Control& control, double seconds) const {
    MeasureOptions options;
    options.min_s = options.max_s = seconds;
    options.min_runs = kLeastRuns;
    HEDDLE_ASSIGN_OR_RETURN(control.last, control.probe->sample(options, options_.deadline));
    return {};
  }

  // Each segment of a device gets an equal part of the half-round.
  Status sample_device(DeviceId device, double seconds) {
    std::vector<Control*> own;
    for (auto& c : controls_) {
      if (c.device == device) own.push_back(&c);
    }
    for (Control* c : own) HEDDLE_RETURN_IF_ERROR(sample(*c, seconds / static_cast<double>(own.size())));
    return {};
  }

  Result<double> prediction_now() {
    std::vector<DeviceId> devices;
    for (const auto& c : controls_) devices.push_back(c.device);
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    std::vector<Status> outcomes(devices.size());
    if (throughput_) {
      std::vector<std::thread> threads;
      for (size_t i = 0; i < devices.size(); ++i)
        threads.emplace_back([&, i] { outcomes[i] = sample_device(devices[i], options_.round_s); });
      for (auto& t : threads) t.join();
    } else {
      for (size_t i = 0; i < devices.size(); ++i)
        outcomes[i] = sample_device(devices[i], options_.round_s / static_cast<double>(devices.size()));
    }
    for (auto& outcome : outcomes) HEDDLE_RETURN_IF_ERROR(std::move(outcome));
    auto costs = std::make_shared<CostTable>(*problem_.costs);
    for (const auto& c : controls_) {
      const Cost cost{c.last.median_us, Origin::kMeasured, c.last.rel_spread};
      costs->set_ops(c.ops, c.device, cost);
    }
    Problem now = problem_;
    now.costs = costs;
    return prediction(now);
  }

  Result<double> request(int count) {
    if (throughput_) {
      std::vector<double> finishes(static_cast<size_t>(count));
      const auto done = [&](const RequestTiming& timing) {
        finishes[static_cast<size_t>(timing.request)] = timing.start_us + timing.latency_us;
      };
      HEDDLE_ASSIGN_OR_RETURN(
          [[maybe_unused]] const auto result,
          executor_->run_stream(
              {.requests = count, .fill = {}, .done = done, .deadline = options_.deadline}));
      return steady_period_us(std::move(finishes), executor_->slots());
    }
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(const auto timing, executor_->run(options_.deadline));
      times.push_back(timing.latency_us);
    }
    return median_us(times);
  }

  const Problem& problem_;
  const Plan& plan_;
  std::shared_ptr<const Model> model_;
  const RoundOptions& options_;
  const bool throughput_;
  std::unique_ptr<Executor> executor_;
  std::vector<Control> controls_;
};

}  // namespace

Result<Recheck> recheck_prediction(const Problem& problem, const Plan& plan,
                                   std::shared_ptr<const Model> model, const RoundOptions& options) {
  return Rechecking(problem, plan, std::move(model), options).run();
}

}  // namespace heddle
