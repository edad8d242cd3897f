// The best checked split of a placement problem and the best bound, for the methods of a portfolio.
#pragma once

#include <cmath>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "core/incumbents.h"
#include "heddle/base/status.h"
#include "heddle/planners/planner.h"
#include "placement_instance.h"

namespace heddle {

// Thread-safe. `done` is cancelled once value and bound meet, and by an error.
class PlacementStore {
 public:
  PlacementStore(const PlacementInstance& instance, CancelToken done);

  // Evaluates, checks, and keeps it when it is the best. Its value; infinite when the checker refuses it.
  double offer(const PlacementSplit& split, const std::string& method);
  void prove(double bound, const std::string& by) { splits_.prove(bound, by); }
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

// For portfolios: on until there is a split, then until the deadline.
inline std::function<bool()> until_there_is_a_split(const PlacementStore& store, const Deadline& deadline) {
  return [&store, deadline] { return !deadline.should_stop() || !std::isfinite(store.value()); };
}

// Annealing on all threads; on the first one a solver's model between, once more for as long as it finds
// anything, then annealing again: with one thread the model still has its turn, for nothing else proves
// anything.
struct DnnSearch {
  double before, model;  // of the time, for the first annealing and for the model
  int threads;
  std::function<void(int thread, const Deadline&)> anneal;
  std::function<bool(const Deadline&)> solve;  // true: a better split, or a better bound
};
void run_search(const DnnSearch& search, const Deadline& deadline);

// One of the two portfolios; each returns when `deadline` stops it or nothing is left to do.
void run_load_portfolio(const PlacementInstance& instance, const PlannerOptions& options,
                        const Deadline& deadline, PlacementStore& store);
void run_latency_portfolio(const PlacementInstance& instance, const PlannerOptions& options,
                           const Deadline& deadline, PlacementStore& store);

}  // namespace heddle
