// heddle run: execute, verify against the unsplit model, and set what was measured beside what was predicted.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/report/run_file.h"
#include "heddle/report/run_tables.h"
#include "heddle/report/timeline_view.h"
#include "heddle/runtime/rank_run.h"
#include "heddle/runtime/recheck.h"
#include "heddle/runtime/run.h"
#include "model_flags.h"
#include "run_cold.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct RunVerbOptions {
  ModelFlags model;  // its positional may be a plan file too
  ProblemFlags problem;
  SearchFlags search;
  std::string planner = "auto";
  std::vector<std::string> inputs;
  std::optional<int64_t> repeats;
  int64_t warmups = 3, in_flight = 0;
  double rtol = 1e-3, atol = 1e-5;
  bool no_verify = false, versus = false, recheck = false, real_transfers = false;
  std::string rank_devices;
  std::string trace, output, plan_output;
  ColdFlags cold;
};

struct Prepared {
  PlanFile file;
  std::shared_ptr<const Model> model;  // null when the plan has none
};

Result<Prepared> from_plan_file(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const auto json, read_json_file(path));
  Prepared prepared;
  if (is_run_json(json)) {
    auto run = run_from_json(JsonCursor(json));
    if (!run.ok()) return std::move(run).error().with_context(path);
    prepared.file = std::move(run->plan);
  } else {
    auto plan = plan_from_json(JsonCursor(json));
    if (!plan.ok()) return std::move(plan).error().with_context(path);
    prepared.file = std::move(plan).value();
  }
  HEDDLE_ASSIGN_OR_RETURN(prepared.model, load_model_of(prepared.file.problem, path));
  return prepared;
}

bool is_plan_path(const std::string& path) {
  if (!path.ends_with(".json")) return false;
  auto json = read_json_file(path);
  // Plans and runs hold a problem; a graph file does not. What is no JSON is reported by the plan reader.
  return !json.ok() || !json->is_object() || json->contains("plan");
}

Result<Prepared> prepare(RunVerbOptions& o, const Invocation& invocation) {
  if (is_plan_path(o.model.model)) return from_plan_file(o.model.model);
  HEDDLE_RETURN_IF_ERROR(check_planner(o.planner));
  HEDDLE_ASSIGN_OR_RETURN(auto session, open_session(o.model, o.problem, invocation));
  const auto search = o.search.settings();
  HEDDLE_ASSIGN_OR_RETURN(const auto result, make_plan(session, o.planner, search, invocation));
  return Prepared{plan_file(session.problem, result, search.seed), session.loaded.model};
}

// "NAME=FILE", or "FILE" for the only input.
Result<std::map<std::string, std::string>> input_files(const std::vector<std::string>& flags) {
  std::map<std::string, std::string> files;
  for (const auto& flag : flags) {
    const auto eq = flag.find('=');
    const auto name = eq == std::string::npos ? "" : flag.substr(0, eq);
    const auto path = eq == std::string::npos ? flag : flag.substr(eq + 1);
    if (!files.emplace(name, path).second)
      return Error(Code::kInvalidInput, "--input " + flag + ": that input was given twice");
  }
  return files;
}

constexpr int64_t kUsualRepeats = 20, kUsualColdStarts = 3;

Result<int> run_cold_plan(const RunVerbOptions& o, const Invocation& invocation) {
  const std::pair<const char*, bool> meaningless[] = {{"--in-flight", o.in_flight > 1},
                                                      {"--recheck", o.recheck},
                                                      {"--trace", !o.trace.empty()},
                                                      {"-o", !o.output.empty()}};
  for (const auto& [name, given] : meaningless) {
    if (given) return Error(Code::kInvalidInput, std::string("--cold and ") + name + " exclude each other");
  }
  HEDDLE_RETURN_IF_ERROR(check_output(o.plan_output));
  ColdJob job;
  job.model = o.model;
  job.problem = o.problem;
  job.is_plan = is_plan_path(o.model.model);
  job.plan_output = o.plan_output;
  HEDDLE_ASSIGN_OR_RETURN(job.settings.inputs.files, input_files(o.inputs));
  job.settings.inputs.seed = static_cast<uint64_t>(o.search.seed);
  job.settings.repeats = static_cast<int>(o.repeats.value_or(kUsualColdStarts));
  job.settings.versus = o.versus;
  job.settings.rtol = o.rtol;
  job.settings.atol = o.atol;
  job.settings.verify = !o.no_verify;
  return run_cold_verb(o.cold, std::move(job), invocation);
}

// What `run` measured and what was asked for beside it, to files and to standard output.
struct Report {
  const PlanFile& file;
  const RunRecord& run;
  std::optional<Recheck> recheck;
  std::optional<Comparison> comparison;
};

