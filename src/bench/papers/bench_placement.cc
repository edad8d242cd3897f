// Placement workloads of the EfficientMIP paper: our value and bound beside the best feasible figure of
// peers.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "heddle/base/csv.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/status.h"
#include "heddle/plan/placement_workload.h"
#include "heddle/planners/planner.h"
#include "suites.h"

namespace heddle::bench {
namespace {

struct PlacementReference {
  double value = 0;
  double tolerance = 0;  // half a unit of the last digit that the file gives
  std::string peer;
};

// Of two that are equal to the digits given the more precise is better.
bool is_better(const PlacementReference& a, const PlacementReference& b) {
  const double same = std::max(a.tolerance, b.tolerance);
  return a.value < b.value - same || (a.value <= b.value + same && a.tolerance < b.tolerance);
}

// The best feasible figure of each "setting/graph/workload/mode".
using PlacementReferences = std::map<std::string, PlacementReference>;

constexpr double kMaxObjective = 1e15;
constexpr const char* kContiguous = "contiguous";

double half_last_digit(const std::string& number) {
  const auto point = number.find('.');
  if (point == std::string::npos || number.find_first_of("eE") != std::string::npos) return 0;
  return 0.5 * std::pow(10.0, -static_cast<double>(number.size() - point - 1));
}

// "non-contiguous q=2" stays; so does "contiguous".
std::string mode_of(const std::string& setting, const std::string& mode) {
  if (mode == kContiguous || mode.starts_with("non-contiguous")) return mode;
  return setting == "latency" ? "non-contiguous q=2" : "non-contiguous";
}

// Needs the columns setting, graph, workload, mode, peer, objective and feasible, in any order. A row counts if it has
// an objective and its feasible is "yes". A mode that is neither contiguous nor "non-contiguous ..." (splits as
// given, splits cut into pieces) is non-contiguous. A contiguous split is feasible without contiguity, too, so its
// figure counts for both.
Result<PlacementReferences> read_placement_references(const std::string& path) {
  static constexpr const char* kNeeded[] = {"setting", "graph",     "workload", "mode",
                                            "peer",    "objective", "feasible"};
  HEDDLE_ASSIGN_OR_RETURN(const auto table, CsvTable::read(path, kNeeded));
  PlacementReferences references;
  for (size_t row = 0; row < table.rows(); ++row) {
    const auto field = [&](const char* name) { return *table.text(row, name); };
    if (field("feasible") != "yes" || field("objective").empty()) continue;
    PlacementReference reference;
    HEDDLE_ASSIGN_OR_RETURN(reference.value, table.number(row, "objective", 0, kMaxObjective));
    reference.tolerance = half_last_digit(field("objective")) + 1e-9 * reference.value;
    reference.peer = field("peer");
    const auto workload = field("setting") + "/" + field("graph") + "/" + field("workload") + "/";
    std::vector<std::string> modes = {mode_of(field("setting"), field("mode"))};
    if (modes[0] == kContiguous) modes.push_back(mode_of(field("setting"), ""));
    for (const auto& mode : modes) {
      const auto [entry, fresh] = references.emplace(workload + mode, reference);
      if (!fresh && is_better(reference, entry->second)) entry->second = reference;
    }
  }
  return references;
}

namespace fs = std::filesystem;

constexpr double kUsualSeconds = 60;
constexpr int kPlacementThreads = 2;

struct Task {
  std::string path, setting, graph, workload, mode;
  PlacementOptions placement;
  std::string key() const { return setting + "/" + graph + "/" + workload + "/" + mode; }
};

bool wanted(const Task& task, const std::vector<std::string>& only) {
  const auto key = task.key();
  return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& part) {
           return key.find(part) != std::string::npos;
         });
}

// The objective is that of the folder whose name begins with "latency" or "throughput"; without one the
// workload is planned for both.
std::vector<Task> tasks_of(const fs::path& path) {
  std::set<std::string> settings;
  for (const auto& part : path) {
    if (part.string().starts_with("latency")) settings = {"latency"};
    if (part.string().starts_with("throughput")) settings = {"throughput"};
  }
  if (settings.empty()) settings = {"latency", "throughput"};
  std::vector<Task> tasks;
  for (const auto& setting : settings) {
    Task task{path.string(), setting, path.parent_path().filename().string(), path.stem().string(), "", {}};
    const bool latency = setting == "latency";
    task.placement.objective = latency ? Objective::kLatency : Objective::kThroughput;
    task.mode = kContiguous;
    task.placement.contiguous = !latency;
    tasks.push_back(task);
    task.mode = latency ? "non-contiguous q=2" : "non-contiguous";
    task.placement.contiguous = false;
    task.placement.pieces = latency ? 2 : 1;
    tasks.push_back(task);
  }
  return tasks;
}

