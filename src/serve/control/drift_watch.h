// Finds pools that take other times than the plan's for so long that chance is ruled out. It has no clock and no
// thread: the caller passes times and counters, so the same input always gives the same result.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "block_corrections.h"
#include "heddle/fleet/deployment.h"
#include "heddle/serve/fleet_control.h"

namespace heddle {

// Of all pools with one role together, since the plan began.
struct PoolReading {
  PoolRole role;
  uint64_t runs = 0;
  double busy_s = 0, predicted_s = 0;
};

struct PoolRatio {
  PoolRole role;
  double ratio = 1;   // measured over planned
  uint64_t runs = 0;  // of the window
};

// Times that are to be corrected.
struct Drift {
  TimesOf times;
  double ratio = 1;  // measured over planned, of its pools together, over their windows
  uint64_t runs = 0;
  std::vector<double> factors;  // [block] what to multiply by
};

// A pool's ratio is measured over planned time of its last runs: at least DriftOptions::window_runs of them,
// and fewer are not evaluated. A pool drifts once its ratio has been outside of [1/(1+share), 1+share] in every
// look for `hold_s` with runs at both ends of that time, and for a whole window of runs, so that the ratio is
// of these alone. Then look() returns all times of the fleet whose pools are outside for a whole window of runs,
// so that a class that slows down needs one new plan.
//
// Each block's factor is the mean ratio of the pools that have it, weighted by their planned times; blocks
// that no pool has get the mean of all.
//
// The reference is the current plan: ratios start at 1 again once a plan is made from corrected times.
class DriftWatch {
 public:
  explicit DriftWatch(const DriftOptions& options);

  // Another plan is in use; its counters begin at 0.
  void plan_began();
  // Times never go back. Returns what drifts now; empty: nothing. It returns the same until plan_began() or
  // refused(). `fleet`: how many blocks a model has.
  std::vector<Drift> look(double now_s, const Fleet& fleet, std::span<const PoolReading> pools);
  // The change that these drifts led to was no good or could not be made: the same ratio (to a factor of
  // 1 + share) of these times is passed over for the back-off time, which doubles from time to time.
  void refused(std::span<const Drift> drifts, double now_s);
  // It was good: the next back-off of these times is the first again.
  void kept(std::span<const Drift> drifts);

  // Of pools with enough runs.
  std::vector<PoolRatio> ratios() const;

 private:
  struct Sample {
    uint64_t runs = 0;
    double busy_s = 0, predicted_s = 0;
  };
  struct Pool {
    std::deque<Sample> samples = {{}};  // the window is from the first to the last
    bool outside = false;
    double outside_since_s = 0, last_run_s = 0;
    uint64_t outside_runs = 0;  // when it began to be

    Sample window() const;
  };
  struct BackOff {
    double until_s = 0, wait_s = 0, ratio = 1;
  };
  bool is_outside(double ratio) const {
    return ratio > 1 + options_.share || ratio < 1 / (1 + options_.share);
  }
  void take(Pool& pool, const PoolReading& reading, double now_s) const;
  bool backs_off(const Drift& drift, double now_s) const;
  Drift drift_of(const TimesOf& times, size_t blocks) const;

  const DriftOptions options_;
  std::map<PoolRole, Pool> pools_;
  std::map<TimesOf, BackOff> back_offs_;
};

}  // namespace heddle
