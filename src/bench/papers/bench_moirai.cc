// The Moirai suite: the public workloads against what other solvers found, and the paper's networks on its
// two clusters.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "heddle/base/file.h"
#include "heddle/plan/flow_workload.h"
#include "heddle/planners/planner.h"
#include "suites.h"

namespace heddle::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kTenth = 0.1;         // of the reference's time
constexpr double kMoiraiSeconds = 10;  // where there is no reference

struct Reference {
  std::string peer;
  double objective = 0;
  std::optional<double> bound, seconds;
};

// One line of a CSV file; quoted fields may hold commas.
std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      fields.emplace_back();
    else if (c != '\r')
      fields.back() += c;
  }
  return fields;
}

std::optional<double> csv_number(const std::string& text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Per workload what its best peer found; ties: the faster one. Columns are found by name.
Result<std::map<std::string, Reference>> read_moirai_references(const std::string& path) {
  std::map<std::string, Reference> best;
  HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(path));
  std::map<std::string, size_t> column;
  int line_number = 0;
  for (size_t at = 0; at < text.size(); ++line_number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const auto fields = csv_fields(text.substr(at, end - at));
    at = end + 1;
    if (line_number == 0) {
      for (size_t i = 0; i < fields.size(); ++i) column[fields[i]] = i;
      for (const auto* name : {"workload", "peer", "objective", "lower_bound", "wall_s"}) {
        if (!column.contains(name))
          return Error(Code::kInvalidInput, path + ": line 1: there is no column '" + name +
                                                "'; expected workload, peer, objective, lower_bound, wall_s");
      }
      continue;
    }
    const auto field = [&](const char* name) {
      const size_t i = column[name];
      return i < fields.size() ? fields[i] : std::string();
    };
    const auto objective = csv_number(field("objective"));
    const auto seconds = csv_number(field("wall_s"));
    if (!objective || !seconds) continue;
    Reference r{field("peer"), *objective, csv_number(field("lower_bound")), seconds};
    auto [it, fresh] = best.try_emplace(field("workload"), r);
    const bool better = r.objective < it->second.objective ||
                        (r.objective == it->second.objective && *r.seconds < *it->second.seconds);
    if (!fresh && better) it->second = r;
  }
  return best;
}

BenchRow workload_row(const std::string& instance, const std::string& metric, const std::string& unit,
                      double value) {
  return bench_row("moirai", instance, "flow search", metric, unit, value);
}

Result<std::vector<BenchRow>> bench_workload(const std::string& path, const Reference* reference,
                                             const BenchOptions& options, const Control& control) {
  HEDDLE_ASSIGN_OR_RETURN(const auto workload, read_flow_workload(path));
  const Problem& problem = workload.problem;
  double limit = kMoiraiSeconds;
  if (reference != nullptr) limit = kTenth * *reference->seconds;
  if (options.time_limit_s > 0) limit = options.time_limit_s;
  const Stopwatch watch;
  HEDDLE_ASSIGN_OR_RETURN(auto plan, run_planner(*find_planner("flow-search"), problem,
                                                 planner_options(options, limit, control)));
  const double planning_s = watch.seconds();
  const double unit_us = workload.us_per_unit;
  const auto& name = problem.graph->name();
  const auto unit = workload.time_unit.starts_with("ms") ? "ms" : "";
  auto makespan = workload_row(name, "makespan", unit, plan.value_us / unit_us);
  makespan.baseline = "first schedule";
  makespan.baseline_value = plan.counters.at("constructed_us") / unit_us;
  makespan.bound = plan.bound.us / unit_us;
  makespan.seconds = planning_s;
  for (Incumbent& i : plan.trajectory) {
    i.value_us /= unit_us;
    i.bound_us /= unit_us;
  }
  set_trajectory(makespan, plan.trajectory, limit);
  auto seconds = workload_row(name, "planning and checking", "s", planning_s);
  auto gap = workload_row(name, "gap to the proven bound", "%", 100 * plan.gap);
  gap.baseline = plan.bound.reason;
  if (reference != nullptr) {
    makespan.reference = reference->objective;
    seconds.reference = *reference->seconds;
    if (reference->bound && *reference->bound > 0)
      gap.reference = 100 * (reference->objective - *reference->bound) / *reference->bound;
    makespan.reference_source = seconds.reference_source = gap.reference_source = reference->peer;
  }
  std::vector<BenchRow> rows{makespan, seconds, gap};
  share_best_known(rows, 0, reference != nullptr ? reference->objective : 0);
  return rows;
}

std::string data_folder(const BenchOptions& options) {
  if (!options.input.empty()) return options.input;
  const char* shared = std::getenv("HEDDLE_SHARED");
  return (fs::path(shared != nullptr ? shared : ".") / "data" / "moirai").string();
}

}  // namespace

Result<std::vector<BenchRow>> bench_moirai_workloads(const BenchOptions& options, const Control& control) {
  const auto folder = data_folder(options);
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  if (files.empty()) {
    return Error(Code::kNotFound, folder +
                                      ": no workloads (.json) there; name their folder with --input or set "
                                      "HEDDLE_SHARED");
  }
  std::sort(files.begin(), files.end());
  std::map<std::string, Reference> references;
  const auto csv =
      options.reference.empty() ? (fs::path(folder) / "reference.csv").string() : options.reference;
  if (!options.reference.empty() || file_exists(csv)) {
    HEDDLE_ASSIGN_OR_RETURN(references, read_moirai_references(csv));
  }
  std::vector<BenchRow> rows;
  for (const auto& file : files) {
    const auto name = file.stem().string();
    if (!wanted(options, "workloads") && !wanted(options, name)) continue;
    if (control.cancel.cancelled()) break;
    const auto found = references.find(name);
    HEDDLE_ASSIGN_OR_RETURN(
        auto more, bench_workload(file.string(), found == references.end() ? nullptr : &found->second,
                                  options, control));
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

}  // namespace heddle::bench