Result<std::vector<Task>> find_tasks(const BenchOptions& options) {
  if (options.input.empty())
    return invalid_input("this suite needs --input DIR, a folder of placement workloads (.json)");
  std::error_code error;
  std::vector<std::string> files = {options.input};
  if (fs::is_directory(options.input, error)) {
    constexpr std::string_view kWorkloads[] = {".json"};
    HEDDLE_ASSIGN_OR_RETURN(files, files_in(options.input, kWorkloads, true));
  }
  std::vector<Task> tasks;
  std::vector<std::string> keys;
  for (const auto& file : files) {
    HEDDLE_ASSIGN_OR_RETURN(const auto json, read_json_file(file));
    // Other JSON files, such as splits, may lie beside them.
    if (!is_placement_workload(json)) continue;
    for (auto& task : tasks_of(file)) {
      keys.push_back(task.key());
      if (wanted(task, options.only)) tasks.push_back(std::move(task));
    }
  }
  if (tasks.empty())
    return not_found(
               "no placement workload below it (objects with maxFPGAs, maxCPUs, nodes and "
               "edges) that --only lets through")
        .with_context(options.input);
  HEDDLE_RETURN_IF_ERROR(check_substrings(options, keys));
  return tasks;
}

// One line as soon as it is known: a sweep takes long.
void show(const BenchRow& r, const Control& control) {
  if (control.progress == nullptr) return;
  control.progress->finish();
  const auto reference = r.baseline_value ? std::to_string(*r.baseline_value) + " " + r.baseline : "none";
  std::fprintf(stderr, "%s %s: %.6f, bound %.6f, reference %s, %.1f s\n", r.instance.c_str(),
               r.metric.c_str(), r.value, r.bound.value_or(0), reference.c_str(), r.seconds.value_or(0));
}

Result<BenchRow> task_row(const Task& task, const PlacementReference* reference, double seconds,
                          const BenchOptions& options, const Control& control) {
  HEDDLE_ASSIGN_OR_RETURN(const auto problem, read_placement_workload(task.path, task.placement));
  PlannerOptions plan_options = planner_options(options, seconds, control);
  plan_options.threads = static_cast<int>(options.threads.value_or(kPlacementThreads));
  HEDDLE_ASSIGN_OR_RETURN(auto plan, run_planner(*find_planner("placement-search"), problem, plan_options));
  auto row = bench_row("dnn-partitioning", task.setting + "/" + task.graph + "/" + task.workload, plan.detail,
                       task.mode, "", plan.value_us / kPlacementUnitUs);
  row.at_least(plan.bound.us / kPlacementUnitUs);
  row.seconds = plan.planning_s;
  for (Incumbent& i : plan.trajectory) {
    i.value_us /= kPlacementUnitUs;
    i.bound_us /= kPlacementUnitUs;
  }
  set_trajectory(row, plan.trajectory, seconds);
  if (reference != nullptr) row.beside(reference->peer, reference->value);
  return row;
}

}  // namespace

Status bench_dnn_partitioning(const BenchOptions& options, const Control& control,
                              std::vector<BenchRow>& rows) {
  HEDDLE_ASSIGN_OR_RETURN(const auto tasks, find_tasks(options));
  PlacementReferences references;
  if (!options.reference.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(references, read_placement_references(options.reference));
  }
  const double seconds = options.time_limit_s > 0 ? options.time_limit_s : kUsualSeconds;
  double compared = 0, reached = 0;
  for (const auto& task : tasks)
    HEDDLE_RETURN_IF_ERROR(whole_instance(control, rows, [&]() -> Status {
      const auto found = references.find(task.key());
      const auto* reference = found == references.end() ? nullptr : &found->second;
      auto row = task_row(task, reference, seconds, options, control);
      if (!row.ok()) return std::move(row).error().with_context(task.path);
      if (reference != nullptr) {
        ++compared;
        if (row->value <= reference->value + reference->tolerance) ++reached;
      }
      if (!control.cancel.cancelled()) show(*row, control);
      rows.push_back(std::move(*row));
      share_best_known(rows, rows.size() - 1, reference != nullptr ? reference->value : 0);
      return {};
    }));
  if (compared > 0) {
    auto row = bench_row("dnn-partitioning", "all", "auto", "at least as good as every feasible reference",
                         "rows", reached);
    row.against(compared, "rows with a reference");
    rows.push_back(std::move(row));
  }
  return {};
}

}  // namespace heddle::bench
