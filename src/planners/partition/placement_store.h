// The best checked split of a placement problem and the best bound, for the methods of a portfolio.
#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "core/incumbents.h"
#include "heddle/base/status.h"
#include "heddle/planners/planner.h"
#include "heddle/solve/solution.h"
#include "placement_instance.h"
#include "placement_load.h"

namespace heddle {

// Thread-safe. `done` is cancelled once value and bound meet, and by an error.
class PlacementStore {
 public:
  PlacementStore(const PlacementInstance& instance, CancelToken done);

  // Evaluates, checks, and keeps it when it is the best. Its value; infinite when the checker refuses it.
  double offer(const PlacementSplit& split, const std::string& method);
  void prove(double bound, const Proof& proof) { splits_.prove(bound, proof); }
  void fail(Error error);  // the first one is kept

  double value() const { return splits_.value(); }  // infinite: none yet
  double bound() const { return splits_.bound(); }
  PlacementSplit split() const;  // empty: none yet
  bool is_open() const { return splits_.is_open(); }
  // Plan, bound and trajectory, or why there is none. Errors: no split was found (memory, ops that no device
  // can run), or a method proved a bound above a checked plan (an internal error).
  Result<PlannerOutput> result() const;

 private:
  const PlacementInstance& instance_;
  const CancelToken done_;
  Incumbents<PlacementSplit> splits_;
  mutable std::mutex mutex_;  // of the error
  std::optional<Error> error_;
};

// One run of a portfolio.
struct PlacementTask {
  const PlacementInstance& instance;
  const PlannerOptions& options;
  const Deadline& deadline;
  PlacementStore& store;
  // On until there is a split, then until the deadline.
  bool is_open() const { return !deadline.should_stop() || !std::isfinite(store.value()); }
};

// How one objective's splits are searched for: devices of units change, whatever a device stands for.
struct PlacementMethods {
  using Units = std::vector<int32_t>;
  double before, model;         // of the time, for the first annealing and for the model
  std::array<double, 4> heats;  // of successive rounds of annealing
  int64_t moves_first;          // of the first round
  int64_t moves_more;           // that each next round has, for so many rounds
  int most_growth;
  // Where a thread's round of annealing begins, after its last result of that value; empty: nowhere.
  std::function<Units(int round, const Units& own, double own_value)> start;
  std::function<Units(const Units& start, const PlacementSearchOptions& options)> search;
  std::function<double(const Units& devices, const std::string& method)> offer;  // the split's value
  // The model, from the best split; whatever it finds goes to the store.
  std::function<Status(const SolveOptions& options)> solve;
};
// Annealing on all threads; on the first one a solver's model between, once more for as long as it finds
// anything, then annealing again: with one thread the model still has its turn, for nothing else proves
// anything.
void run_search(const PlacementTask& task, const PlacementMethods& methods, const Deadline& deadline);

// One of the two portfolios; each returns when the deadline stops it or nothing is left to do.
void run_load_portfolio(const PlacementTask& task);
void run_latency_portfolio(const PlacementTask& task);

}  // namespace heddle
