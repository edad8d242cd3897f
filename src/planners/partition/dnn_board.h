// Where the methods of a portfolio for DnnWorkloads meet: the best checked split and the best bound.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "heddle/plan/dnn_split.h"
#include "heddle/planners/dnn_planner.h"

namespace heddle {

// Thread-safe.
class DnnBoard {
 public:
  DnnBoard(const DnnWorkload& workload, const DnnRules& rules) : workload_(workload), rules_(rules) {}

  // Evaluates, checks, and keeps it when it is the best. False when the checker refuses it.
  bool offer(const DnnSplit& split, const std::string& planner);
  // Nothing is below `bound`. When it meets the best value, `done` is raised.
  void prove(double bound, const std::string& by);
  void fail(Error error);  // the first one is kept, and `done` raised

  double value() const;  // infinity: none yet
  double bound() const;
  DnnSplit split() const;
  // The answer, or why there is none.
  Result<DnnPlan> result() const;
  // Raised when optimal, or by the caller at its deadline.
  const CancelToken& done() const { return done_; }

 private:
  bool met() const;  // needs the lock, as does
  void note();       // the new best, or bound, on the trajectory

  const DnnWorkload& workload_;
  const DnnRules rules_;
  CancelToken done_;
  const Deadline::Clock::time_point began_ = Deadline::Clock::now();
  mutable std::mutex mutex_;
  DnnPlan best_;
  bool has_split_ = false;
  std::optional<Error> error_;
};

// One of the two portfolios; each returns when done() is raised or nothing is left to do.
// `deadline` is done()'s, with the end of the caller's.
void run_load_portfolio(const DnnWorkload& workload, const DnnRules& rules, const DnnPlanOptions& options,
                        const Deadline& deadline, DnnBoard& board);
void run_latency_portfolio(const DnnWorkload& workload, const DnnRules& rules, const DnnPlanOptions& options,
                           const Deadline& deadline, DnnBoard& board);

}  // namespace heddle
