// Times a plan beside engines that run the whole model alone.
#include <array>
#include <utility>

#include "heddle/base/quantiles.h"
#include "heddle/base/spelling.h"
#include "heddle/graph/model.h"
#include "heddle/runtime/output_error.h"
#include "inputs.h"
#include "rounds.h"
#include "threads/mailbox.h"
#include "whole_engine.h"

namespace heddle {
namespace {

constexpr std::array kEngineNames = {"openvino", "openvino-f32", "onnxruntime", "openvino-hetero",
                                     "openvino-auto"};

// Latency: the median of requests one after the other, whose times are added to `all`; one before them does not count,
// because the side before has filled the caches and its threads may still spin. Throughput: the time of all, per
// request.
Result<double> timed(int count, bool at_once, const std::function<Status(int count)>& run,
                     std::vector<double>& all) {
  std::vector<double> times;
  const int step = at_once ? count : 1;
  if (!at_once) HEDDLE_RETURN_IF_ERROR(run(1));
  for (int i = 0; i < count; i += step) {
    const int64_t start = now_ns();
    HEDDLE_RETURN_IF_ERROR(run(step));
    times.push_back(static_cast<double>(now_ns() - start) / 1000 / step);
  }
  if (!at_once) all.insert(all.end(), times.begin(), times.end());
  return median_us(times);
}

// What an engine cannot do may show at the first request only.
Result<std::unique_ptr<WholeEngine>> open_and_run(Engine engine, const Model& model, bool throughput,
                                                  std::span<const TensorValue> inputs,
                                                  std::vector<TensorValue>& outputs) {
  HEDDLE_ASSIGN_OR_RETURN(auto whole, open_whole(engine, model, throughput, inputs));
  HEDDLE_RETURN_IF_ERROR(whole->infer());
  HEDDLE_ASSIGN_OR_RETURN(outputs, whole->outputs());
  return whole;
}

double p95_us(const std::vector<double>& times) { return times.empty() ? 0 : quantile_us(times, 0.95); }

}  // namespace

const char* engine_name(Engine engine) { return kEngineNames[static_cast<size_t>(engine)]; }
std::optional<Engine> engine_named(std::string_view name) { return enum_named<Engine>(kEngineNames, name); }

Result<std::unique_ptr<WholeEngine>> open_whole(Engine engine, const Model& model, bool throughput,
                                                std::span<const TensorValue> inputs) {
  if (engine == Engine::kOnnxRuntime) return open_whole_onnxruntime(model, throughput, inputs);
  return open_whole_openvino(engine, model, throughput, inputs);
}

Result<Comparison> compare_with_engines(const Problem& problem, const Plan& plan,
                                        const std::shared_ptr<const Model>& model,
                                        std::span<const Engine> engines, const RoundOptions& options) {
  const bool throughput = problem.objective == Objective::kThroughput;
  HEDDLE_ASSIGN_OR_RETURN(const auto inputs, make_inputs(*problem.graph, options.inputs));
  // The reference first: of several copies of a network in one process, the one that is compiled first is a few percent
  // slower than the others.
  HEDDLE_ASSIGN_OR_RETURN(const auto reference, reference_outputs(*model, inputs));
  HEDDLE_ASSIGN_OR_RETURN(const auto executor, open_for_rounds(problem, plan, model, options, inputs));
  HEDDLE_ASSIGN_OR_RETURN(const auto of_file, file_outputs(*model, reference));
  Comparison comparison;
  std::vector<std::unique_ptr<WholeEngine>> opened;
  for (const Engine engine : engines) {
    EngineComparison row{.engine = engine};
    std::vector<TensorValue> outputs;
    auto whole = open_and_run(engine, *model, throughput, inputs, outputs);
    if (whole.ok()) {
      // ONNX Runtime runs the file, whose outputs of open size have their true shapes.
      const bool as_imported = engine != Engine::kOnnxRuntime || model->sized_outputs().empty();
      row.error = as_imported ? output_error(*problem.graph, views_of(outputs), reference)
                              : output_error(outputs, of_file);
      row.requests = (*whole)->requests();
      opened.push_back(std::move(*whole));
    } else if (whole.error().code() == Code::kUnsupported) {
      row.absent = whole.error().to_string();
    } else {
      return std::move(whole).error();
    }
    comparison.engines.push_back(std::move(row));
  }

  std::vector<std::vector<double>> requests_us(1 + opened.size());  // [side]
  std::vector<TimeRequests> sides{[&](int count) {
    const auto run = [&](int requests) -> Status {
      StreamOptions stream;
      stream.requests = requests;
      stream.deadline = options.deadline;
      const auto result = executor->run_stream(stream);
      return result.ok() ? Status() : Status(result.error());
    };
    return timed(count, throughput, run, requests_us[0]);
  }};
  std::vector<int> slots{executor->slots()};
  for (const auto& whole : opened) {
    sides.push_back([&whole, throughput, &all = requests_us[sides.size()]](int count) {
      const auto run = [&](int requests) {
        return throughput ? whole->infer_many(requests) : whole->infer();
      };
      return timed(count, throughput, run, all);
    });
    slots.push_back(whole->requests());
  }
  std::vector<std::function<Result<double>()>> turns;
  for (size_t i = 0; i < sides.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const int count,
                            requests_per_round(sides[i], slots[i], throughput ? 4 * slots[i] : 1, options));
    turns.push_back([side = sides[i], count] { return side(count); });
  }
  for (auto& all : requests_us) all.clear();  // without the warm-up
  HEDDLE_ASSIGN_OR_RETURN(const RoundTimes times, time_in_turns(turns, options, "comparing"));
  comparison.ours_us = median_us(times[0]);
  comparison.ours_p95_us = p95_us(requests_us[0]);
  comparison.rounds = static_cast<int>(times[0].size());
  size_t side = 0;
  for (EngineComparison& row : comparison.engines) {
    if (!row.absent.empty()) continue;
    const auto& theirs = times[++side];
    std::vector<double> ratios;
    for (size_t i = 0; i < theirs.size(); ++i) ratios.push_back(times[0][i] / theirs[i]);
    row.us = median_us(theirs);
    row.p95_us = p95_us(requests_us[side]);
    row.ratio = median_us(ratios);
    row.ratio_low = quantile_us(ratios, 0.25);
    row.ratio_high = quantile_us(ratios, 0.75);
  }
  return comparison;
}

}  // namespace heddle
