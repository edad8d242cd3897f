// Benchmark suites: each gives rows in one form, printed as a table or as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "heddle/base/status.h"
#include "heddle/planners/trajectory.h"

namespace heddle {
struct PlannerOptions;
}

namespace heddle::cli {

struct BenchRow {
  std::string suite, instance, planner, metric, unit;
  double value = 0;
  std::string baseline;  // what was measured beside it in the same run
  std::optional<double> baseline_value;
  std::optional<double> reference;    // a target or a published figure...
  std::string reference_source;       // ...and whose
  std::optional<double> bound;        // proven: no value is below; of rates: none is above
  std::optional<double> seconds;      // that the planner took
  std::vector<Incumbent> trajectory;  // in some unit; empty where none was recorded
  double best_known = 0;              // in the same: what the primal integral is measured from
  double horizon_s = 0;               // until when it is
};

// For one planner's row: its trajectory, up to the time that it was given.
void set_trajectory(BenchRow& row, std::vector<Incumbent> trajectory, double horizon_s);
// The rows from `first` on are of one instance: primal integrals are measured from the best value among them
// or `reference` (0: none).
void share_best_known(std::vector<BenchRow>& rows, size_t first, double reference = 0);

BenchRow bench_row(std::string suite, std::string instance, std::string planner, std::string metric,
                   std::string unit, double value);

struct BenchOptions {
  std::vector<std::string> models;  // folders or files with .onnx models
  std::vector<std::string> only;    // parts of the suite; empty: all
  std::string store;
  int64_t repeats = 5;
  int64_t seed = 1;
  int64_t threads = 1;           // of planners that can use several
  double time_limit_s = 0;       // of each planner on each instance; 0: the suite's default
  std::string input, reference;  // folder with instances, file with other solvers' results
  int64_t instances = 30;        // generated for each point of a figure
  bool verbose = false;          // rows of single instances, too
};
// Is this part of the suite to be run?
bool wanted(const BenchOptions& options, std::string_view part);
// For a planner that begins now; infinite `seconds`: no limit.
PlannerOptions planner_options(const BenchOptions& options, double seconds, const Invocation& invocation);

struct BenchSuite {
  const char* name;
  const char* summary;
  Result<std::vector<BenchRow>> (*run)(const BenchOptions&, const Invocation&);
};
std::span<const BenchSuite> bench_suites();

Result<std::vector<BenchRow>> bench_core(const BenchOptions& options, const Invocation& invocation);
Result<std::vector<BenchRow>> bench_dnn_partitioning(const BenchOptions& options,
                                                     const Invocation& invocation);
Result<std::vector<BenchRow>> bench_diviml(const BenchOptions& options, const Invocation& invocation);
Result<std::vector<BenchRow>> bench_hios(const BenchOptions& options, const Invocation& invocation);
// Parts of bench_core.
Result<std::vector<BenchRow>> bench_core_planning(const BenchOptions& options, const Invocation& invocation);
Result<std::vector<BenchRow>> bench_core_models(const BenchOptions& options, const Invocation& invocation);

Result<std::vector<BenchRow>> bench_moirai(const BenchOptions& options, const Invocation& invocation);
Result<std::vector<BenchRow>> bench_ppipe(const BenchOptions& options, const Invocation& invocation);
Result<std::vector<BenchRow>> bench_sortinghat(const BenchOptions& options, const Invocation& invocation);
// Parts of bench_moirai.
Result<std::vector<BenchRow>> bench_moirai_workloads(const BenchOptions& options,
                                                     const Invocation& invocation);
Result<std::vector<BenchRow>> bench_moirai_zoo(const BenchOptions& options, const Invocation& invocation);

// Seconds since the call of start().
class Stopwatch {
 public:
  Stopwatch();
  double seconds() const;

 private:
  int64_t began_ns_;
};
double median_of(std::vector<double> values);

}  // namespace heddle::cli
