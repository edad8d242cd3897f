// Decides request by request which of several prepared plans runs, by the times that they took.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace heddle {

struct PlanSwitchOptions {
  int probe_every = 50;  // one request in so many tries another plan
  int samples = 3;       // of each plan that are compared
  double gain = 0.05;    // another plan must be faster by this share
};

// It has no clock and no thread: the same times give the same choices. First each plan runs `samples` times, and
// the fastest by the median becomes the active one. Later the others are tried in turn. One whose try is faster than
// the active plan by `gain` is tried again at once, and becomes the active one if the median of its last `samples`
// times is faster, too. O(samples log samples) for each request.
class PlanSwitch {
 public:
  // `plans`: at least 1.
  explicit PlanSwitch(size_t plans, const PlanSwitchOptions& options = {});

  size_t next() const { return next_; }
  // The plan next() ran one request in `us`.
  void took(double us);

  size_t active() const { return active_; }
  uint64_t switches() const { return switches_; }

 private:
  bool is_known(size_t plan) const;
  double recent_us(size_t plan) const;
  bool is_faster(double us) const { return us < (1 - options_.gain) * recent_us(active_); }
  void choose_first();

  const PlanSwitchOptions options_;
  std::vector<std::deque<double>> recent_;  // [plan] its last times, us
  size_t active_ = 0, next_ = 0, last_tried_ = 0;
  int since_probe_ = 0;
  int fast_tries_ = 0;  // of next_, one after the other
  bool begun_ = false;  // every plan has run
  uint64_t switches_ = 0;
};

}  // namespace heddle