Result<int> give_report(const RunVerbOptions& o, const Report& r, const Invocation& invocation) {
  const auto& file = r.file;
  HEDDLE_ASSIGN_OR_RETURN(const auto timeline, evaluate(file.problem, file.plan));
  if (invocation.progress) invocation.progress->finish();
  if (!o.plan_output.empty()) HEDDLE_RETURN_IF_ERROR(write_plan_file(o.plan_output, file));
  if (!o.output.empty()) HEDDLE_RETURN_IF_ERROR(write_run_file(o.output, {file, r.run}));
  if (!o.trace.empty()) {
    const auto view = make_timeline_view(file.problem, file.plan, timeline, file.bound, file.planner, &r.run);
    HEDDLE_RETURN_IF_ERROR(write_file_atomic(o.trace, timeline_trace_json(view)));
  }
  if (invocation.json) {
    auto json = run_json(file, timeline, r.run);
    if (r.recheck) json["recheck"] = recheck_json(*r.recheck);
    if (r.comparison) json["versus_openvino"] = comparison_json(*r.comparison);
    std::printf("%s\n", json.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s", run_text(file, timeline, r.run).c_str());
    if (r.recheck) std::printf("%s", recheck_text(*r.recheck).c_str());
    if (r.comparison) std::printf("%s", comparison_text(*r.comparison, file.problem.objective).c_str());
    for (const auto* path : {&o.plan_output, &o.output, &o.trace}) {
      if (!path->empty()) std::printf("written to %s\n", path->c_str());
    }
  }
  return r.run.verified && !r.run.outputs_equal ? kExitNo : kExitDone;
}

Result<RunOptions> run_options(const RunVerbOptions& o, const Invocation& invocation) {
  RunOptions options;
  HEDDLE_ASSIGN_OR_RETURN(options.inputs.files, input_files(o.inputs));
  options.inputs.seed = static_cast<uint64_t>(o.search.seed);
  for (const auto* path : {&o.plan_output, &o.output, &o.trace}) HEDDLE_RETURN_IF_ERROR(check_output(*path));
  options.warmups = static_cast<int>(o.warmups);
  options.repeats = static_cast<int>(o.repeats.value_or(kUsualRepeats));
  options.rtol = o.rtol;
  options.atol = o.atol;
  options.verify = !o.no_verify;
  options.deadline = Deadline::never(invocation.cancel);
  options.progress = invocation.progress;
  return options;
}

int requests_in_flight(const RunVerbOptions& o, const Problem& problem) {
  if (o.in_flight > 0) return static_cast<int>(o.in_flight);
  return problem.objective == Objective::kThroughput ? 4 : 1;
}

// Whatever it was on the rank where it happened, for the user it is a run that failed.
Error failed_run(const Error& error) {
  const bool cancelled = error.code() == Code::kCancelled;
  return Error(cancelled ? Code::kCancelled : Code::kVerificationFailed, error.to_string());
}

// Rank 0 reads or makes the plan, and the others get it; each reads the model itself, where its devices need
// one.
Result<Prepared> prepare_on_ranks(RankGroup& group, RunVerbOptions& o, const Invocation& invocation,
                                  RankRunOptions& options) {
  Prepared prepared;
  Status own;
  if (group.rank() == 0) {
    auto made = prepare(o, invocation);
    if (made.ok())
      prepared = std::move(made).value();
    else
      own = std::move(made).error();
  }
  HEDDLE_RETURN_IF_ERROR(group.agree(own));
  HEDDLE_ASSIGN_OR_RETURN(const auto text,
                          group.broadcast(group.rank() == 0 ? plan_to_json(prepared.file).dump() : ""));
  HEDDLE_ASSIGN_OR_RETURN(const auto names, group.exchange(group.transport().host_name()));
  if (group.rank() != 0) {
    const auto json = parse_json(text);
    auto file = json.ok() ? plan_from_json(JsonCursor(*json)) : Result<PlanFile>(json.error());
    if (file.ok())
      prepared.file = std::move(file).value();
    else
      own = std::move(file).error();
  }
  HEDDLE_RETURN_IF_ERROR(group.agree(own));
  HEDDLE_ASSIGN_OR_RETURN(options.rank_of_device,
                          place_on_ranks(*prepared.file.problem.cluster, names, o.rank_devices));
  const auto& plan = prepared.file.plan;
  const bool computes = std::any_of(plan.segments.begin(), plan.segments.end(), [&](const Segment& s) {
    return options.rank_of_device[s.device.index()] == group.rank() &&
           prepared.file.problem.cluster->device(s.device).backend != "emulated";
  });
  Status read;
  if (group.rank() != 0 && computes) {
    auto model = load_model_of(prepared.file.problem, o.model.model);
    if (model.ok())
      prepared.model = std::move(model).value();
    else
      read = std::move(model).error();
  }
  const Status all_read = group.agree(read);
  if (!all_read.ok()) return failed_run(all_read.error());
  return prepared;
}

// Every rank comes here; rank 0 reports, the others are silent.
Result<int> run_on_ranks(RunVerbOptions o, const Invocation& invocation) {
  const std::pair<const char*, bool> meaningless[] = {
      {"--cold", o.cold.cold}, {"--recheck", o.recheck}, {"--versus-openvino", o.versus}};
  for (const auto& [name, given] : meaningless) {
    if (given)
      return Error(Code::kInvalidInput,
                   std::string(name) + ": not over several ranks; start Heddle without mpirun");
  }
  RankRunOptions options;
  HEDDLE_ASSIGN_OR_RETURN(options.run, run_options(o, invocation));
  options.real_transfers = o.real_transfers;
  HEDDLE_ASSIGN_OR_RETURN(const auto transport, make_mpi_transport());
  RankGroup group(*transport);
  HEDDLE_ASSIGN_OR_RETURN(const auto prepared, prepare_on_ranks(group, o, invocation, options));
  options.run.in_flight = requests_in_flight(o, prepared.file.problem);
  auto run = run_plan_on_ranks(group, prepared.file.problem, prepared.file.plan, prepared.model, options);
  if (!run.ok()) return failed_run(run.error());
  if (group.rank() != 0) return kExitDone;
  return give_report(o, {prepared.file, *run, std::nullopt, std::nullopt}, invocation);
}

Result<int> run_run(RunVerbOptions o, const Invocation& invocation) {
  HEDDLE_RETURN_IF_ERROR(o.cold.check());
  if (rank_environment().size > 1) return run_on_ranks(std::move(o), invocation);
  const std::pair<const char*, bool> for_ranks[] = {{"--rank-devices", !o.rank_devices.empty()},
                                                    {"--real-transfers", o.real_transfers}};
  for (const auto& [name, given] : for_ranks) {
    if (given)
      return Error(Code::kInvalidInput,
                   std::string(name) + " is for several ranks: start Heddle as mpirun -n N heddle run ...");
  }
  if (o.cold.cold) return run_cold_plan(o, invocation);
  HEDDLE_ASSIGN_OR_RETURN(auto options, run_options(o, invocation));
  HEDDLE_ASSIGN_OR_RETURN(const auto prepared, prepare(o, invocation));
  const auto& file = prepared.file;
  options.in_flight = requests_in_flight(o, file.problem);
  HEDDLE_ASSIGN_OR_RETURN(const auto run, run_plan(file.problem, file.plan, prepared.model, options));
  Report report{file, run, std::nullopt, std::nullopt};
  RoundOptions rounds;
  rounds.inputs = options.inputs;
  rounds.in_flight = options.in_flight;
  rounds.deadline = options.deadline;
  rounds.progress = invocation.progress;
  if (o.recheck) {
    HEDDLE_ASSIGN_OR_RETURN(report.recheck,
                            recheck_prediction(file.problem, file.plan, prepared.model, rounds));
  }
  if (o.versus) {
    if (!prepared.model)
      return Error(Code::kInvalidInput, "--versus-openvino needs a real model; this plan has none");
    HEDDLE_ASSIGN_OR_RETURN(report.comparison,
                            compare_with_openvino(file.problem, file.plan, prepared.model, rounds));
  }
  return give_report(o, report, invocation);
}

}  // namespace

