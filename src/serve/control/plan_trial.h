// Decides whether a new plan is kept: compares its goodput over a trial with that of the plan before it. It has
// no clock and no thread: the caller passes times and counters.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>

#include "heddle/serve/fleet_control.h"

namespace heddle {

// Of one model, since any fixed moment: requests that were settled, and those of them that were in time.
struct GoodputReading {
  std::string model;
  uint64_t arrived = 0, in_time = 0;
};

struct TrialResult {
  enum class Verdict { kOpen, kKept, kWorse };
  Verdict verdict = Verdict::kOpen;  // open: no trial, or no verdict yet
  // Part of the requests that were in time, for models that had requests before and after; before: with the
  // mix of models of after.
  double before = 0, after = 0;
  uint64_t requests = 0;  // of the trial
  std::string why;        // of kKept: "no worse", "more requests arrived", ..
};

// A plan is worse when the part in time fell by more than TrialOptions::margin while no more than 1 + growth
// times the requests per second arrived. The trial begins a settling time after the plan, lasts window_s, and
// goes on up to `longest` windows for want of requests.
class PlanTrial {
 public:
  explicit PlanTrial(const TrialOptions& options) : options_(options) {}

  // Another plan is in use. `compare`: with the plan before it, in a trial.
  void plan_began(double now_s, bool compare, double settle_s);
  bool open() const { return open_; }
  // Times and counters never go back. A verdict ends the trial and is returned once.
  TrialResult look(double now_s, std::span<const GoodputReading> models);

 private:
  struct Count {
    uint64_t arrived = 0, in_time = 0;
  };
  struct Sample {
    double at_s = 0;
    std::map<std::string, Count> models;
  };
  // The requests between two samples.
  struct Interval {
    double seconds = 0;
    std::map<std::string, Count> models;
    uint64_t arrived() const;
  };
  static Interval between(const Sample& from, const Sample& to);
  TrialResult compare(const Interval& now) const;

  const TrialOptions options_;
  std::deque<Sample> samples_;  // of the current plan, settled; the last window
  Interval before_;             // of the plan before it
  double settled_s_ = 0;
  bool open_ = false;
};

}  // namespace heddle
