// Where the methods of a portfolio for placement problems meet: the best checked split and the best bound.
#pragma once

#include <limits>
#include <mutex>
#include <optional>
#include <string>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "dnn_instance.h"
#include "heddle/planners/planner.h"

namespace heddle {

// Thread-safe.
class DnnBoard {
 public:
  explicit DnnBoard(const DnnInstance& instance) : instance_(instance) {}

  // Evaluates, checks, and keeps it when it is the best. Its value; infinity when the checker refuses it.
  double offer(const DnnSplit& split, const std::string& method);
  // Nothing is below `bound`. When it meets the best value, `done` is raised.
  void prove(double bound, const std::string& by);
  void fail(Error error);  // the first one is kept, and `done` raised

  double value() const;  // infinity: none yet
  double bound() const;
  DnnSplit split() const;
  // Plan, bound and trajectory, or why there is none. Errors: no split was found (memory, ops that no device can
  // run), or a method proved a bound above a checked plan (an internal error).
  Result<PlannerOutput> result() const;
  // Raised when optimal, or by the caller at its deadline.
  const CancelToken& done() const { return done_; }

 private:
  bool met() const;  // needs the lock, as does
  void note();       // the new best, or bound, on the trajectory

  const DnnInstance& instance_;
  CancelToken done_;
  const Deadline::Clock::time_point began_ = Deadline::Clock::now();
  mutable std::mutex mutex_;
  DnnSplit best_;
  double value_ = std::numeric_limits<double>::infinity(), bound_ = 0;
  std::string method_, bound_by_;  // which method gave the split, which the bound
  std::vector<Incumbent> trajectory_;
  std::optional<Error> error_;
};

// One of the two portfolios; each returns when done() is raised or nothing is left to do.
// `deadline` is done()'s, with the end of the caller's.
void run_load_portfolio(const DnnInstance& instance, const PlannerOptions& options, const Deadline& deadline,
                        DnnBoard& board);
void run_latency_portfolio(const DnnInstance& instance, const PlannerOptions& options,
                           const Deadline& deadline, DnnBoard& board);

}  // namespace heddle
