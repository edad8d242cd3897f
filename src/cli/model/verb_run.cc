// heddle run: executes a plan, compares its outputs with the unsplit model's and its times with the
// prediction.
#include <algorithm>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/command/rank_verb.h"
#include "heddle/report/adaptive_text.h"
#include "heddle/report/run_file.h"
#include "heddle/report/run_tables.h"
#include "heddle/report/timeline_view.h"
#include "heddle/runtime/rank_run.h"
#include "heddle/runtime/recheck.h"
#include "heddle/runtime/run.h"
#include "heddle/session/adaptive.h"
#include "heddle/session/rank_plan.h"
#include "model_flags.h"
#include "run_cold.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

// The model may be a plan file, too.
struct RunVerbOptions : PlanningFlags {
  std::string planner = "auto";
  std::vector<std::string> inputs;
  std::optional<int> repeats;
  int in_flight = 0;  // 0: by the plan's objective
  RunOptions run;     // of the flags whose value is the option
  bool recheck = false, real_transfers = false, adapt = false;
  std::string versus, rank_devices;
  std::string trace, output, plan_output, save_tensors;
  ColdFlags cold;
  RobustFlag robust;
};

// A plan that was read or made here; its devices have no ranks yet.
Result<RankPlan> from_plan_file(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(auto file, read_plan_or_run(path));
  HEDDLE_ASSIGN_OR_RETURN(auto model, load_model_of(file.plan.problem, path));
  return RankPlan{std::move(file.plan), std::move(model), {}};
}

bool is_plan_path(const std::string& path) {
  if (!path.ends_with(".json")) return false;
  auto json = read_json_file(path);
  // Plans and runs hold a problem; a graph file does not. The plan reader reports malformed JSON.
  return !json.ok() || !json->is_object() || json->contains("plan");
}

Result<RankPlan> prepare(RunVerbOptions& o, const Invocation& invocation) {
  if (is_plan_path(o.model.spec.path)) {
    if (o.robust.share > 0)
      return invalid_input("--robust is for planning; " + o.model.spec.path + " is a plan already");
    return from_plan_file(o.model.spec.path);
  }
  HEDDLE_RETURN_IF_ERROR(check_planner(o.planner));
  HEDDLE_ASSIGN_OR_RETURN(auto session, o.open(invocation));
  HEDDLE_ASSIGN_OR_RETURN(const auto result, o.robust.plan(session, o.planner, o.search, invocation));
  return RankPlan{plan_file(session.problem, result, o.search.seed), session.loaded.model, {}};
}

// "NAME=FILE", or "FILE" for the only input.
Result<std::map<std::string, std::string>> input_files(const std::vector<std::string>& flags) {
  std::map<std::string, std::string> files;
  for (const auto& flag : flags) {
    const auto eq = flag.find('=');
    const auto name = eq == std::string::npos ? "" : flag.substr(0, eq);
    const auto path = eq == std::string::npos ? flag : flag.substr(eq + 1);
    if (!files.emplace(name, path).second)
      return invalid_input("--input " + flag + ": that input was given twice");
  }
  return files;
}

// "openvino,onnxruntime"; none from "".
Result<std::vector<Engine>> engines_of(const std::string& flag) {
  std::vector<Engine> engines;
  for (const std::string& name : split_list(flag)) {
    const auto engine = engine_named(name);
    if (!engine)
      return unknown_name("--versus", name,
                          {engine_name(Engine::kOpenVino), engine_name(Engine::kOpenVinoF32),
                           engine_name(Engine::kOnnxRuntime), engine_name(Engine::kOpenVinoHetero),
                           engine_name(Engine::kOpenVinoAuto)});
    if (std::find(engines.begin(), engines.end(), *engine) != engines.end())
      return invalid_input("--versus " + flag + ": '" + name + "' was given twice");
    engines.push_back(*engine);
  }
  return engines;
}

constexpr int kUsualColdStarts = 3;

Result<int> run_cold_plan(const RunVerbOptions& o, const Invocation& invocation) {
  if (const char* flag = first_given({{"--in-flight", o.in_flight > 1},
                                      {"--recheck", o.recheck},
                                      {"--robust", o.robust.share > 0},
                                      {"--adapt", o.adapt},
                                      {"--trace", !o.trace.empty()},
                                      {"--save-tensors", !o.save_tensors.empty()},
                                      {"-o", !o.output.empty()}}))
    return invalid_input(std::string("--cold and ") + flag + " exclude each other");
  HEDDLE_RETURN_IF_ERROR(check_output(o.plan_output));
  ColdJob job;
  job.model = o.model;
  job.problem = o.problem;
  job.is_plan = is_plan_path(o.model.spec.path);
  job.plan_output = o.plan_output;
  HEDDLE_ASSIGN_OR_RETURN(job.settings.inputs.files, input_files(o.inputs));
  job.settings.inputs.seed = o.search.seed;
  job.settings.repeats = o.repeats.value_or(kUsualColdStarts);
  HEDDLE_ASSIGN_OR_RETURN(const auto engines, engines_of(o.versus));
  const bool known =
      engines.size() == 1 && (engines[0] == Engine::kOpenVino || engines[0] == Engine::kOpenVinoF32);
  if (!engines.empty() && !known)
    return invalid_input("--versus " + o.versus +
                         ": --cold is compared with one of openvino and openvino-f32");
  if (known) job.settings.versus = engines[0];
  job.settings.rtol = o.run.rtol;
  job.settings.atol = o.run.atol;
  job.settings.verify = o.run.verify;
  return run_cold_verb(o.cold, std::move(job), invocation);
}

