// Pipelines of a model in turn, in proportion to their rates (smooth weighted round robin): each turn every pipeline
// earns its rate; the richest has the turn and pays the sum.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "heddle/fleet/deployment.h"
#include "heddle/fleet/reservation.h"

namespace heddle {

class Turns {
 public:
  // The deployment must outlive it.
  explicit Turns(const Deployment& deployment)
      : deployment_(deployment), credit_(deployment.pipelines.size(), 0) {}
  // The pipeline whose turn it is among those for which may_take() is true; kNoId: none. Changes nothing.
  template <class MayTake>
  uint32_t next(uint32_t model, const MayTake& may_take) const {
    uint32_t best = kNoId;
    for (const uint32_t p : deployment_.models[model].pipelines)
      if (may_take(p) && (best == kNoId || credit_[p] + rate(p) > credit_[best] + rate(best))) best = p;
    return best;
  }
  template <class MayTake>
  void take(uint32_t taken, const MayTake& may_take) {
    for (const uint32_t p : deployment_.models[deployment_.pipelines[taken].model].pipelines) {
      if (!may_take(p)) continue;
      credit_[p] += rate(p);
      credit_[taken] -= rate(p);
    }
  }

 private:
  double rate(uint32_t pipeline) const { return std::max(deployment_.pipelines[pipeline].rate_per_s, 1e-9); }

  const Deployment& deployment_;
  std::vector<double> credit_;  // [pipeline]
};

}  // namespace heddle