RunFn setup_run(Command& command) {
  auto o = std::make_shared<RunVerbOptions>();
  o->model.declare(command);
  o->problem.declare(command);
  o->search.declare(command);
  command.option("--planner", o->planner, "for a MODEL: one of `heddle planners` (default auto)");
  command.list("--input", o->inputs,
               "NAME=FILE (.npy, or a .ppm picture); FILE alone for the only input; else random");
  command.option("--repeat", o->repeats, "measured runs (default 20; --cold: starts, 3)", 1, 10'000'000);
  command.option("--warmup", o->warmups, "runs before that (default 3)", 0, 1'000'000);
  command.option("--in-flight", o->in_flight, "requests at once (default: 1, throughput plans 4)", 1, 4096);
  command.option("--rtol", o->rtol, "relative tolerance of the comparison (default 1e-3)", 0, 1);
  command.option("--atol", o->atol, "absolute tolerance of the comparison (default 1e-5)", 0, 1e6);
  command.flag("--no-verify", o->no_verify, "do not compare outputs with the unsplit model");
  command.flag("--recheck", o->recheck,
               "time the segments alone again, in turns with requests: is the prediction true now?");
  command.flag("--versus-openvino", o->versus, "also time OpenVINO alone, alternating with the plan");
  command.option("--trace", o->trace, "write a Chrome/Perfetto trace, predicted and measured");
  command.option("-o,--output", o->output, "write the run (for `heddle report`)");
  command.option("--plan-output", o->plan_output, "for a MODEL: write the plan too");
  command.option("--rank-devices", o->rank_devices,
                 "under mpirun: the devices of each rank, A,B;C (default: by host, docs/hosts.md)");
  command.flag("--real-transfers", o->real_transfers,
               "under mpirun: send tensors even between emulated devices");
  o->cold.declare(command);
  return [o](const Invocation& invocation) { return run_run(*o, invocation); };
}

}  // namespace heddle::cli
