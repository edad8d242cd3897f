// The Moirai suite: the public workloads against what other solvers found, and the paper's networks on its
// two clusters.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "heddle/base/csv.h"
#include "heddle/base/file.h"
#include "heddle/plan/flow_workload.h"
#include "heddle/planners/planner.h"
#include "suites.h"

namespace heddle::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kTenth = 0.1;         // of the reference's time
constexpr double kMoiraiSeconds = 10;  // where there is no reference
constexpr double kMaxFigure = 1e15;

struct Reference {
  std::string peer;
  double objective = 0;
  std::optional<double> bound, seconds;
};

// Per workload what its best peer found; of equal ones the fastest. Schedules that a check refused do not count.
Result<std::map<std::string, Reference>> read_moirai_references(const std::string& path) {
  static constexpr const char* kNeeded[] = {"workload", "peer", "objective", "lower_bound", "wall_s"};
  HEDDLE_ASSIGN_OR_RETURN(const auto table, CsvTable::read(path, kNeeded));
  std::map<std::string, Reference> best;
  for (size_t row = 0; row < table.rows(); ++row) {
    if (table.has("validated") && *table.text(row, "validated") == "no") continue;
    // A peer that found nothing has no number there.
    const auto number = [&](const char* column) {
      const auto value = table.number(row, column, 0, kMaxFigure);
      return value.ok() ? std::optional(*value) : std::nullopt;
    };
    const auto objective = number("objective"), seconds = number("wall_s");
    if (!objective || !seconds) continue;
    const Reference r{*table.text(row, "peer"), *objective, number("lower_bound"), seconds};
    auto [it, fresh] = best.try_emplace(*table.text(row, "workload"), r);
    if (!fresh && std::pair(r.objective, r.seconds) < std::pair(it->second.objective, it->second.seconds))
      it->second = r;
  }
  return best;
}

BenchRow workload_row(const std::string& instance, const std::string& metric, const std::string& unit,
                      double value) {
  return bench_row("moirai", instance, "flow search", metric, unit, value);
}

Status bench_workload(const std::string& path, const Reference* reference, const BenchOptions& options,
                      const Control& control, std::vector<BenchRow>& rows) {
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
  makespan.beside("first schedule", plan.counters.at("constructed_us") / unit_us);
  makespan.at_least(plan.bound.us / unit_us);
  makespan.seconds = planning_s;
  for (Incumbent& i : plan.trajectory) {
    i.value_us /= unit_us;
    i.bound_us /= unit_us;
  }
  set_trajectory(makespan, plan.trajectory, limit);
  auto seconds = workload_row(name, "planning and checking", "s", planning_s);
  auto gap = workload_row(name, "gap to the proven bound", "%", 100 * plan.gap);
  gap.baseline = plan.bound.proof.text();
  if (reference != nullptr) {
    makespan.reference = reference->objective;
    seconds.reference = reference->seconds;
    if (reference->bound && *reference->bound > 0)
      gap.reference = 100 * (reference->objective - *reference->bound) / *reference->bound;
    makespan.reference_source = seconds.reference_source = gap.reference_source = reference->peer;
  }
  const size_t first = rows.size();
  rows.insert(rows.end(), {makespan, seconds, gap});
  share_best_known(rows, first, reference != nullptr ? reference->objective : 0);
  return {};
}

std::string data_folder(const BenchOptions& options) {
  if (!options.input.empty()) return options.input;
  const char* shared = std::getenv("HEDDLE_SHARED");
  return (fs::path(shared != nullptr ? shared : ".") / "data" / "moirai").string();
}

}  // namespace

Status bench_moirai_workloads(const BenchOptions& options, const Control& control,
                              std::vector<BenchRow>& rows) {
  const auto folder = data_folder(options);
  constexpr std::string_view kWorkloads[] = {".json"};
  const auto listed = files_in(folder, kWorkloads);
  if (!listed.ok() || listed->empty()) {
    return not_found(folder +
                     ": no workloads (.json) there; name their folder with --input or set "
                     "HEDDLE_SHARED");
  }
  auto parts = moirai_parts();
  for (const auto& file : *listed) parts.push_back(fs::path(file).stem().string());
  HEDDLE_RETURN_IF_ERROR(check_parts(options, parts));
  std::map<std::string, Reference> references;
  const auto csv =
      options.reference.empty() ? (fs::path(folder) / "reference.csv").string() : options.reference;
  if (!options.reference.empty() || file_exists(csv)) {
    HEDDLE_ASSIGN_OR_RETURN(references, read_moirai_references(csv));
  }
  for (const auto& file : *listed) {
    const auto name = fs::path(file).stem().string();
    if (!wanted(options, "workloads") && !wanted(options, name)) continue;
    const auto found = references.find(name);
    HEDDLE_RETURN_IF_ERROR(whole_instance(control, rows, [&] {
      return bench_workload(file, found == references.end() ? nullptr : &found->second, options, control,
                            rows);
    }));
  }
  return {};
}

}  // namespace heddle::bench
