// When batches run: put in one after another, each starts as soon as its device is free and its inputs are
// there; transfers never wait for each other.
#pragma once

#include <span>
#include <vector>

#include "module_problem.h"

namespace heddle {

class ModuleClock {
 public:
  // The module must outlive the clock.
  explicit ModuleClock(const ModuleProblem& module);

  static constexpr uint32_t kOutside = UINT32_MAX;
  // Of a task in module.tasks, or kOutside.
  uint32_t place(uint32_t task) const { return place_[task]; }
  // The start of the batch if it were the next one. Infinite when something is impossible.
  double start(const Batch& batch) const;
  // Takes the batch as the next one and returns its end.
  double append(const Batch& batch);
  // The end of everything so far, tails included; infinite unless all requests of all tasks have run.
  double value() const { return done_ == finish_.size() ? latest_ : kImpossible; }
  double latest() const { return latest_; }

 private:
  const ModuleProblem& m_;
  const size_t requests_;
  std::vector<uint32_t> place_;
  std::vector<std::vector<const ModuleProblem::Source*>> sources_;  // per place
  std::vector<double> free_, finish_;                               // per device; place x request
  std::vector<uint32_t> where_;                                     // place x request
  double latest_ = 0;
  size_t done_ = 0;
};

// All tasks of the model as one module.
ModuleProblem whole_problem(const TaskModel& model);

// Start of each batch of the whole model when they run in this topological order, and the makespan.
struct BatchTimes {
  std::vector<double> start;
  double makespan = 0;
};
BatchTimes time_batches(const TaskModel& model, const std::vector<Batch>& batches);
// Sorted by these starts. Equal ones keep their order, so that it stays topological where tasks take no time.
std::vector<Batch> by_start(const std::vector<Batch>& batches, std::span<const double> starts);

}  // namespace heddle