// The measurements of `run`, for files and standard output.
struct Report {
  const PlanFile& file;
  const RunRecord& run;
  std::optional<Recheck> recheck;
  std::optional<Comparison> comparison;
  std::optional<Recheck> cause;         // of a prediction that is off, if --recheck was not given
  const RunTensors* tensors = nullptr;  // null: not to be saved
};

Result<int> give_report(const RunVerbOptions& o, const Report& r, const Invocation& invocation) {
  const auto& file = r.file;
  HEDDLE_ASSIGN_OR_RETURN(const auto timeline, evaluate(file.problem, file.plan));
  if (!o.plan_output.empty()) HEDDLE_RETURN_IF_ERROR(write_plan_file(o.plan_output, file));
  if (!o.output.empty()) HEDDLE_RETURN_IF_ERROR(write_run_file(o.output, {file, r.run}));
  if (!o.trace.empty()) {
    const auto view = make_timeline_view(file.problem, file.plan, timeline, file.bound, file.planner, &r.run);
    HEDDLE_RETURN_IF_ERROR(write_file_atomic(o.trace, timeline_trace_json(view)));
  }
  auto json = run_json(file, timeline, r.run);
  auto text = run_text(file, timeline, r.run);
  if (r.cause) {
    json["off_because"] = off_because_json(*r.cause);
    text += off_because_text(*r.cause);
  }
  if (r.recheck) {
    json["recheck"] = recheck_json(*r.recheck);
    text += recheck_text(*r.recheck);
  }
  if (r.comparison) {
    json["versus"] = comparison_json(*r.comparison);
    text += comparison_text(*r.comparison, file.problem.objective);
  }
  if (r.tensors != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(const auto files, save_tensors(*r.tensors, o.save_tensors));
    json["tensors"] = {{"folder", o.save_tensors}, {"files", files}};
    text += "tensors of a request are in " + o.save_tensors + ": " + join_names(files, 8) + "\n";
  }
  for (const auto* path : {&o.plan_output, &o.output, &o.trace}) {
    if (!path->empty()) text += "written to " + *path + "\n";
  }
  show_result(invocation, json, text);
  return r.run.wrong() ? kExitNo : kExitDone;
}

// What the error of narrower types is measured on: the run's own inputs if the user gave some, else calibration inputs.
Status add_samples(const RunVerbOptions& o, const Model* model, RunOptions& options) {
  CalibrationOptions calibration;
  calibration.seed = o.search.seed;
  HEDDLE_RETURN_IF_ERROR(o.problem.calibration.settings(calibration, options.decisions));
  const bool own_inputs = !o.inputs.empty() && calibration.folder.empty();
  if (model == nullptr) return {};
  HEDDLE_RETURN_IF_ERROR(check_decisions(*model->graph(), options.decisions));
  if (own_inputs) return {};
  HEDDLE_ASSIGN_OR_RETURN(options.samples, calibration_inputs(*model, calibration));
  return {};
}

Result<RunOptions> run_options(const RunVerbOptions& o, const Invocation& invocation) {
  RunOptions options = o.run;
  HEDDLE_ASSIGN_OR_RETURN(options.inputs.files, input_files(o.inputs));
  options.inputs.seed = o.search.seed;
  for (const auto* path : {&o.plan_output, &o.output, &o.trace, &o.save_tensors})
    HEDDLE_RETURN_IF_ERROR(check_output(*path));
  options.repeats = o.repeats.value_or(options.repeats);
  options.deadline = invocation.deadline();
  options.progress = invocation.progress;
  return options;
}

// Options of what is measured beside the run.
RoundOptions beside(const RunOptions& run) {
  RoundOptions options;
  options.inputs = run.inputs;
  options.in_flight = run.in_flight;
  options.deadline = run.deadline;
  options.progress = run.progress;
  return options;
}

