// The core suite on real models: is the prediction true, and is the plan at least as fast as engines alone?
#include <algorithm>
#include <cmath>

#include "bench_files.h"
#include "heddle/base/units.h"
#include "heddle/graph/analysis.h"
#include "heddle/runtime/recheck.h"
#include "heddle/runtime/run.h"
#include "heddle/runtime/sampling.h"
#include "heddle/session/session.h"
#include "suites.h"

namespace heddle::bench {
namespace {

constexpr Engine kEngines[] = {Engine::kOpenVino, Engine::kOpenVinoF32, Engine::kOnnxRuntime,
                               Engine::kOpenVinoHetero, Engine::kOpenVinoAuto};

BenchRow model_row(const std::string& instance, const std::string& metric, const std::string& unit,
                   double value) {
  return bench_row("core", instance, "auto", metric, unit, value);
}

// Says which model the work of the moment is about.
class ModelProgress final : public ProgressSink {
 public:
  ModelProgress(ProgressSink* inner, std::string name) : inner_(inner), name_(std::move(name)) {}
  void report(const ProgressUpdate& update) override {
    ProgressUpdate named = update;
    named.what = name_ + ": " + update.what;
    inner_->report(named);
  }
  void finish() override { inner_->finish(); }

 private:
  ProgressSink* inner_;
  std::string name_;
};

struct ModelOutcome {
  // |measured - predicted| / predicted in percent: the segments timed in turns with the requests, and against
  // the profile taken before.
  std::vector<double> errors, profile_errors;
  std::vector<double> latency_ratios, branching_ratios;
};

// A model in which some op has company: another op that neither feeds it nor reads from it, with real work.
bool branches(const Graph& graph) {
  const auto path = longest_paths(
      graph, [&](OpId v) { return graph.op(v).flops; }, [](const Edge&) { return 0.0; });
  return path.length > 0 && graph.total_flops() > 1.15 * path.length;
}

Status bench_objective(const BenchModel& model, Objective kind, const BenchOptions& options,
                       const Control& control, std::vector<BenchRow>& rows, ModelOutcome& outcome) {
  const std::string objective = objective_name(kind);
  ProblemSettings settings;
  settings.objective = kind;
  settings.store = options.store;
  SearchSettings search;
  search.time_limit_s = 1;
  search.seed = static_cast<uint64_t>(options.seed);
  HEDDLE_ASSIGN_OR_RETURN(auto session, open_session(model.source(), settings, control));
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, make_plan(session, "auto", search, control));
  const bool throughput = kind == Objective::kThroughput;
  RunOptions run_options;
  run_options.warmups = 5;
  run_options.repeats = static_cast<int>(std::clamp(1e6 / plan.value_us, 20.0, 200.0));
  run_options.in_flight = throughput ? 4 : 1;
  run_options.deadline = Deadline::never(control.cancel);
  run_options.progress = control.progress;
  HEDDLE_ASSIGN_OR_RETURN(const auto run,
                          run_plan(session.problem, plan.plan, session.loaded.model, run_options));
  if (run.verified && !run.outputs_equal)
    return Error(Code::kInternal, model.name + ": outputs differ from the unsplit model's");
  RoundOptions rounds;
  rounds.deadline = run_options.deadline;
  rounds.progress = control.progress;
  HEDDLE_ASSIGN_OR_RETURN(const auto recheck,
                          recheck_prediction(session.problem, plan.plan, session.loaded.model, rounds));
  HEDDLE_ASSIGN_OR_RETURN(const auto versus, compare_with_engines(session.problem, plan.plan,
                                                                  session.loaded.model, kEngines, rounds));

  auto measured = model_row(model.name, objective, "us", run.measured_us);
  measured.beside("by profile", plan.value_us);
  rows.push_back(measured);
  auto in_turns = model_row(model.name, objective + " in turns", "us", recheck.measured_us);
  in_turns.beside("in turns", recheck.predicted_us);
  rows.push_back(in_turns);
  rows.push_back(model_row(model.name, objective + " error", "%", 100 * recheck.error));
  if (!throughput) {
    outcome.errors.push_back(100 * std::fabs(recheck.error));
    outcome.profile_errors.push_back(100 * std::fabs(run.measured_us - plan.value_us) / plan.value_us);
  }
  double ratio = 0;  // to the fastest engine as it comes
  for (const EngineComparison& engine : versus.engines) {
    if (!engine.absent.empty()) continue;
    const std::string name = engine_name(engine.engine);
    auto against = model_row(model.name, objective + ", beside " + name, "us", versus.ours_us);
    against.beside(name, engine.us);
    rows.push_back(against);
    if (engine.engine == Engine::kOpenVinoF32) continue;
    ratio = std::max(ratio, engine.ratio);
    rows.push_back(model_row(model.name, objective + ", error of " + name, "", engine.error.largest));
  }
  auto fastest = model_row(model.name, objective + " ratio", "", ratio);
  fastest.against(throughput ? 1.0 : 1.02, "target");
  rows.push_back(fastest);
  if (!throughput) {
    outcome.latency_ratios.push_back(ratio);
  } else if (branches(*session.loaded.graph)) {
    outcome.branching_ratios.push_back(ratio);
  }
  return {};
}

// The nearest rank, not below: the targets are of single models.
double ranked(std::vector<double> v, double q) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v[std::min(v.size() - 1, static_cast<size_t>(q * static_cast<double>(v.size())))];
}

void add_target(std::vector<BenchRow>& rows, const std::string& metric, const std::string& unit, double value,
                double target) {
  auto r = model_row("all models", metric, unit, value);
  r.against(target, "target");
  rows.push_back(r);
}

}  // namespace

Result<std::vector<BenchRow>> bench_core_models(const BenchOptions& options, const Control& control) {
  HEDDLE_ASSIGN_OR_RETURN(const auto models, find_models(options));
  std::vector<BenchRow> rows;
  ModelOutcome outcome;
  for (size_t m = 0; m < models.size(); ++m) {
    const auto& model = models[m];
    for (const Objective objective : {Objective::kLatency, Objective::kThroughput}) {
      ModelProgress named(control.progress, std::to_string(m + 1) + "/" + std::to_string(models.size()) +
                                                " " + model.name + ", " + objective_name(objective));
      Control inside = control;
      if (control.progress != nullptr) inside.progress = &named;
      auto status = bench_objective(model, objective, options, inside, rows, outcome);
      // Ctrl-C: what was measured so far is the answer.
      if (control.cancel.cancelled()) break;
      if (!status.ok()) return std::move(status).error().with_context(model.name);
    }
    if (control.cancel.cancelled()) break;
  }
  add_target(rows, "error, median", "%", median_us(outcome.errors), 5);
  add_target(rows, "error, 90 %", "%", ranked(outcome.errors, 0.9), 15);
  add_target(rows, "error, largest", "%", ranked(outcome.errors, 1), 15);
  rows.push_back(model_row("all models", "error by profile, median", "%", median_us(outcome.profile_errors)));
  rows.push_back(model_row("all models", "error by profile, max", "%", ranked(outcome.profile_errors, 1)));
  add_target(rows, "latency ratio, largest", "", ranked(outcome.latency_ratios, 1), 1.02);
  add_target(rows, "branching throughput, max", "", ranked(outcome.branching_ratios, 1), 1.0);
  return rows;
}

}  // namespace heddle::bench
