// The best checked split of a DnnWorkload and the best bound, for the methods of a portfolio.
#pragma once

#include <cmath>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "core/incumbents.h"
#include "heddle/base/status.h"
#include "heddle/plan/dnn_split.h"
#include "heddle/planners/dnn_planner.h"

namespace heddle {

// Thread-safe. `done` is cancelled once value and bound meet, and by an error.
class DnnStore {
 public:
  DnnStore(const DnnWorkload& workload, const DnnRules& rules, CancelToken done);

  // Evaluates, checks, and keeps it when it is the best. Its value; infinite when the checker refuses it.
  double offer(const DnnSplit& split, const std::string& planner);
  void prove(double bound, const std::string& by) { splits_.prove(bound, by); }
  void fail(Error error);  // the first one is kept

  double value() const { return splits_.value(); }  // infinite: none yet
  double bound() const { return splits_.bound(); }
  DnnSplit split() const;  // empty: none yet
  bool is_open() const { return splits_.is_open(); }
  // The answer, or why there is none.
  Result<DnnPlan> result() const;

 private:
  const DnnWorkload& workload_;
  const DnnRules rules_;
  const CancelToken done_;
  Incumbents<DnnSplit> splits_;
  mutable std::mutex mutex_;  // of the error
  std::optional<Error> error_;
};

// For portfolios: on until there is a split, then until the deadline.
inline std::function<bool()> until_there_is_a_split(const DnnStore& store, const Deadline& deadline) {
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
void run_load_portfolio(const DnnWorkload& workload, const DnnRules& rules, const DnnPlanOptions& options,
                        const Deadline& deadline, DnnStore& store);
void run_latency_portfolio(const DnnWorkload& workload, const DnnRules& rules, const DnnPlanOptions& options,
                           const Deadline& deadline, DnnStore& store);

}  // namespace heddle