// Finds out why the prediction is off. Costs under a second and the engine's compilation of the segments.
std::optional<Recheck> cause_of_error(const RankPlan& prepared, const RunRecord& run,
                                      const RunOptions& options) {
  if (!is_off(run) || options.deadline.cancelled()) return std::nullopt;
  RoundOptions rounds = beside(options);
  rounds.rounds = 5;
  rounds.round_s = 0.05;
  auto cause = recheck_prediction(prepared.file.problem, prepared.file.plan, prepared.model, rounds);
  // Emulated devices, for one, have no segments to time.
  return cause.ok() ? std::optional<Recheck>(*cause) : std::nullopt;
}

// What Ctrl-C left unmeasured is left out, so that what was measured before it is not lost.
template <class T>
Result<std::optional<T>> unless_cancelled(Result<T> measured) {
  if (measured.ok()) return std::optional<T>(std::move(*measured));
  if (measured.error().code() == Code::kCancelled) return std::optional<T>();
  return measured.error();
}

int requests_in_flight(const RunVerbOptions& o, const Problem& problem) {
  if (o.in_flight > 0) return o.in_flight;
  return problem.objective == Objective::kThroughput ? 4 : 1;
}

constexpr int kUsualAdaptiveRequests = 200;

Result<int> run_adapting(const RunVerbOptions& o, const Invocation& invocation) {
  if (const char* flag = first_given({{"--in-flight", o.in_flight > 1},
                                      {"--recheck", o.recheck},
                                      {"--robust", o.robust.share > 0},
                                      {"--versus", !o.versus.empty()},
                                      {"--trace", !o.trace.empty()},
                                      {"--save-tensors", !o.save_tensors.empty()},
                                      {"--plan-output", !o.plan_output.empty()},
                                      {"-o", !o.output.empty()}}))
    return invalid_input(std::string("--adapt and ") + flag + " exclude each other");
  if (is_plan_path(o.model.spec.path))
    return invalid_input("--adapt makes several plans of a model; " + o.model.spec.path + " is one plan");
  HEDDLE_RETURN_IF_ERROR(check_planner(o.planner));
  HEDDLE_ASSIGN_OR_RETURN(auto options, run_options(o, invocation));
  options.repeats = o.repeats.value_or(kUsualAdaptiveRequests);
  HEDDLE_ASSIGN_OR_RETURN(auto session, o.open(invocation));
  if (session.loaded.model == nullptr || session.problem.objective != Objective::kLatency)
    return invalid_input("--adapt is for a real model and the objective latency");
  HEDDLE_ASSIGN_OR_RETURN(const auto plans, plans_for_free_cores(session, o.planner, o.search, invocation));
  HEDDLE_ASSIGN_OR_RETURN(const auto run, run_adaptive(session, plans, options, invocation));
  show_result(invocation, adaptive_shown(plans, run));
  return run.right ? kExitDone : kExitNo;
}

Result<RankRunOptions> rank_options(const RunVerbOptions& o, const Invocation& invocation) {
  HEDDLE_RETURN_IF_ERROR(o.cold.check());
  if (const char* flag = first_given({{"--cold", o.cold.cold},
                                      {"--adapt", o.adapt},
                                      {"--recheck", o.recheck},
                                      {"--save-tensors", !o.save_tensors.empty()},
                                      {"--versus", !o.versus.empty()}}))
    return invalid_input(std::string(flag) + ": not over several ranks; start Heddle without mpirun");
  RankRunOptions options;
  HEDDLE_ASSIGN_OR_RETURN(options.run, run_options(o, invocation));
  CalibrationOptions samples;  // of which several ranks take none
  HEDDLE_RETURN_IF_ERROR(o.problem.calibration.settings(samples, options.run.decisions));
  options.real_transfers = o.real_transfers;
  return options;
}

// Called on every rank; only rank 0 reports.
Result<int> run_on_ranks(RunVerbOptions& o, RankRunOptions options, RankGroup& group,
                         const Invocation& invocation) {
  Result<RankPlan> own = RankPlan();
  if (group.rank() == 0) own = prepare(o, invocation);
  if (own.ok() && own->model) {
    const Status known = check_decisions(*own->model->graph(), options.run.decisions);
    if (!known.ok()) own = known.error();
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto shared,
                          share_plan(group, std::move(own), o.model.spec.path, o.rank_devices));
  options.rank_of_device = shared.rank_of_device;
  options.run.in_flight = requests_in_flight(o, shared.file.problem);
  auto run = run_plan_on_ranks(group, shared.file.problem, shared.file.plan, shared.model, options);
  if (!run.ok()) return failed_on_ranks(run.error());
  if (group.rank() != 0) return kExitDone;
  return give_report(o, {shared.file, *run, std::nullopt, std::nullopt, std::nullopt, nullptr}, invocation);
}

