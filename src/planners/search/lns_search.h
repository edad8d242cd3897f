// Large-neighbourhood search on one lane's decisions: what the planners lns and auto share.
#pragma once

#include <functional>
#include <memory>

#include "core/plan_store.h"
#include "device_search.h"
#include "lns_window.h"

namespace heddle {

// Keeps an incumbent; each step decides a part of it anew by CP-SAT (lns_window.h), takes what the exact timing
// finds no worse, and now and then polishes by local search. Deterministic for a seed, unless a deadline cuts
// a step short.
class LnsSearch {
 public:
  // Whether tensors fit too, for a plan that is better than all before; what does not is given up.
  using Accept = std::function<bool(const FlatPlan& plan)>;

  virtual ~LnsSearch() = default;
  // kUnsupported where CP-SAT cannot be loaded; nothing has happened then.
  Status step(const Deadline& deadline, const Accept& accept);
  double best_us() const { return value_us_; }
  // Steps so far, those that found something better, those that CP-SAT finished.
  struct Counts {
    uint64_t steps = 0, better = 0, complete = 0;
  };
  const Counts& counts() const { return counts_; }

 protected:
  LnsSearch(const FlatProblem& flat, uint64_t seed);

  // What the next step frees; `free` may be empty.
  virtual Neighbourhood draw() = 0;
  virtual Result<WindowAnswer> solve(const Neighbourhood& area, const SolveOptions& options) = 0;
  virtual void learn(bool better, bool complete) = 0;
  // Takes what is no worse; true when it is better.
  virtual bool consider(FlatPlan plan, const Accept& accept) = 0;
  virtual std::unique_ptr<DeviceSearch> local_search(uint64_t seed) const = 0;

  int64_t excess(const FlatPlan& plan) const;

  const FlatProblem& flat_;
  Random random_;
  FlatPlan plan_;
  double value_us_ = kImpossible;
  int64_t excess_ = 0;           // bytes of parameters beyond the limits
  std::vector<uint32_t> place_;  // per op: its place in the plan's order
  SearchRound polish_;           // one round of local search

 private:
  const uint64_t seed_;
  Counts counts_;
};

// The flat problem must outlive it.
std::unique_ptr<LnsSearch> make_lns_search(const FlatProblem& flat, FlatPlan start, uint64_t seed);

struct LnsResult {
  bool ran = false;  // false: CP-SAT cannot be loaded, or `start` uses other devices
  LnsSearch::Counts counts;
};

// Steps from `start` until the deadline, until `stop_at_us` is reached, or until many steps in a row found
// nothing; without a deadline the steps are limited, too. What is better goes to `offer`, which says whether it
// is feasible: a plan whose tensors do not fit is given up.
using OfferPlan = std::function<bool(const Assignment& assignment)>;
LnsResult lns_rounds(const Problem& problem, const FlatProblem& flat, const PlannerOptions& options,
                     const Plan& start, double stop_at_us, const OfferPlan& offer);

}  // namespace heddle
