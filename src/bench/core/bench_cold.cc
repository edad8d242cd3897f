// The cold suite: time to the first output of real models, against OpenVINO reading, compiling and running
// the whole model, without caches and with both programs' own.
#include <algorithm>
#include <filesystem>

#include "bench_files.h"
#include "heddle/base/child_process.h"
#include "heddle/base/json.h"
#include "heddle/base/temporary_file.h"
#include "heddle/graph/zoo.h"
#include "heddle/session/cold_start.h"
#include "suites.h"

namespace heddle::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kTarget = 0.7;
constexpr int64_t kColdRepeats = 5;
constexpr const char* kTransformer = "transformer";

bool named(const BenchOptions& options, const std::string& part) {
  return std::find(options.only.begin(), options.only.end(), part) != options.only.end();
}

// Plain or cached starts: both, where neither is named.
bool kind_wanted(const BenchOptions& options, const std::string& kind) {
  if (named(options, "plain") || named(options, "cached")) return named(options, kind);
  return options.only.empty() || named(options, kTransformer);
}

void add_rows(const std::string& instance, bool cached, const ColdReport& r, double bound_us,
              std::vector<BenchRow>& rows) {
  const std::string kind = cached ? "cached " : "";
  const auto row = [&](const std::string& metric, const std::string& unit, double value) {
    return bench_row("cold", instance, "cold", kind + metric, unit, value);
  };
  auto first = row("time to first output", "ms", r.first_output_us / 1000);
  first.beside(cached ? "OpenVINO, its cache" : "OpenVINO", r.versus->median.first_output_us / 1000);
  rows.push_back(std::move(first));
  auto ratio = row("ratio to OpenVINO", "", r.versus->ratio);
  ratio.beside("of CPU time", r.versus->cpu_ratio);
  ratio.against(kTarget, "target");
  rows.push_back(std::move(ratio));
  auto predicted = row("predicted", "ms", r.predicted_us / 1000);
  predicted.beside("without overlap", r.without_overlap_us / 1000);
  rows.push_back(std::move(predicted));
  auto bound = row("predicted for any cut", "ms", bound_us / 1000);
  bound.beside("of OpenVINO", bound_us / r.versus->median.first_output_us);
  rows.push_back(std::move(bound));
  auto error = row("largest relative error in f32", "", r.checked.max_rel_error);
  error.beside("outputs right", r.checked.right() ? 1 : 0);
  rows.push_back(std::move(error));
}

Status measure_starts(const BenchModel& model, const BenchOptions& options, const Control& control,
                      std::vector<BenchRow>& rows) {
  const ModelSpec source = model.source();
  const TemporaryFile plan("bench-cold.json");
  ColdSettings settings;
  settings.load_workers = usual_load_workers();
  settings.repeats = static_cast<int>(options.repeats.value_or(kColdRepeats));
  settings.versus = Engine::kOpenVino;
  settings.inputs.seed = static_cast<uint64_t>(options.seed);
  if (kind_wanted(options, "plain")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto cut, plan_cold(source, {}, 0, settings, plan.path(), control));
    HEDDLE_ASSIGN_OR_RETURN(const auto report, measure_cold(plan.path(), settings, control));
    add_rows(model.name, false, report, cold_bound_us(cut, report), rows);
  }
  if (kind_wanted(options, "cached")) {
    const TemporaryFile folder("bench-cold-cache");
    settings.cache_folder = folder.path();
    HEDDLE_ASSIGN_OR_RETURN(const auto cut, plan_cold(source, {}, 0, settings, plan.path(), control));
    auto report = measure_cold(plan.path(), settings, control);
    std::error_code ignored;
    fs::remove_all(folder.path(), ignored);
    if (!report.ok()) return std::move(report).error();
    add_rows(model.name, true, *report, cold_bound_us(cut, *report), rows);
  }
  return {};
}

// A model of 1.4 GB with random weights: large enough that loading it is most of a start.
Status measure_transformer(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  const TemporaryFile file("bench-cold.onnx");
  ZooOnnxOptions zoo;
  zoo.random_weights = true;
  zoo.seed = static_cast<uint64_t>(options.seed);
  // In a process of its own, whose memory is gone when the starts are measured.
  const auto written = run_in_child([&]() -> Result<Json> {
    const auto written = write_zoo_onnx("gpt2-medium", {{"seq", "32"}}, file.path(), zoo);
    if (!written.ok()) return written.error();
    return Json(true);
  });
  if (!written.ok()) return written.error();
  return measure_starts({"gpt2-medium, 32 tokens, random weights", file.path(), {}}, options, control, rows);
}

}  // namespace

Status bench_cold(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  if (named(options, kTransformer))
    return whole_instance(control, rows, [&] { return measure_transformer(options, control, rows); });
  return for_each_model(options, control, rows, [&](const BenchModel& model) {
    return measure_starts(model, options, control, rows);
  });
}

}  // namespace heddle::bench