Result<int> run_run(RunVerbOptions o, const Invocation& invocation) {
  while (o.save_tensors.size() > 1 && o.save_tensors.ends_with('/')) o.save_tensors.pop_back();
  if (rank_environment().size > 1) {
    auto options = rank_options(o, invocation);
    return run_verb_on_ranks(
        invocation, options.ok() ? Status() : Status(options.error()),
        [&](RankGroup& group) { return run_on_ranks(o, std::move(*options), group, invocation); });
  }
  HEDDLE_RETURN_IF_ERROR(o.cold.check());
  if (const char* flag =
          first_given({{"--rank-devices", !o.rank_devices.empty()}, {"--real-transfers", o.real_transfers}}))
    return invalid_input(std::string(flag) +
                         " is for several ranks: start Heddle as mpirun -n N heddle run ...");
  if (o.cold.cold) return run_cold_plan(o, invocation);
  if (o.adapt) return run_adapting(o, invocation);
  HEDDLE_ASSIGN_OR_RETURN(const auto engines, engines_of(o.versus));
  HEDDLE_ASSIGN_OR_RETURN(auto options, run_options(o, invocation));
  HEDDLE_ASSIGN_OR_RETURN(const auto prepared, prepare(o, invocation));
  const auto& file = prepared.file;
  options.in_flight = requests_in_flight(o, file.problem);
  HEDDLE_RETURN_IF_ERROR(add_samples(o, prepared.model.get(), options));
  RunTensors tensors;
  if (!o.save_tensors.empty()) {
    HEDDLE_RETURN_IF_ERROR(prepare_saving(*file.problem.graph, o.save_tensors));
    options.tensors = &tensors;
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto run, run_plan(file.problem, file.plan, prepared.model, options));
  Report report{file, run, std::nullopt, std::nullopt, std::nullopt, options.tensors};
  if (o.recheck) {
    HEDDLE_ASSIGN_OR_RETURN(report.recheck, unless_cancelled(recheck_prediction(
                                                file.problem, file.plan, prepared.model, beside(options))));
  } else {
    report.cause = cause_of_error(prepared, run, options);
  }
  if (!engines.empty()) {
    if (!prepared.model) return invalid_input("--versus needs a real model; this plan has none");
    HEDDLE_ASSIGN_OR_RETURN(report.comparison,
                            unless_cancelled(compare_with_engines(file.problem, file.plan, prepared.model,
                                                                  engines, beside(options))));
  }
  return give_report(o, report, invocation);
}

}  // namespace

RunFn setup_run(Command& command) {
  auto o = std::make_shared<RunVerbOptions>();
  o->declare(command);
  command.option("--planner", o->planner, "for a MODEL: one of `heddle planners` (default auto)");
  command.list("--input", o->inputs,
               "NAME=FILE (.npy, or a .ppm picture); FILE alone for the only input; else random");
  command.option("--repeat", o->repeats,
                 "measured runs (default 20; --adapt: requests, 200; --cold: starts, 3)", 1, 10'000'000);
  command.option("--warmup", o->run.warmups, "warm-up runs before them (default 3)", 0, 1'000'000);
  command.option("--in-flight", o->in_flight, "requests at once (default: 1, throughput plans 4)", 1, 4096);
  command.option("--rtol", o->run.rtol, "relative tolerance of the comparison (default 1e-3)", 0, 1);
  command.option("--atol", o->run.atol, "absolute tolerance of the comparison (default 1e-5)", 0, 1e6);
  command.switch_off("--no-verify", o->run.verify, "do not compare outputs with the unsplit model");
  command.flag("--recheck", o->recheck,
               "measure the segments again, alternating with requests, to check the prediction under "
               "today's conditions");
  command.option(
      "--versus", o->versus,
      "also time engines that run the whole model alone, in turns with the plan: openvino and onnxruntime "
      "as they come, openvino-f32, openvino-hetero, openvino-auto (comma-separated)");
  command.option("--trace", o->trace, "write a Chrome/Perfetto trace, predicted and measured");
  command.option("-o,--output", o->output, "write the run (for `heddle report`)");
  command.option("--plan-output", o->plan_output, "for a MODEL: write the plan too");
  command.option(
      "--save-tensors", o->save_tensors,
      "write the inputs and outputs of a request into this folder: input_0.npy, ..., output_0.npy, ...");
  command.option("--rank-devices", o->rank_devices,
                 "under mpirun: the devices of each rank, A,B;C (default: by host, docs/hosts.md)");
  command.flag("--real-transfers", o->real_transfers,
               "under mpirun: send tensors even between emulated devices");
  o->robust.declare(command);
  command.flag(
      "--adapt", o->adapt,
      "prepare plans for few and for many free cores, and change between them by the times that they take");
  o->cold.declare(command);
  return [o](const Invocation& invocation) { return run_run(*o, invocation); };
}

}  // namespace heddle::cli
