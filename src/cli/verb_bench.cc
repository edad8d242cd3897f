// heddle bench: suites, their table and their JSON.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "bench.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/report/text_table.h"
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
};

std::string number(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", v);
  return text;
}

std::string number7(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.7g", v);
  return text;
}

Json row_json(const BenchRow& r) {
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
          {"seconds", r.seconds ? Json(*r.seconds) : Json()}};
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
  if (rows.empty() && !o.only.empty() && !invocation.cancel.cancelled()) {
    return Error(Code::kInvalidInput, "--only " + o.only + ": suite " + o.suite +
                                          " has no such part (`heddle bench --help` names them)");
  }
  Json json = Json::array();
  // Suites whose problems have proven bounds: values are compared to more digits.
  const bool bounded =
      std::any_of(rows.begin(), rows.end(), [](const BenchRow& r) { return r.bound.has_value(); });
  const auto shown = bounded ? number7 : number;
  std::vector<TextTable::Column> columns = {{"instance", TextTable::Align::kLeft, bounded ? 44 : 22},
                                            {"metric"},
                                            {"value", TextTable::Align::kRight},
                                            {"beside it", TextTable::Align::kRight},
                                            {"baseline", TextTable::Align::kLeft, 22},
                                            {"target", TextTable::Align::kRight}};
  if (bounded)
    for (const auto* title : {"bound", "gap", "seconds"})
      columns.push_back({title, TextTable::Align::kRight});
  TextTable table(columns);
  for (const auto& r : rows) {
    json.push_back(row_json(r));
    const auto unit = r.unit.empty() ? "" : " " + r.unit;
    std::vector<std::string> cells = {r.instance,
                                      r.metric,
                                      shown(r.value) + unit,
                                      r.baseline_value ? shown(*r.baseline_value) : "",
                                      r.baseline,
                                      r.reference ? shown(*r.reference) : ""};
    if (bounded && r.bound) {
      cells.push_back(shown(*r.bound));
      cells.push_back(*r.bound > 0 ? percent(r.value / *r.bound - 1) : "");
      cells.push_back(r.seconds ? number(*r.seconds) : "");
    }
    table.add_row(std::move(cells));
  }
  std::printf("%s", invocation.json
                        ? (json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n").c_str()
                        : table.to_string(bounded ? 150 : 100).c_str());
  return kExitDone;
}

}  // namespace

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
      "--only", o->only,
      "parts of the suite, comma-separated (core: planning, executor, models; diviml: table1, figure4, "
      "table3, table4, gpt3, table1-n32; moirai: workloads, zoo, or an instance's name; "
      "dnn-partitioning: parts of the instances' names)");
  command.list("--models", o->options.models,
               "folder or .onnx file with models (repeatable; default: those of the installed wheels)");
  command.option("--store", o->options.store, "profile store file (default: the user's cache)");
  command.option("--repeat", o->options.repeats, "repetitions of each timing (default 5)", 1, 1000);
  command.option("--seed", o->options.seed, "random seed (default 1)", 0, INT64_MAX);
  command.option("--time-limit", o->options.time_limit_s, "seconds for each planner on each instance", 0,
                 1e7);
  command.option("--input", o->options.input, "folder with the suite's instances");
  command.option("--reference", o->options.reference, "CSV with other solvers' results");
  return [o](const Invocation& invocation) { return run_bench(*o, invocation); };
}

}  // namespace heddle::cli
