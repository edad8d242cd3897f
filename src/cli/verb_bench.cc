// heddle bench: suites, their table and their JSON.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "bench/bench.h"
#include "bench/bench_cold.h"
#include "bench/bench_serve.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/plan/gap.h"
#include "heddle/planners/milestones.h"
#include "heddle/planners/planner.h"
#include "heddle/report/text_table.h"
#include "rank_verbs.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

constexpr BenchSuite kSuites[] = {
    {"core", "planning, evaluator and executor speed; prediction against measurement; auto against OpenVINO",
     bench_core},
    {"dnn-partitioning", "placement workloads of EfficientMIP (--input) beside peers' figures (--reference)",
     bench_dnn_partitioning},
    {"diviml", "DiviML's tables on random wired networks and GPT-3: splitting, MILP, heuristics, bounds",
     bench_diviml},
    {"moirai", "Moirai's public workloads against other solvers; its networks on its clusters", bench_moirai},
    {"hios", "HIOS's simulation on generated instances or those of --input; real networks on two A40",
     bench_hios},
    {"cold", "time from files to the first output against OpenVINO's, without caches and with them",
     bench_cold},
    {"sortinghat", "SortingHat's models, shapes and machines from host memory: its planner, baselines, ours",
     bench_sortinghat},
    {"transport",
     "what a message between two ranks costs beside MPI alone (mpirun -n 2 heddle bench transport)",
     bench_transport},
    {"ppipe", "PPipe's fleets (--input) beside its published plans; more classes, more devices", bench_ppipe},
    {"serve", "latency that serving adds to a direct call, its rate beside a plain gRPC echo's", bench_serve},
};

std::string cell(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", v);
  return text;
}

std::string number7(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.7g", v);
  return text;
}

std::optional<double> integral_of(const BenchRow& r) {
  if (r.trajectory.empty()) return std::nullopt;
  return primal_integral(r.trajectory, r.best_known, r.horizon_s);
}

// The best value and the bound after 1, 10 and 60 s, as far as planning took that long.
Json milestones_json(const BenchRow& r) {
  Json after = Json::array();
  if (r.trajectory.empty()) return after;
  for (const auto& i : milestones(r.trajectory, r.trajectory.back().seconds))
    after.push_back({i.seconds, std::isfinite(i.value_us) ? Json(i.value_us) : Json(), i.bound_us});
  return after;
}

Json row_json(const BenchRow& r) {
  const auto integral = integral_of(r);
  return {{"suite", r.suite},
          {"instance", r.instance},
          {"planner", r.planner},
          {"metric", r.metric},
          {"unit", r.unit},
          {"value", r.value},
          {"baseline", r.baseline},
          {"baseline_value", r.baseline_value ? Json(*r.baseline_value) : Json()},
          {"reference", r.reference ? Json(*r.reference) : Json()},
          {"reference_source", r.reference_source},
          {"bound", r.bound ? Json(*r.bound) : Json()},
          {"seconds", r.seconds ? Json(*r.seconds) : Json()},
          {"primal_integral_s", integral ? Json(*integral) : Json()},
          {"after", milestones_json(r)}};
}

// One table for each instance, whose name stands above it: what is left fits 100 columns, and only words are
// ever cut. Columns without content are left out.
std::string tables(const std::vector<BenchRow>& rows, bool bounded) {
  const auto shown = bounded ? number7 : cell;
  using Align = TextTable::Align;
  const std::vector<TextTable::Column> all = {
      {"metric", Align::kLeft, 40},   {"value", Align::kRight},   {"beside it", Align::kRight},
      {"baseline", Align::kLeft, 22}, {"target", Align::kRight},  {"bound", Align::kRight},
      {"gap", Align::kRight},         {"seconds", Align::kRight}, {"integral s", Align::kRight}};
  std::string text;
  for (size_t from = 0, to = 0; from < rows.size(); from = to) {
    std::vector<std::vector<std::string>> lines;
    std::vector<bool> filled(all.size(), false);
    for (; to < rows.size() && rows[to].instance == rows[from].instance; ++to) {
      const BenchRow& r = rows[to];
      const auto integral = integral_of(r);
      lines.push_back({r.metric, shown(r.value) + (r.unit.empty() ? "" : " " + r.unit),
                       r.baseline_value ? shown(*r.baseline_value) : "", r.baseline,
                       r.reference ? shown(*r.reference) : "", r.bound ? shown(*r.bound) : "",
                       r.bound && *r.bound > 0 ? percent(relative_gap(r.value, *r.bound)) : "",
                       r.seconds ? cell(*r.seconds) : "", integral ? cell(*integral) : ""});
      for (size_t c = 0; c < all.size(); ++c) filled[c] = filled[c] || !lines.back()[c].empty();
    }
    std::vector<TextTable::Column> columns;
    for (size_t c = 0; c < all.size(); ++c) {
      if (filled[c]) columns.push_back(all[c]);
    }
    TextTable table(columns);
    for (const auto& line : lines) {
      std::vector<std::string> cells;
      for (size_t c = 0; c < all.size(); ++c) {
        if (filled[c]) cells.push_back(line[c]);
      }
      table.add_row(std::move(cells));
    }
    text += (text.empty() ? "" : "\n") + rows[from].instance + "\n" + table.to_string();
  }
  return text;
}

struct BenchVerbOptions {
  std::string suite, only;
  BenchOptions options;
};

