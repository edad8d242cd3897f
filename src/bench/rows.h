// What the suites share.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/stopwatch.h"
#include "heddle/bench/bench.h"
#include "heddle/cost/cost_model.h"
#include "heddle/planners/planner.h"

namespace heddle::bench {

BenchRow bench_row(std::string suite, std::string instance, std::string planner, std::string metric,
                   std::string unit, double value);
// Sums in another order differ by so much of the bound at most.
inline constexpr double kBoundRounding = 1e-9;
// The value contradicts the row's bound.
bool beyond_bound(const BenchRow& row);
// For one planner's row: its trajectory, up to the time that it was given.
void set_trajectory(BenchRow& row, std::vector<Incumbent> trajectory, double horizon_s);
// The rows from `first` on are of one instance: primal integrals are measured from the best value among them
// or `reference` (0: none).
void share_best_known(std::vector<BenchRow>& rows, size_t first, double reference = 0);

// The graph on the cluster of that name, with the model's times.
Result<Problem> bench_problem(std::shared_ptr<const Graph> graph, const std::string& cluster,
                              const CostModel& model);

// Runs `one`, which appends the rows of one instance. If the user stops it, the rows are taken back, since planners
// were cut off, and the error is kCancelled.
template <class One>
Status whole_instance(const Control& control, std::vector<BenchRow>& rows, const One& one) {
  const size_t before = rows.size();
  Status status = control.cancel.cancelled() ? Status() : one();
  if (!control.cancel.cancelled()) return status;
  rows.resize(before);
  return cancelled_error("the suite was stopped");
}

// An error that names the part of --only which is not among `parts`.
Status check_parts(const BenchOptions& options, std::span<const std::string> parts);
// The same where each is a piece of an instance's name.
Status check_substrings(const BenchOptions& options, std::span<const std::string> names);
// Is this part of the suite to be run?
bool wanted(const BenchOptions& options, std::string_view part);
// Progress with the instance's name before it.
class NamedProgress final : public ProgressSink {
 public:
  NamedProgress(ProgressSink* sink, std::string name) : sink_(sink), name_(std::move(name)) {}
  void report(const ProgressUpdate& update) override;
  void finish() override;

 private:
  ProgressSink* const sink_;  // may be null
  const std::string name_;
};
// For a planner that begins now; infinite `seconds`: no limit.
PlannerOptions planner_options(const BenchOptions& options, double seconds, const Control& control);

}  // namespace heddle::bench
