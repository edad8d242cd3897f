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
    {"diviml", "DiviML's tables on random wired networks and GPT-3: splitting, MILP, heuristics, bounds",
     bench_diviml},
};

std::string number(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", v);
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
          {"reference_source", r.reference_source}};
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
  Json json = Json::array();
  TextTable table({{"instance", TextTable::Align::kLeft, 22},
                   {"metric"},
                   {"value", TextTable::Align::kRight},
                   {"beside it", TextTable::Align::kRight},
                   {"baseline", TextTable::Align::kLeft, 22},
                   {"target", TextTable::Align::kRight}});
  for (const auto& r : rows) {
    json.push_back(row_json(r));
    const auto unit = r.unit.empty() ? "" : " " + r.unit;
    table.add_row({r.instance, r.metric, number(r.value) + unit,
                   r.baseline_value ? number(*r.baseline_value) : "", r.baseline,
                   r.reference ? number(*r.reference) : ""});
  }
  std::printf("%s", invocation.json
                        ? (json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n").c_str()
                        : table.to_string().c_str());
  return kExitDone;
}

}  // namespace

std::span<const BenchSuite> bench_suites() { return kSuites; }

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
  command.option("--only", o->only,
                 "parts of the suite (core: planning, executor, models; diviml: table1, figure4, table3, "
                 "table4, gpt3, table1-n32), "
                 "comma-separated");
  command.list("--models", o->options.models,
               "folder or .onnx file with models (repeatable; default: those of the installed wheels)");
  command.option("--store", o->options.store, "profile store file (default: the user's cache)");
  command.option("--repeat", o->options.repeats, "repetitions of each timing (default 5)", 1, 1000);
  command.option("--time-limit", o->options.time_limit_s, "seconds for each solve (default: the suite's)", 0,
                 1e6);
  command.option("--seed", o->options.seed, "random seed (default 1)", 0, INT64_MAX);
  return [o](const Invocation& invocation) { return run_bench(*o, invocation); };
}

}  // namespace heddle::cli
