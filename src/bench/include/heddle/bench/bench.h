// Suites of measurements: each gives rows in one form. On top of everything else, and included by the verb
// `heddle bench` alone.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/control.h"
#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/planners/trajectory.h"

namespace heddle::bench {

struct BenchRow {
  std::string suite, instance, planner, metric, unit;
  double value = 0;
  std::string baseline;  // what was measured beside it in the same run
  std::optional<double> baseline_value;
  std::optional<double> reference;    // a target or a published figure...
  std::string reference_source;       // ...and whose
  std::optional<double> bound;        // proven: no value is beyond it; see at_least() and at_most()
  bool bound_is_upper = false;        // of rates and loads: no value is above
  std::optional<double> seconds;      // that the planner took
  std::vector<Incumbent> trajectory;  // in some unit; empty where none was recorded
  double best_known = 0;              // in the same: what the primal integral is measured from
  double horizon_s = 0;               // until when it is
  bool fails = false;                 // a contradiction was found: the verb ends with status 1

  void at_least(double proven) {
    bound = proven;
    bound_is_upper = false;
  }
  void at_most(double proven) {
    bound = proven;
    bound_is_upper = true;
  }

  void beside(std::string what, double its_value) {
    baseline = std::move(what);
    baseline_value = its_value;
  }
  void against(std::optional<double> figure, std::string source) {
    reference = figure;
    reference_source = figure ? std::move(source) : "";
  }
};

struct BenchOptions {
  std::vector<std::string> models;  // folders or files with .onnx models
  std::vector<std::string> only;    // parts of the suite; empty: all
  std::string store;                // the profile store's file; empty: the user's
  // Empty: the suite's default.
  std::optional<int64_t> repeats;  // of each timing
  std::optional<int64_t> threads;  // of planners that can use several
  int64_t seed = 1;
  double time_limit_s = 0;       // of each planner on each instance; 0: the suite's default
  std::string input, reference;  // folder with instances, file with other solvers' results
  int64_t instances = 30;        // generated for each point of a figure, or by suite solvers in all
  bool each_instance = false;    // rows of single instances, too
  std::string picture;           // ppipe: the SVG file that the part attainment draws; empty: none
};

// The flags that not every suite reads; a suite has a set of them.
enum BenchFlag : unsigned {
  kOnlyFlag = 1,
  kModelsFlag = 2,
  kStoreFlag = 4,
  kRepeatFlag = 8,
  kSeedFlag = 16,
  kTimeLimitFlag = 32,
  kThreadsFlag = 64,
  kInputFlag = 128,
  kReferenceFlag = 256,
  kInstancesFlag = 512,
  kEachInstanceFlag = 1024,
  kPictureFlag = 2048,
};

struct BenchSuite {
  const char* name;
  const char* summary;
  unsigned flags;                       // that the suite reads
  std::vector<std::string> (*parts)();  // of --only
  const char* further_parts;            // what else --only may name, which the suite checks; null: nothing
  // Appends rows. On an error, those that are finished stay.
  Status (*run)(const BenchOptions&, const Control&, std::vector<BenchRow>& rows);
};
std::span<const BenchSuite> bench_suites();

struct BenchRun {
  std::vector<BenchRow> rows;
  Status status;  // an error: the rows are those that were finished before it
};
// Refuses names in `only` that are no parts. A row beyond its bound fails. Cancelled: the rows so far, without an
// error.
BenchRun run_suite(const BenchSuite& suite, const BenchOptions& options, const Control& control);

// An object for each row, with its primal integral and what was known after 1, 10 and 60 s.
Json rows_json(const std::vector<BenchRow>& rows);
// One table for each instance, whose name stands above it.
std::string rows_text(const std::vector<BenchRow>& rows);

}  // namespace heddle::bench
