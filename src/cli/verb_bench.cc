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
  bench::BenchOptions options;
};

Result<int> run_bench(BenchVerbOptions o, const Invocation& invocation) {
  std::vector<std::string> names;
  const bench::BenchSuite* suite = nullptr;
  for (const auto& s : bench::bench_suites()) {
    names.emplace_back(s.name);
    if (o.suite == s.name) suite = &s;
  }
  if (suite == nullptr) {
    return invalid_input("no suite is named '" + o.suite + "'" + did_you_mean(o.suite, names) +
                         "; there are " + join_names(names));
  }
  o.options.only = split_list(o.only);
  HEDDLE_RETURN_IF_ERROR(check_output(o.options.picture));
  HEDDLE_ASSIGN_OR_RETURN(const auto rows, suite->run(o.options, invocation));
  if (rank_environment().rank > 0) return kExitDone;  // of several ranks the first one speaks
  if (rows.empty() && !o.only.empty() && !invocation.cancel.cancelled()) {
    return invalid_input("--only " + o.only + ": suite " + o.suite +
                         " has no such part (`heddle bench --help` names them)");
  }
  show_result(invocation, bench::rows_json(rows), bench::rows_text(rows));
  return std::ranges::any_of(rows, &bench::BenchRow::fails) ? kExitNo : kExitDone;
}

}  // namespace

RunFn setup_bench(Command& command) {
  auto o = std::make_shared<BenchVerbOptions>();
  std::string help = "one of:";
  for (const auto& s : bench::bench_suites()) help += std::string(" ") + s.name + " (" + s.summary + ")";
  command.positional("SUITE", o->suite, help);
  command.option(
      "--only,--case", o->only,
      "parts of the suite, comma-separated (core: planning, executor; models: auto, f32, budget, busy; "
      "diviml: table1, figure4, table3, table4, gpt3, table1-n32; moirai: workloads, zoo, or an instance's "
      "name; "
      "hios: default, gpus, ops, deps, layers, transfer, models, with --input parts of instances' names; "
      "cold: plain, cached, and by name only transformer, a model of 1.4 GB; "
      "sortinghat: v100-1, v100-2, v100-4, v100-hetero, a6000, p4d, models' names, 1x32, 1x1024, 4x128, "
      "32x64; "
      "dnn-partitioning: parts of the instances' names; ppipe: plans, fleets, simulation, goodput, "
      "ablation, attainment, realtime, day, speed, small, and clusters or instances of these, such as HC1-L "
      "or "
      "HC1-L/G1; solvers: shapes, schedules, placements)");
  command.list("--models", o->options.models,
               "folder or file with models (repeatable; .onnx, hios: also .json; default: those of the "
               "installed wheels, hios: of the zoo)");
  command.option("--store", o->options.store, "profile store file (default: the user's cache)");
  command.option("--repeat", o->options.repeats, "repetitions of each timing (default 5)", 1, 1000);
  command.option("--seed", o->options.seed, "random seed (default 1)", 0, INT64_MAX);
  command.seconds("--time-limit", o->options.time_limit_s, "time for each planner on each instance", 0, 1e7);
  command.option("--threads", o->options.threads, "threads of planners that can use several (default 1)", 1,
                 1024);
  command.option("--input", o->options.input, "folder with the suite's instances");
  command.option("--reference", o->options.reference,
                 "file with other solvers' results (CSV; hios: JSON lines, default reference.jsonl beside)");
  command.option("--instances", o->options.instances,
                 "instances that hios generates for each point, solvers in all (default 30)", 1, 1'000'000);
  command.option("--picture", o->options.picture, "ppipe: draw the part attainment into this file (.svg)");
  command.flag("--each-instance", o->options.each_instance, "hios: a row for each generated instance, too");
  return [o](const Invocation& invocation) { return run_bench(*o, invocation); };
}

}  // namespace heddle::cli
