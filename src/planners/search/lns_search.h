// Large-neighbourhood search on one lane's decisions, step by step: what the planners lns and auto share.
#pragma once

#include <functional>
#include <memory>

#include "core/flat_problem.h"
#include "core/plan_store.h"

namespace heddle {

// Keeps an incumbent; each step decides a part of it anew by CP-SAT, takes what the exact timing finds no
// worse, and now and then polishes by local search. Latencies: lns_window.h; throughput: lns_load.h.
// Deterministic for a seed, unless a deadline cuts a step short.
class LnsSearch {
 public:
  // Whether tensors fit too, for a plan that is better than all before; what does not is given up.
  using Accept = std::function<bool(const FlatPlan& plan)>;

  virtual ~LnsSearch() = default;
  // Goes on from this plan, which must be possible on the problem's devices.
  virtual void restart(FlatPlan plan) = 0;
  // kUnsupported where CP-SAT cannot be loaded; nothing has happened then.
  virtual Status step(const Deadline& deadline, const Accept& accept) = 0;
  virtual const FlatPlan& best() const = 0;
  virtual double best_us() const = 0;
  // Steps so far, those that found something better, those that CP-SAT finished.
  struct Counts {
    uint64_t steps = 0, better = 0, complete = 0;
  };
  const Counts& counts() const { return counts_; }

 protected:
  Counts counts_;
};

// The flat problem must outlive it.
std::unique_ptr<LnsSearch> make_lns_search(const FlatProblem& flat, FlatPlan start, uint64_t seed);

}  // namespace heddle