Result<int> run_bench(BenchVerbOptions o, const Invocation& invocation) {
  std::vector<std::string> names;
  const BenchSuite* suite = nullptr;
  for (const auto& s : bench_suites()) {
    names.emplace_back(s.name);
    if (o.suite == s.name) suite = &s;
  }
  if (suite == nullptr) {
    return Error(Code::kInvalidInput, "no suite is named '" + o.suite + "'" + did_you_mean(o.suite, names) +
                                          "; there are " + join_names(names));
  }
  o.options.only = split_list(o.only);
  HEDDLE_ASSIGN_OR_RETURN(const auto rows, suite->run(o.options, invocation));
  if (invocation.progress) invocation.progress->finish();
  if (rank_environment().rank > 0) return kExitDone;  // of several ranks the first one speaks
  if (rows.empty() && !o.only.empty() && !invocation.cancel.cancelled()) {
    return Error(Code::kInvalidInput, "--only " + o.only + ": suite " + o.suite +
                                          " has no such part (`heddle bench --help` names them)");
  }
  Json json = Json::array();
  // Suites whose problems have proven bounds: values are compared to more digits.
  const bool bounded =
      std::any_of(rows.begin(), rows.end(), [](const BenchRow& r) { return r.bound.has_value(); });
  for (const auto& r : rows) json.push_back(row_json(r));
  std::printf("%s", invocation.json
                        ? (json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n").c_str()
                        : tables(rows, bounded).c_str());
  return kExitDone;
}

}  // namespace

void set_trajectory(BenchRow& row, std::vector<Incumbent> trajectory, double horizon_s) {
  row.trajectory = std::move(trajectory);
  row.horizon_s = horizon_s;
}

void share_best_known(std::vector<BenchRow>& rows, size_t first, double reference) {
  double best = reference > 0 ? reference : std::numeric_limits<double>::infinity();
  for (size_t i = first; i < rows.size(); ++i) {
    if (!rows[i].trajectory.empty()) best = std::min(best, rows[i].trajectory.back().value_us);
  }
  for (size_t i = first; i < rows.size(); ++i) rows[i].best_known = best;
}

std::span<const BenchSuite> bench_suites() { return kSuites; }

BenchRow bench_row(std::string suite, std::string instance, std::string planner, std::string metric,
                   std::string unit, double value) {
  BenchRow r;
  r.suite = std::move(suite);
  r.instance = std::move(instance);
  r.planner = std::move(planner);
  r.metric = std::move(metric);
  r.unit = std::move(unit);
  r.value = value;
  return r;
}

bool wanted(const BenchOptions& options, std::string_view part) {
  return options.only.empty() ||
         std::find(options.only.begin(), options.only.end(), part) != options.only.end();
}

PlannerOptions planner_options(const BenchOptions& options, double seconds, const Invocation& invocation) {
  PlannerOptions o;
  o.deadline = Deadline::after_seconds(seconds, invocation.cancel);
  o.seed = static_cast<uint64_t>(options.seed);
  o.threads = static_cast<int>(options.threads);
  o.progress = invocation.progress;
  return o;
}

Stopwatch::Stopwatch()
    : began_ns_(std::chrono::duration_cast<std::chrono::nanoseconds>(
                    std::chrono::steady_clock::now().time_since_epoch())
                    .count()) {}

double Stopwatch::seconds() const {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::steady_clock::now().time_since_epoch())
                       .count();
  return static_cast<double>(now - began_ns_) * 1e-9;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

RunFn setup_bench(Command& command) {
  auto o = std::make_shared<BenchVerbOptions>();
  std::string help = "one of:";
  for (const auto& s : bench_suites()) help += std::string(" ") + s.name + " (" + s.summary + ")";
  command.positional("SUITE", o->suite, help);
  command.option(
      "--only,--case", o->only,
      "parts of the suite, comma-separated (core: planning, executor, models; diviml: table1, figure4, "
      "table3, table4, gpt3, table1-n32; moirai: workloads, zoo, or an instance's name; "
      "hios: default, gpus, ops, deps, layers, transfer, models, with --input parts of instances' names; "
      "cold: plain, cached, and by name only transformer, a model of 1.4 GB; "
      "sortinghat: v100-1, v100-2, v100-4, v100-hetero, a6000, p4d, models' names, 1x32, 1x1024, 4x128, "
      "32x64; "
      "dnn-partitioning: parts of the instances' names; ppipe: plans, fleets, simulation, speed, small, and "
      "of "
      "the latter clusters or instances, such as HC1-L or HC1-L/G1)");
  command.list("--models", o->options.models,
               "folder or file with models (repeatable; .onnx, hios: also .json; default: those of the "
               "installed wheels, hios: of the zoo)");
  command.option("--store", o->options.store, "profile store file (default: the user's cache)");
  command.option("--repeat", o->options.repeats, "repetitions of each timing (default 5)", 1, 1000);
  command.option("--seed", o->options.seed, "random seed (default 1)", 0, INT64_MAX);
  command.option("--time-limit", o->options.time_limit_s, "seconds for each planner on each instance", 0,
                 1e7);
  command.option("--threads", o->options.threads, "threads of planners that can use several (default 1)", 1,
                 1024);
  command.option("--input", o->options.input, "folder with the suite's instances");
  command.option("--reference", o->options.reference,
                 "file with other solvers' results (CSV; hios: JSON lines, default reference.jsonl beside)");
  command.option("--instances", o->options.instances, "hios: instances generated for each point (default 30)",
                 1, 1'000'000);
  command.flag("--verbose", o->options.verbose, "hios: a row for each generated instance, too");
  return [o](const Invocation& invocation) { return run_bench(*o, invocation); };
}

}  // namespace heddle::cli
