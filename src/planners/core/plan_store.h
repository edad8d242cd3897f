// The best plan and the best proven bound of several workers.
#pragma once

#include <mutex>
#include <optional>

#include "candidates.h"
#include "heddle/plan/bounds.h"

namespace heddle {

// Thread-safe. Raises `closed` when plan and bound meet, so that every worker whose deadline listens to it
// stops.
class PlanStore {
 public:
  PlanStore(const Problem& problem, CancelToken closed)
      : candidates_(problem), problem_(problem), closed_(closed) {}

  // True when it is feasible and better than all before.
  bool offer(Plan plan, const std::string& who);
  bool offer(const Assignment& assignment, const std::string& who);
  void offer_bound(const Bound& bound);

  bool empty() const;
  double value_us() const;  // infinite while there is no plan
  Bound bound() const;
  // Whether something is left to gain.
  bool is_open() const;
  std::string winner() const;
  // The best plan of one lane, which is what local searches go on from; nullopt while there is none.
  std::optional<Plan> best_of_one_lane() const;
  std::optional<Plan> best() const;

  // The outcome, once all workers have ended.
  Result<PlannerOutput> output(StopReason stop, const Deadline& deadline);

 private:
  bool is_open_locked() const;

  mutable std::mutex mutex_;
  Candidates candidates_;
  const Problem& problem_;
  const CancelToken closed_;
  Bound bound_{0, ""};
  std::optional<Plan> one_lane_;  // only when the best has several
};

}  // namespace heddle
