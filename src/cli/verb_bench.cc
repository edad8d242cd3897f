// heddle bench: suites, their table and their JSON.
#include <algorithm>

#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/bench/bench.h"
#include "heddle/runtime/transport.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct BenchVerbOptions {
  std::string suite, only;
  std::optional<int64_t> seed, instances;
  bench::BenchOptions options;
};

struct FlagGiven {
  bench::BenchFlag flag;
  const char* name;
  bool given;
};

std::vector<FlagGiven> flags_given(const BenchVerbOptions& o) {
  const auto& b = o.options;
  return {{bench::kOnlyFlag, "--only", !o.only.empty()},
          {bench::kModelsFlag, "--models", !b.models.empty()},
          {bench::kStoreFlag, "--store", !b.store.empty()},
          {bench::kRepeatFlag, "--repeat", b.repeats.has_value()},
          {bench::kSeedFlag, "--seed", o.seed.has_value()},
          {bench::kTimeLimitFlag, "--time-limit", b.time_limit_s > 0},
          {bench::kThreadsFlag, "--threads", b.threads.has_value()},
          {bench::kInputFlag, "--input", !b.input.empty()},
          {bench::kReferenceFlag, "--reference", !b.reference.empty()},
          {bench::kInstancesFlag, "--instances", o.instances.has_value()},
          {bench::kEachInstanceFlag, "--each-instance", b.each_instance},
          {bench::kPictureFlag, "--picture", !b.picture.empty()}};
}

std::vector<std::string> reading_suites(bench::BenchFlag flag) {
  std::vector<std::string> names;
  for (const auto& s : bench::bench_suites())
    if ((s.flags & flag) != 0) names.emplace_back(s.name);
  return names;
}

// " [core, cold]": the end of the flag's help.
std::string readers(bench::BenchFlag flag) {
  std::string text;
  for (const auto& name : reading_suites(flag)) text += (text.empty() ? " [" : ", ") + name;
  return text + "]";
}

Status check_flags(const bench::BenchSuite& suite, const BenchVerbOptions& o) {
  for (const auto& f : flags_given(o))
    if (f.given && (suite.flags & f.flag) == 0)
      return invalid_input(std::string(f.name) + ": suite " + suite.name +
                           " does not read it; these do: " + join_names(reading_suites(f.flag)));
  return {};
}

std::string parts_help() {
  std::string help = "parts of the suite, comma-separated (";
  const char* between = "";
  for (const auto& s : bench::bench_suites()) {
    if ((s.flags & bench::kOnlyFlag) == 0) continue;
    help += between + std::string(s.name) + ": ";
    const auto parts = s.parts();
    for (size_t i = 0; i < parts.size(); ++i) help += (i > 0 ? ", " : "") + parts[i];
    if (s.further_parts != nullptr) help += (parts.empty() ? "" : ", ") + std::string(s.further_parts);
    between = "; ";
  }
  return help + ")";
}

Result<int> run_bench(BenchVerbOptions o, const Invocation& invocation) {
  std::vector<std::string> names;
  const bench::BenchSuite* suite = nullptr;
  for (const auto& s : bench::bench_suites()) {
    names.emplace_back(s.name);
    if (o.suite == s.name) suite = &s;
  }
  if (suite == nullptr) {
    return invalid_input("no suite is named '" + o.suite + "'" + did_you_mean(o.suite, names) +
                         "; there are " + join_names(names, names.size()));
  }
  HEDDLE_RETURN_IF_ERROR(check_flags(*suite, o));
  o.options.only = split_list(o.only);
  o.options.seed = o.seed.value_or(o.options.seed);
  o.options.instances = o.instances.value_or(o.options.instances);
  HEDDLE_RETURN_IF_ERROR(check_output(o.options.picture));
  auto run = bench::run_suite(*suite, o.options, invocation);
  if (rank_environment().rank > 0) return kExitDone;  // of several ranks the first one speaks
  if (!run.status.ok() && run.rows.empty()) return std::move(run.status).error();
  show_result(invocation, bench::rows_json(run.rows), bench::rows_text(run.rows));
  if (!run.status.ok()) {
    // The rows are the one document on standard output.
    print(stderr, "heddle: {}\n", run.status.error().to_string());
    return exit_status(run.status.error().code());
  }
  return std::ranges::any_of(run.rows, &bench::BenchRow::fails) ? kExitNo : kExitDone;
}

}  // namespace

RunFn setup_bench(Command& command) {
  auto o = std::make_shared<BenchVerbOptions>();
  std::string help = "one of:";
  for (const auto& s : bench::bench_suites()) help += std::string(" ") + s.name + " (" + s.summary + ")";
  command.positional("SUITE", o->suite, help);
  command.option("--only,--case", o->only, parts_help());
  command.list("--models", o->options.models,
               "folder or file with models (repeatable; .onnx, hios: also .json; default: those of the "
               "installed wheels, hios: of the zoo, serve: none)" +
                   readers(bench::kModelsFlag));
  command.option("--store", o->options.store,
                 "profile store file (default: the user's cache)" + readers(bench::kStoreFlag));
  command.option("--repeat", o->options.repeats,
                 "repetitions of each timing (default 5; ppipe: runs of the part realtime, default 3)" +
                     readers(bench::kRepeatFlag),
                 1, 1000);
  command.option("--seed", o->seed, "random seed (default 1)" + readers(bench::kSeedFlag), 0, INT64_MAX);
  command.seconds(
      "--time-limit", o->options.time_limit_s,
      "time for each planner on each instance; serve, scale: for each measurement; ppipe: for each "
      "plan of the parts plans and fleets, and each run of realtime" +
          readers(bench::kTimeLimitFlag),
      0, 1e7);
  command.option("--threads", o->options.threads,
                 "threads of planners that can use several (default 1, dnn-partitioning: 2)" +
                     readers(bench::kThreadsFlag),
                 1, 1024);
  command.option("--input", o->options.input,
                 "folder with the suite's instances" + readers(bench::kInputFlag));
  command.option("--reference", o->options.reference,
                 "file with other solvers' results (CSV; hios: JSON lines, default reference.jsonl beside)" +
                     readers(bench::kReferenceFlag));
  command.option("--instances", o->instances,
                 "instances that hios generates for each point, solvers in all (default 30)", 1, 1'000'000);
  command.option("--picture", o->options.picture, "ppipe: draw the part attainment into this file (.svg)");
  command.flag("--each-instance", o->options.each_instance, "hios: a row for each generated instance, too");
  return [o](const Invocation& invocation) { return run_bench(*o, invocation); };
}

}  // namespace heddle::cli
