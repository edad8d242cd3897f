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
  std::optional<double> bound;        // proven: no value is below; of rates and loads: none is above
  std::optional<double> seconds;      // that the planner took
  std::vector<Incumbent> trajectory;  // in some unit; empty where none was recorded
  double best_known = 0;              // in the same: what the primal integral is measured from
  double horizon_s = 0;               // until when it is
  bool fails = false;                 // a contradiction was found: the verb ends with status 1

  void beside(std::string what, double its_value) {
    baseline = std::move(what);
    baseline_value = its_value;
  }
  void against(std::optional<double> figure, std::string source) {
    reference = figure;
    reference_source = std::move(source);
  }
};

struct BenchOptions {
  std::vector<std::string> models;  // folders or files with .onnx models
  std::vector<std::string> only;    // parts of the suite; empty: all
  std::string store;                // the profile store's file; empty: the user's
  int64_t repeats = 5;
  int64_t seed = 1;
  int64_t threads = 1;           // of planners that can use several
  double time_limit_s = 0;       // of each planner on each instance; 0: the suite's default
  std::string input, reference;  // folder with instances, file with other solvers' results
  int64_t instances = 30;        // generated for each point of a figure, or by suite solvers in all
  bool each_instance = false;    // rows of single instances, too
  std::string picture;           // ppipe: the SVG file that the part attainment draws; empty: none
};

struct BenchSuite {
  const char* name;
  const char* summary;
  // Cancelled: the rows so far.
  Result<std::vector<BenchRow>> (*run)(const BenchOptions&, const Control&);
};
std::span<const BenchSuite> bench_suites();

// An object for each row, with its primal integral and what was known after 1, 10 and 60 s.
Json rows_json(const std::vector<BenchRow>& rows);
// One table for each instance, whose name stands above it.
std::string rows_text(const std::vector<BenchRow>& rows);

}  // namespace heddle::bench
