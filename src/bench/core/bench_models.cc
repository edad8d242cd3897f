// Real models: is the prediction true, is the plan at least as fast as engines alone, and what do types cost?
#include <algorithm>
#include <cmath>

#include "bench_busy.h"
#include "heddle/base/quantiles.h"
#include "heddle/base/units.h"
#include "heddle/graph/analysis.h"
#include "heddle/runtime/recheck.h"
#include "heddle/runtime/run.h"
#include "heddle/session/session.h"
#include "suites.h"

namespace heddle::bench {
namespace {

// OpenVINO a second time shows how far two copies of one engine lie apart.
constexpr Engine kEngines[] = {Engine::kOpenVino,       Engine::kOpenVinoF32,  Engine::kOnnxRuntime,
                               Engine::kOpenVinoHetero, Engine::kOpenVinoAuto, Engine::kOpenVino};

// How plans choose their types.
struct Choice {
  const char* name;
  VariantSettings variants;
};
bool is_auto(const Choice& choice) { return std::string_view(choice.name) == "auto"; }
std::vector<Choice> precision_choices() {
  Choice f32{"f32", {}}, budget{"budget", {}};
  f32.variants.precisions = {"f32"};
  budget.variants.budget = ErrorBudget();
  return {{"auto", {}}, std::move(f32), std::move(budget)};
}

BenchRow model_row(const std::string& instance, const std::string& metric, const std::string& unit,
                   double value) {
  return bench_row("models", instance, "auto", metric, unit, value);
}

// The time of the import; a model that is refused has a row with the reason.
Result<bool> add_load(const BenchModel& model, std::vector<BenchRow>& rows) {
  const Stopwatch watch;
  const auto loaded = load_model(model.source());
  if (!loaded.ok() && loaded.error().code() == Code::kNotFound) return loaded.error();
  const std::string what = loaded.ok() ? "loads" : "is refused: " + loaded.error().to_string();
  rows.push_back(model_row(model.name, what, "s", watch.seconds()));
  return loaded.ok();
}

struct ModelOutcome {
  // |measured - predicted| / predicted in percent, of the choice auto for latency: with segments timed in turns with
  // the requests, and against the profile taken before.
  std::vector<double> errors, profile_errors;
  std::vector<double> latency_ratios, throughput_ratios, branching_ratios;
  std::vector<double> excess;    // of auto's mean error over that of OpenVINO as it comes
  std::vector<double> speedups;  // of a budget over f32, latency
  int budgets = 0, budgets_kept = 0;
};

// A model in which some op has company: another op that neither feeds it nor reads from it, with real work.
bool branches(const Graph& graph) {
  const auto path = longest_paths(
      graph, [&](OpId v) { return graph.op(v).flops; }, [](const Edge&) { return 0.0; });
  return path.length > 0 && graph.total_flops() > 1.15 * path.length;
}

struct Measured {
  double us = 0, wide_us = 0;  // in turns with OpenVINO in float32, and the time of that
  OutputError error;
  bool branching = false, plans = true;
};

void add_errors(const std::string& model, const std::string& what, const OutputError& error,
                std::vector<BenchRow>& rows) {
  rows.push_back(model_row(model, what + " largest error", "of range", error.largest()));
  rows.push_back(model_row(model, what + " mean error", "of range", error.mean()));
  if (error.decisions() > 0)
    rows.push_back(model_row(model, what + " agreement", "%", 100 * error.agreement()));
}

// Of auto: what a user has from the engines.
void add_ratios(const BenchModel& model, const std::string& what, bool throughput, const Comparison& versus,
                const Measured& measured, std::vector<BenchRow>& rows, ModelOutcome& outcome) {
  double ratio = 0;  // to the fastest engine as it comes; 0: none is there
  const auto& first = versus.engines.front();
  const auto& again = versus.engines.back();
  if (first.absent.empty() && again.absent.empty())
    rows.push_back(model_row(model.name, what + ", openvino's second copy / first", "", again.us / first.us));
  for (const EngineComparison& engine : versus.engines) {
    if (!engine.absent.empty() || &engine == &again) continue;
    const std::string name = engine_name(engine.engine);
    auto against = model_row(model.name, what + ", beside " + name, "us", versus.ours_us);
    against.beside(name, engine.us);
    rows.push_back(against);
    if (engine.engine == Engine::kOpenVinoF32) continue;
    ratio = std::max(ratio, engine.ratio);
    if (throughput) continue;
    add_errors(model.name, name, engine.error, rows);
    if (engine.engine == Engine::kOpenVino)
      outcome.excess.push_back(measured.error.mean() - engine.error.mean());
  }
  if (ratio == 0) return;  // no engine is there
  auto fastest = model_row(model.name, what + " ratio", "", ratio);
  fastest.against(1.02, "target");
  rows.push_back(fastest);
  (throughput ? outcome.throughput_ratios : outcome.latency_ratios).push_back(ratio);
  if (throughput && measured.branching) outcome.branching_ratios.push_back(ratio);
}

Result<Measured> bench_choice(const BenchModel& model, Objective kind, const Choice& choice,
                              const BenchOptions& options, const Control& control,
                              std::vector<BenchRow>& rows, ModelOutcome& outcome) {
  const bool throughput = kind == Objective::kThroughput, usual = is_auto(choice);
  const std::string what = std::string(objective_name(kind)) + " " + choice.name;
  ProblemSettings settings;
  settings.objective = kind;
  settings.store = options.store;
  settings.variants = choice.variants;
  SearchSettings search;
  search.time_limit_s = 1;
  search.seed = static_cast<uint64_t>(options.seed);
  HEDDLE_ASSIGN_OR_RETURN(auto session, open_session(model.source(), settings, control));
  const auto planned = make_plan(session, "auto", search, control);
  Measured measured;
  measured.branching = branches(*session.loaded.graph);
  if (!planned.ok() && planned.error().code() == Code::kInfeasible && choice.variants.budget) {
    measured.plans = false;
    return measured;
  }
  if (!planned.ok()) return planned.error();
  const PlanResult& plan = *planned;
  RunOptions run_options;
  run_options.warmups = 5;
  run_options.repeats = static_cast<int>(std::clamp(1e6 / plan.value_us, 20.0, 200.0));
  run_options.in_flight = throughput ? 4 : 1;
  run_options.deadline = Deadline::never(control.cancel);
  run_options.progress = control.progress;
  HEDDLE_ASSIGN_OR_RETURN(const auto run,
                          run_plan(session.problem, plan.plan, session.loaded.model, run_options));
  if (run.wrong()) return internal_error(model.name + ": outputs differ from the unsplit model's");
  if (run.precision) measured.error = run.precision->plan;
  RoundOptions rounds;
  rounds.deadline = run_options.deadline;
  rounds.progress = control.progress;
  HEDDLE_ASSIGN_OR_RETURN(const auto recheck,
                          recheck_prediction(session.problem, plan.plan, session.loaded.model, rounds));
  const std::span<const Engine> engines = kEngines;
  HEDDLE_ASSIGN_OR_RETURN(const auto versus,
                          compare_with_engines(session.problem, plan.plan, session.loaded.model,
                                               usual ? engines : engines.first(2), rounds));
  measured.us = versus.ours_us;
  measured.wide_us = versus.engines[1].us;

  auto by_profile = model_row(model.name, what, "us", run.measured_us);
  by_profile.beside("by profile", plan.value_us);
  rows.push_back(by_profile);
  auto in_turns = model_row(model.name, what + " in turns", "us", recheck.measured_us);
  in_turns.beside("in turns", recheck.predicted_us);
  rows.push_back(in_turns);
  if (!throughput && !usual && versus.engines.front().absent.empty()) {
    auto against = model_row(model.name, what + ", beside openvino", "us", versus.ours_us);
    against.beside("openvino", versus.engines.front().us);
    rows.push_back(against);
  }
  if (!throughput) add_errors(model.name, what, measured.error, rows);
  if (!usual) return measured;
  if (!throughput) {
    outcome.errors.push_back(100 * std::fabs(recheck.error));
    outcome.profile_errors.push_back(100 * std::fabs(run.measured_us - plan.value_us) / plan.value_us);
  }
  add_ratios(model, what, throughput, versus, measured, rows, outcome);
  return measured;
}

// Types are compared by latency; throughput is that of the default.
Status bench_objective(const BenchModel& model, Objective kind, const BenchOptions& options,
                       const Control& control, std::vector<BenchRow>& rows, ModelOutcome& outcome) {
  for (const Choice& choice : precision_choices()) {
    if (!wanted(options, choice.name) || (kind == Objective::kThroughput && !is_auto(choice))) continue;
    HEDDLE_ASSIGN_OR_RETURN(const auto measured,
                            bench_choice(model, kind, choice, options, control, rows, outcome));
    if (!choice.variants.budget) continue;
    ++outcome.budgets;
    outcome.budgets_kept += measured.plans;
    if (measured.plans && measured.wide_us > 0) {
      outcome.speedups.push_back(measured.wide_us / measured.us);
      rows.push_back(
          model_row(model.name, "latency openvino-f32 / budget", "", measured.wide_us / measured.us));
    }
  }
  return {};
}

using Samples = std::vector<double>;

void add_target(std::vector<BenchRow>& rows, const std::string& metric, const std::string& unit, double value,
                double target) {
  auto r = model_row("all models", metric, unit, value);
  r.against(target, "target");
  rows.push_back(r);
}

// Without a sample nothing is known, so there is no row.
void add_largest(std::vector<BenchRow>& rows, const std::string& metric, const std::string& unit,
                 const Samples& samples, std::optional<double> target) {
  if (samples.empty()) return;
  auto r = model_row("all models", metric, unit, *std::ranges::max_element(samples));
  r.against(target, "target");
  rows.push_back(r);
}

void add_median(std::vector<BenchRow>& rows, const std::string& metric, const Samples& samples,
                double target) {
  if (!samples.empty()) add_target(rows, metric, "%", median_us(samples), target);
}

}  // namespace

Status bench_models(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  ModelOutcome outcome;
  BusyRatios busy;
  int models = 0, loaded = 0;
  HEDDLE_RETURN_IF_ERROR(for_each_model(options, control, rows, [&](const BenchModel& model) -> Status {
    ++models;
    HEDDLE_ASSIGN_OR_RETURN(const bool loads, add_load(model, rows));
    loaded += loads;
    if (!loads) return {};
    const auto part = [&](const std::string& what, const auto& run) -> Status {
      NamedProgress named(control.progress, model.place + " " + model.name + ", " + what);
      Control inside = control;
      if (control.progress != nullptr) inside.progress = &named;
      return run(inside);
    };
    for (const Objective objective : {Objective::kLatency, Objective::kThroughput})
      HEDDLE_RETURN_IF_ERROR(part(objective_name(objective), [&](const Control& inside) {
        return bench_objective(model, objective, options, inside, rows, outcome);
      }));
    if (!wanted(options, "busy")) return {};
    return part("busy",
                [&](const Control& inside) { return bench_busy(model, options, inside, rows, busy); });
  }));
  add_target(rows, "models that load", "", loaded, models);
  add_median(rows, "error in turns, median", outcome.errors, 3);
  add_median(rows, "error by profile, median", outcome.profile_errors, 5);
  add_largest(rows, "error in turns, largest", "%", outcome.errors, std::nullopt);
  add_largest(rows, "error by profile, largest", "%", outcome.profile_errors, std::nullopt);
  add_largest(rows, "latency ratio, largest", "", outcome.latency_ratios, 1.02);
  add_largest(rows, "throughput ratio, largest", "", outcome.throughput_ratios, 1.02);
  add_largest(rows, "branching throughput, largest", "", outcome.branching_ratios, 1.0);
  add_largest(rows, "mean error over OpenVINO's, largest", "of range", outcome.excess, 0);
  for (size_t count = 0; count < busy.size(); ++count) {
    const std::string with = with_neighbours(count);
    add_largest(rows, with + "median / better engine, largest", "", busy[count].median, 1.05);
    add_largest(rows, with + "95th percentile / better engine, largest", "", busy[count].p95, 1.1);
  }
  if (outcome.budgets > 0) add_target(rows, "budgets kept", "", outcome.budgets_kept, outcome.budgets);
  double log_sum = 0;
  for (const double s : outcome.speedups) log_sum += std::log(s);
  if (!outcome.speedups.empty())
    add_target(rows, "openvino-f32 / budget, geometric mean", "",
               std::exp(log_sum / static_cast<double>(outcome.speedups.size())), 2);
  return {};
}

}  // namespace heddle::bench
