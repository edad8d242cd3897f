// The best solution so far and the best bound: one store for every search.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/proof.h"
#include "heddle/planners/trajectory.h"

namespace heddle {

// Costs: a smaller value is better. Thread-safe.
template <class Solution>
class Incumbents {
 public:
  // Value and bound meet where they differ by `tolerance`, relative to the bound. Then `closed` is cancelled,
  // so that every search whose deadline listens to it stops.
  explicit Incumbents(double tolerance, CancelToken closed = {})
      : tolerance_(tolerance), closed_(std::move(closed)) {}

  // True when it is better than all before. `who` found it.
  bool offer(double value, Solution solution, const std::string& who) {
    const std::lock_guard lock(mutex_);
    if (best_ && value >= value_) return false;
    best_ = std::make_shared<const Solution>(std::move(solution));
    value_ = value;
    winner_ = who;
    changed();
    return true;
  }
  // No solution has a value below `bound`. True when it is higher than all before.
  bool prove(double bound, const Proof& proof) {
    const std::lock_guard lock(mutex_);
    if (!(bound > bound_)) return false;
    bound_ = bound;
    proof_ = proof;
    changed();
    return true;
  }

  std::shared_ptr<const Solution> best() const { return read(best_); }  // null: none yet
  double value() const { return read(value_); }                         // infinite: none yet
  double bound() const { return read(bound_); }                         // 0: nothing proven yet
  std::string winner() const { return read(winner_); }
  Proof proof() const { return read(proof_); }
  std::vector<Incumbent> trajectory() const { return read(trajectory_); }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  // Whether something is left to gain.
  bool is_open() const {
    const std::lock_guard lock(mutex_);
    return !met();
  }

 private:
  template <class T>
  T read(const T& member) const {
    const std::lock_guard lock(mutex_);
    return member;
  }
  bool met() const { return best_ && value_ <= bound_ * (1 + tolerance_); }
  void changed() {
    trajectory_.push_back({seconds(), value_, std::min(bound_, value_)});
    if (met()) closed_.cancel();
  }

  const double tolerance_;
  const CancelToken closed_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::shared_ptr<const Solution> best_;
  double value_ = std::numeric_limits<double>::infinity(), bound_ = 0;
  std::string winner_;
  Proof proof_;
  std::vector<Incumbent> trajectory_;
};

}  // namespace heddle
